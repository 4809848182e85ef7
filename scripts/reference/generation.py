"""What a model says when it goes on from prompts by itself, by transformers' generate()."""

import torch
import transformers

PROMPT_SIZES = (3, 7, 12)
NEW_TOKENS = 64
TOP_K = 5
TEMPERATURE = 0.7
# The best logit of each position is this much above the second, relative to the largest magnitude: what is computed in
# another order must not choose another token.
LEAST_MARGIN = 4e-3
# This many prompts of a size are drawn, and the one that most different tokens follow is taken: a model that says the
# same again and again would hide mistakes.
DRAWN = 100


@torch.no_grad()
def go_on(model, prompts):
    """The tokens that follow each prompt, the logits that chose them, and the smallest margin of each prompt."""
    size = prompts.shape[1]
    greedy = transformers.GenerationConfig(do_sample=False, max_new_tokens=NEW_TOKENS)
    tokens = model.generate(prompts, generation_config=greedy)
    generated = tokens[:, size:]
    # All at once and without a cache: another way to the same tokens.
    logits = model(input_ids=tokens, use_cache=False).logits[:, size - 1:-1]
    assert generated.shape[1] == NEW_TOKENS and torch.equal(logits.argmax(-1), generated)
    best = logits.topk(2, dim=-1).values
    margins = (best[..., 0] - best[..., 1]) / logits.abs().amax(-1)
    return generated, logits, margins.amin(-1)


def generate(model, generator):
    """generation.json of a model in f64."""
    model.eval()
    model.generation_config = transformers.GenerationConfig()
    found = []
    for size in PROMPT_SIZES:
        prompts = torch.randint(0, model.config.vocab_size, (DRAWN, size), generator=generator)
        generated, logits, margins = go_on(model, prompts)
        clear = [row for row in range(DRAWN) if margins[row] >= LEAST_MARGIN]
        row = max(clear, key=lambda row: len(generated[row].unique()))
        first = logits[row, 0]
        best = first.topk(TOP_K)
        probabilities = torch.softmax(best.values / TEMPERATURE, dim=-1)
        found.append({
            "prompt": prompts[row].tolist(),
            "generated": generated[row].tolist(),
            "smallest_margin": float(margins[row]),
            "first_logits": first.tolist(),
            "first_probabilities": dict(zip(map(str, best.indices.tolist()),
                                            probabilities.tolist())),
        })
    return {"new_tokens": NEW_TOKENS, "top_k": TOP_K, "temperature": TEMPERATURE,
            "prompts": found}
