#!/usr/bin/env python3
"""Compares dtc with transformers 5 on random configurations of every family of models.

Each case draws a family, odd sizes, and some fields from what configurations of any family have, so that fields occur which
the family does not read. The model is computed by transformers in f64 and by dtc-import, dtc-compile with a random
strategy and dtc-run; the loss and the norm of the gradient must be the same. A case that transformers refuses is
skipped; one that dtc refuses is reported, as is a difference. The same seed gives the same cases.

    python3 -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/sweep/families.py --bin build/release/bin                 # 15 cases, one of each family
    venv/bin/python scripts/sweep/families.py --bin build/release/bin --models 1000 --seed 7

Exits with 0 if all cases agree, 1 if one does not, and 77 without transformers 5 and PyTorch.
"""

import argparse
import json
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reference"))
try:
    import safetensors.torch
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error.name} is not installed; the sweep needs the packages of scripts/reference/requirements.txt",
          file=sys.stderr)
    sys.exit(77)
if int(transformers.__version__.split(".")[0]) < 5:
    print(f"skipped: transformers is {transformers.__version__}, and the reference is transformers 5", file=sys.stderr)
    sys.exit(77)

import models  # noqa: E402
from families import everything_in_f64  # noqa: E402
from tools import Failure, Tools, expect_close, summarize  # noqa: E402
from training import Case, loss_of  # noqa: E402

BATCH = 4
ENCODERS = ("bert", "roberta")
FAMILIES = ("bert", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "llama", "mistral", "olmo2", "phi3", "qwen2",
            "qwen3", "roberta", "smollm3", "vit")
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_python", "relu", "silu", "tanh", "sigmoid")
# No token is padding, whose embedding transformers does not train.
PADDING = 1


def draw_strategy(rng, family):
    """Flags of dtc-compile for up to eight devices and four microbatches."""
    sizes = {axis: rng.choice((1, 1, 2, 3 if axis == "tp" else 4)) for axis in ("dp", "tp")}
    sizes["pp"] = rng.choice((1, 1, 2)) if sizes["dp"] * sizes["tp"] <= 4 else 1
    mesh = ",".join(f"{axis}={size}" for axis, size in sizes.items() if size > 1)
    flags = ["--mesh", mesh] if mesh else []
    microbatches = rng.choice([number for number in (1, 2, 4) if BATCH % (number * sizes["dp"]) == 0])
    if microbatches > 1:
        flags += ["--microbatches", microbatches]
    if sizes["pp"] > 1 and microbatches > 1:
        flags += ["--schedule", rng.choice(("gpipe", "1f1b", "zb-h1"))]
    if sizes["dp"] > 1:
        flags += ["--zero", rng.randint(0, 3)]
    if sizes["tp"] > 1 and family != "vit" and rng.random() < 0.5:
        flags += ["--sequence-parallel"]
    if rng.random() < 0.3:
        flags += ["--recompute", rng.choice(("selective", "full"))]
    return [str(flag) for flag in flags]


def draw_rope(rng, pairs):
    """An object of rotary positions, of a type that may have keys of another."""
    kind = rng.choice(("default", "linear", "dynamic", "llama3", "yarn", "longrope"))
    factors = [[round(rng.uniform(1, 4), 2) for _ in range(pairs)] for _ in range(2)]
    keys = {"factor": rng.choice((1.0, 2.0, 4.0)), "original_max_position_embeddings": rng.choice((8, 16, 64))}
    if kind == "llama3":
        keys |= {"low_freq_factor": 1.0, "high_freq_factor": rng.choice((2.0, 4.0))}
    if kind == "longrope":
        keys |= {"short_factor": factors[0], "long_factor": factors[1]}
        if rng.random() < 0.5:
            del keys["factor"]
    optional = {"attention_factor": 1.25, "beta_fast": 4.0, "beta_slow": 0.25, "mscale": 1.0, "mscale_all_dim": 0.5,
                "truncate": False, "attn_factor": 0.9, "finetuned": True, "alpha": 3.0, "rope_theta": 777.0,
                "partial_rotary_factor": 0.5}
    chosen = rng.sample(sorted(optional), rng.randint(0, 3))
    return {rng.choice(("rope_type", "type")): kind} | keys | {key: optional[key] for key in chosen}


