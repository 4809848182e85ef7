#!/usr/bin/env python3
"""Makes the reference data of the parity tests with PyTorch and Hugging Face transformers.

For each of a few tiny models it writes a folder below test/parity/data (see the README there): a configuration,
initial weights, samples, and what three steps of training must give. The models are transformers' own, the optimizer
and the clipping are PyTorch's own: nothing of dtc is used here.

    python3 -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/make_parity_reference.py

The reference is computed in f64 from weights that are exact in f32, and is stored in f32. The same is done once more in
f32; the distances between the two are written down as "f32_noise": what an implementation in f32 may be off without
being wrong. Elements whose gradient is rounding and nothing else (GPT-2's key bias: softmax does not see a constant)
are left out of the parameters' distances, for AdamW makes a full step of any gradient.
"""

import argparse
import json
import math
import os

import safetensors.torch
import torch
import transformers

BATCH = 4
SEQ = 16
STEPS = 3
OPTIMIZER = {
    "lr": 1e-2,
    "beta1": 0.9,
    "beta2": 0.95,
    "eps": 1e-8,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
}
# A gradient in f64 that is smaller than this, and not zero, is rounding.
ROUNDING = 1e-12

# No two sizes of a model are equal where a mistake could otherwise hide.
COMMON = {"bos_token_id": 0, "eos_token_id": 0, "attn_implementation": "sdpa"}


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=67, n_positions=20, n_embd=32, n_layer=2, n_head=4, n_inner=48,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **COMMON)
    return transformers.GPT2LMHeadModel(config)


def llama():
    """Grouped queries, untied."""
    config = transformers.LlamaConfig(
        vocab_size=67, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=20,
        tie_word_embeddings=False, **COMMON)
    return transformers.LlamaForCausalLM(config)


def llama_tied():
    """The rest of what a Llama configuration can say: tied, biases, one key-value head, a head size and theta of its
    own."""
    config = transformers.LlamaConfig(
        vocab_size=67, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=1, head_dim=6, max_position_embeddings=20,
        rope_theta=500.0, rms_norm_eps=1e-5, attention_bias=True, mlp_bias=True,
        tie_word_embeddings=True, **COMMON)
    return transformers.LlamaForCausalLM(config)


MODELS = {"gpt2": gpt2, "llama": llama, "llama_tied": llama_tied}


def randomize(model, generator):
    """Draws every parameter anew: no zero bias, no norm of ones, weights large enough that nothing is linear."""
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() >= 2:
            parameter.data.copy_(0.2 * noise)
        elif name.endswith("bias"):
            parameter.data.copy_(0.1 * noise)
        else:  # the scale of a norm
            parameter.data.copy_(1.0 + 0.2 * noise)


def train(model, samples):
    """Trains for STEPS steps. Returns the losses, the norms of the gradients before clipping, the gradients of the
    first step before clipping and the parameters at the end."""
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": OPTIMIZER["weight_decay"]},
         {"params": others, "weight_decay": 0.0}],
        lr=OPTIMIZER["lr"], betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]),
        eps=OPTIMIZER["eps"])
    model.train()
    losses, norms, gradients = [], [], None
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        tokens, labels = samples["tokens"][rows].long(), samples["labels"][rows].long()
        # The loss is taken from the logits, for transformers would shift the labels once more.
        logits = model(input_ids=tokens, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        if gradients is None:
            gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
        norms.append(
            float(torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER["clip_norm"])))
        losses.append(float(loss.detach()))
        optimizer.step()
    parameters = {name: p.detach().clone() for name, p in model.named_parameters()}
    return losses, norms, gradients, parameters


def distances(lhs, rhs, gradients=None):
    """The largest distance of two elements for each tensor, without the elements whose gradient is mere rounding."""
    result = {}
    for name in lhs:
        distance = (lhs[name].double() - rhs[name].double()).abs()
        if gradients is not None:
            size = gradients[name].abs()
            distance = distance[(size == 0) | (size >= ROUNDING)]
        result[name] = float(distance.max())
    return result


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def save(path, tensors, dtype=None):
    tensors = {name: t.to(dtype or t.dtype).contiguous() for name, t in tensors.items()}
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def make(name, folder, seed):
    generator = torch.Generator().manual_seed(seed)
    model = MODELS[name]()
    randomize(model, generator)
    initial = {key: p.detach().clone() for key, p in model.named_parameters()}
    text = torch.randint(0, model.config.vocab_size, (STEPS * BATCH, SEQ + 1), generator=generator,
                         dtype=torch.int32)
    samples = {"tokens": text[:, :-1], "labels": text[:, 1:]}

    single = train(model, samples)
    for key, parameter in model.named_parameters():
        parameter.data.copy_(initial[key])
    model.double()
    losses, norms, gradients, parameters = train(model, samples)
    assert all(norm > 1.5 * OPTIMIZER["clip_norm"] for norm in norms), norms
    assert all(math.isfinite(loss) for loss in losses)

    os.makedirs(folder, exist_ok=True)
    model.float()
    # Without what transformers adds on its own account: the file is to be read, and stays as it is when
    # transformers changes.
    config = model.config.to_diff_dict()
    for key in ("transformers_version", "dtype", "bos_token_id", "eos_token_id", "use_cache"):
        config.pop(key, None)
    config["architectures"] = [type(model).__name__]
    write_json(os.path.join(folder, "config.json"), dict(sorted(config.items())))
    save(os.path.join(folder, "weights.safetensors"), initial)
    save(os.path.join(folder, "samples.safetensors"), samples)
    save(os.path.join(folder, "gradients.safetensors"), gradients, torch.float32)
    save(os.path.join(folder, "parameters.safetensors"), parameters, torch.float32)
    write_json(os.path.join(folder, "expected.json"), {
        "batch": BATCH,
        "seq": SEQ,
        "steps": STEPS,
        "optimizer": OPTIMIZER,
        "loss": losses,
        "grad_norm": norms,
        "rounding": ROUNDING,
        "f32_noise": {
            "loss": max(abs(a - b) for a, b in zip(losses, single[0])),
            "grad_norm": max(abs(a - b) for a, b in zip(norms, single[1])),
            "gradients": distances(gradients, single[2]),
            "parameters": distances(parameters, single[3], gradients),
        },
    })
    print(f"{name}: loss {losses}, gradient norm {norms}")


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=os.path.join(root, "test", "parity", "data"),
                        help="the folder to write to (default: test/parity/data)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for seed, name in enumerate(MODELS):
        make(name, os.path.join(arguments.output, name), seed)


if __name__ == "__main__":
    main()