def draw_fields(rng, family, layers, heads, head_size):
    """Some of the fields of all families, whether this one reads them or not."""
    kinds = ("full_attention", "sliding_attention")
    fields = {
        "hidden_act": rng.choice(ACTIVATIONS),
        "hidden_activation": rng.choice(ACTIVATIONS),
        "activation_function": rng.choice(ACTIVATIONS),
        "tie_word_embeddings": rng.random() < 0.5,
        "attention_bias": rng.random() < 0.5,
        "mlp_bias": rng.random() < 0.5,
        "qkv_bias": rng.random() < 0.5,
        "sliding_window": rng.choice((3, 5, 64)),
        "use_sliding_window": rng.random() < 0.5,
        "max_window_layers": rng.randint(0, layers),
        "sliding_window_pattern": rng.choice((2, 3)),
        "layer_types": [rng.choice(kinds) for _ in range(layers)],
        "no_rope_layers": [rng.randint(0, 1) for _ in range(layers)],
        "no_rope_layer_interval": rng.choice((1, 2, 3)),
        "attn_logit_softcapping": rng.choice((1.5, 20.0)),
        "final_logit_softcapping": rng.choice((2.0, 30.0)),
        "query_pre_attn_scalar": rng.choice((7, 16)),
        "partial_rotary_factor": 0.5,
        "rotary_pct": rng.choice((0.5, 1.0)),
        "rotary_emb_base": 300.0,
        "rope_theta": 5000.0,
        "rope_local_base_freq": 400.0,
        "original_max_position_embeddings": rng.choice((8, 32)),
        "use_parallel_residual": rng.random() < 0.5,
        "scale_attn_weights": rng.random() < 0.5,
        "scale_attn_by_inverse_layer_idx": rng.random() < 0.5,
        "position_embedding_type": "relative_key",
        "rms_norm_eps": 1e-3,
        "layer_norm_eps": 1e-3,
        "layer_norm_epsilon": 1e-3,
        "type_vocab_size": rng.choice((1, 3)),
        "num_experts": 4,
        rng.choice(("rope_scaling", "rope_parameters")): draw_rope(rng, head_size // 2),
    }
    chosen = rng.sample(sorted(fields), rng.randint(0, 7))
    return {name: fields[name] for name in chosen}


def draw_config(rng, family):
    layers, heads = rng.choice((2, 3)), rng.choice((2, 3, 4))
    head_size = rng.choice((4, 6, 8))
    if family.startswith("gemma"):  # transformers keeps the root of the width, which scales the embeddings, in f32
        heads, head_size = rng.choice(((2, 8), (4, 4)))
    width = heads * head_size
    config = {"model_type": family, "pad_token_id": PADDING, "initializer_range": 0.02}
    if family == "gpt2":
        config |= {"vocab_size": 31, "n_positions": 24, "n_embd": width, "n_layer": layers, "n_head": heads}
    elif family == "vit":
        config |= {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads,
                   "intermediate_size": 18, "image_size": 12, "patch_size": 4, "num_labels": 5}
    else:
        config |= {"vocab_size": 31, "hidden_size": width, "intermediate_size": rng.choice((18, 20)),
                   "num_hidden_layers": layers, "num_attention_heads": heads, "max_position_embeddings": 64}
        if family not in ENCODERS + ("gpt_neox",):
            config["num_key_value_heads"] = rng.choice([n for n in (1, 2, heads) if heads % n == 0])
        if family in ("gemma", "gemma2", "gemma3_text", "qwen3") or (family == "llama" and rng.random() < 0.5):
            config["head_dim"] = head_size
    return config | draw_fields(rng, family, layers, heads, head_size)


def make_model(config):
    """transformers' model of config.json as it is read from a file."""
    kind = (transformers.AutoModelForImageClassification if config["model_type"] == "vit"
            else transformers.AutoModelForMaskedLM if config["model_type"] in ENCODERS
            else transformers.AutoModelForCausalLM)
    fields = json.loads(json.dumps(config))
    read = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    model = kind.from_config(read, attn_implementation="eager")
    return model.double().eval()  # without dropout


def draw_samples(config, seq, generator):
    if config["model_type"] == "vit":
        images = torch.randn((BATCH, 3, config["image_size"], config["image_size"]), generator=generator)
        return {"images": images, "labels": torch.randint(0, 5, (BATCH,), generator=generator, dtype=torch.int32)}
    text = torch.randint(PADDING + 1, config["vocab_size"], (BATCH, seq + 1), generator=generator, dtype=torch.int32)
    return {"tokens": text[:, :-1].contiguous(), "labels": text[:, 1:].contiguous()}


def reference(config, seq, folder, seed):
    """Writes the files of a case, and returns transformers' loss and norm of the gradient."""
    generator = torch.Generator().manual_seed(seed)
    with everything_in_f64():
        model = make_model(config)
    models.randomize(model, generator, spread=0.4)
    weights = {name: p.detach().float() for name, p in model.named_parameters()}
    models.restore(model, weights)
    samples = draw_samples(config, seq, generator)
    safetensors.torch.save_file(models.named_as_saved(model, weights), folder / "weights.safetensors")
    safetensors.torch.save_file(samples, folder / "samples.safetensors")
    with open(folder / "config.json", "w") as file:
        json.dump(config, file, indent=1)
    with everything_in_f64():
        loss = loss_of(model, Case(), samples)
        loss.backward()
    squares = [p.grad.square().sum() for p in model.parameters() if p.grad is not None]
    return float(loss.detach()), float(torch.stack(squares).sum().sqrt())


def run_case(number, seed, options):
    rng = random.Random(f"{seed}:{number}")
    family = FAMILIES[number % len(FAMILIES)] if not options.family else options.family
    config = draw_config(rng, family)
    strategy, seq = draw_strategy(rng, family), rng.choice((5, 7, 12, 16))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            loss, norm = reference(config, seq, folder, number)
        except Exception as error:  # whatever transformers raises of what it does not take
            if options.verbose:
                print(f"case {number}: transformers refuses {family}: {str(error).splitlines()[-1]}")
            return "skipped, as transformers refuses it"
        if options.reference_only:
            return "computed by transformers"
        try:
            found, found_norm, _ = Tools(options.bin, folder).first_step(BATCH, None if family == "vit" else seq, strategy)
            expect_close("the loss", found, loss)
            expect_close("the norm of the gradient", found_norm, norm)
        except Failure as failure:
            print(f"case {number} of seed {seed}, --seq {seq} {' '.join(strategy) or 'on one device'}: {failure}\n  {json.dumps(config)}")
            return "different or refused by dtc"
    return "same"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/release/bin", help="the folder of dtc's programs")
    parser.add_argument("--models", type=int, default=len(FAMILIES), help="how many (default: one of each family)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case: to run one again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=FAMILIES, help="of this family alone")
    parser.add_argument("--reference-only", action="store_true", help="compute with transformers alone")
    parser.add_argument("--verbose", action="store_true", help="say why transformers refuses a case")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity(transformers.utils.logging.CRITICAL)
    print(f"seed {options.seed}")
    results = [run_case(number, options.seed, options) for number in range(options.first, options.first + options.models)]
    summarize(results)
    return 1 if "different or refused by dtc" in results else 0


if __name__ == "__main__":
    sys.exit(main())
