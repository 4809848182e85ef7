#!/usr/bin/env python3
"""Compares the plans of captured models of transformers with those of dtc-import for the same configurations.

Each model is captured by python/dtc and imported from its config.json, and both are compiled for one device, for data and
tensor parallelism, and for a pipeline. The two plans must have the same kernels, but for those that are listed here, the memory of a device
must be the same to 2 %, and the simulated step time to 3 %; they may be less where that is listed. Parameters have no memory in the process of Python.

    venv/bin/python scripts/reference/captured_plans.py --bin build/release/bin [family...]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from torch.nn import functional as F

from sgd_steps import ROOT

sys.path.append(str(ROOT / "python"))  # after PYTHONPATH, which may name a build of the package

import models  # noqa: E402
from dtc.torch import capture, empty_weights  # noqa: E402

BATCH, SEQ = 8, 512
LAYOUTS = ("", "--mesh dp=2,tp=2", "--mesh pp=2 --microbatches 4")
MEMORY, SECONDS = 0.02, 0.03
SIZES = dict(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=4, num_attention_heads=16,
             max_position_embeddings=1024, bos_token_id=0, eos_token_id=0, pad_token_id=None)
GROUPS = SIZES | dict(num_key_value_heads=4, head_dim=64)
GEMMA = GROUPS | dict(query_pre_attn_scalar=64, sliding_window=128, layer_types=["sliding_attention", "full_attention"] * 2,
                      tie_word_embeddings=True)
MIXTURE = dict(num_experts_per_tok=2, output_router_logits=False)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
FAMILIES = {
    "gpt2": ("GPT2", dict(vocab_size=32000, n_positions=1024, n_embd=1024, n_layer=4, n_head=16, resid_pdrop=0.0, embd_pdrop=0.0,
                          attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)),
    "llama": ("Llama", GROUPS),
    "mistral": ("Mistral", GROUPS | dict(sliding_window=128)),
    "qwen2": ("Qwen2", {key: value for key, value in GROUPS.items() if key != "head_dim"} | dict(tie_word_embeddings=True)),
    "qwen3": ("Qwen3", GROUPS),
    "smollm3": ("SmolLM3", GROUPS | dict(no_rope_layer_interval=2)),
    "olmo2": ("Olmo2", GROUPS),
    "phi3": ("Phi3", GROUPS),
    "gemma": ("Gemma", GROUPS | dict(hidden_act="gelu_pytorch_tanh", tie_word_embeddings=True)),
    "gemma2": ("Gemma2", GEMMA),
    "gemma3": ("Gemma3Text", GEMMA),
    "gpt_neox": ("GPTNeoX", SIZES | dict(rotary_pct=0.25)),
    "mixtral": ("Mixtral", GROUPS | MIXTURE | dict(num_local_experts=8)),
    "qwen3_moe": ("Qwen3Moe", GROUPS | MIXTURE | dict(num_experts=8, moe_intermediate_size=512, mlp_only_layers=[1])),
    "gpt_oss": ("GptOss", GROUPS | MIXTURE | dict(num_local_experts=8, intermediate_size=512, sliding_window=128,
                                                  layer_types=["sliding_attention", "full_attention"] * 2)),
    "deepseek_v3": ("DeepseekV3", SIZES | dict(
        num_key_value_heads=16, q_lora_rank=384, kv_lora_rank=256, qk_rope_head_dim=32, qk_nope_head_dim=64, v_head_dim=64,
        n_routed_experts=8, n_group=4, topk_group=2, num_experts_per_tok=2, moe_intermediate_size=512, n_shared_experts=1,
        first_k_dense_replace=1)),
    "bert": ("Bert", SIZES | NO_DROPOUT | dict(pad_token_id=0)),
    "roberta": ("Roberta", SIZES | NO_DROPOUT | dict(pad_token_id=0, type_vocab_size=1)),
}
ENCODERS = ("bert", "roberta")
EAGER = ("gemma2", "gpt_oss")
# Kernels that may differ. Gemma's imported model fills a tensor with the scale of embeddings for each microbatch. Encoders look up
# the types of tokens, which the imported model takes as one row, and RoBERTa counts the positions of tokens that are no padding.
TYPES = ("embedding", "embedding_grad", "fill", "pad", "reduce", "slice")
# How much less memory and time a plan may have. The gates of gpt-oss are clamped by choices, which keep less for the backward pass
# than minima and maxima do. The products of DeepSeek have heads apart, which the imported model has in other places: a stage keeps
# less.
LESS = {"gpt_oss": (0.14, 0.08), "deepseek_v3": (0.04, SECONDS)}
KNOWN = {"gpt_oss": ("accumulate", "adamw", "compare", "concat", "fill", "maximum", "minimum", "mul"),
         "deepseek_v3": ("add", "compare", "concat", "convert", "einsum", "fill", "select", "slice", "transpose"),
         "gemma": ("fill",), "gemma2": ("fill",), "gemma3": ("fill",), "bert": TYPES,
         "roberta": (*TYPES, "add", "compare", "convert", "mul", "shard_offset", "sub")}


def model_of(family):
    """The model without memory. Attention is by its parts where transformers has no other for it."""
    name, settings = FAMILIES[family]
    config = getattr(transformers, name + "Config")(**settings)
    auto = transformers.AutoModelForMaskedLM if family in ENCODERS else transformers.AutoModelForCausalLM
    with empty_weights():
        return auto.from_config(config, attn_implementation="eager" if family in EAGER else "sdpa").float()


def loss(model, batch):
    logits = model(input_ids=batch["tokens"]).logits
    return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())


class Programs:
    """The programs of dtc, run in a folder."""

    def __init__(self, programs, folder):
        self.programs, self.folder = pathlib.Path(programs).resolve(), folder

    def run(self, program, *arguments):
        command = [str(self.programs / program), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def plan(self, model, layout):
        """The calls of each kernel in a step, the bytes of a device, and the seconds of a step."""
        self.run("dtc-compile", f"{model}.mlir", *layout.split(), "-o", f"{model}.plan")
        shown = json.loads(self.run("dtc-plan", "show", "--json", f"{model}.plan"))
        cluster = ROOT / "examples" / "clusters" / "dgx-h100.textproto"
        simulated = json.loads(self.run("dtc-plan", "simulate", "--json", "--cluster", cluster, f"{model}.plan"))
        calls = {each["kernel"]: each["calls"] for each in shown["kernels"]}
        return calls, shown["memory"]["arena_bytes"], simulated["step_seconds"]


def compare(family, programs):
    """Prints how the plans of a family differ, and says whether they are within the bounds."""
    batch = {name: torch.zeros(BATCH, SEQ, dtype=torch.long) for name in ("tokens", "labels")}
    good = True
    with tempfile.TemporaryDirectory() as folder:
        dtc = Programs(programs, folder)
        model = model_of(family)
        capture(model, loss, batch).write(f"{folder}/captured-torch.mlir")
        pathlib.Path(folder, "config.json").write_text(json.dumps(models.configuration(model)))
        dtc.run("dtc-import", "captured-torch.mlir", "-o", "captured.mlir")
        dtc.run("dtc-import", "config.json", "--batch", BATCH, "--seq", SEQ, "--ignore-index", -100, "-o", "imported.mlir")
        for layout in LAYOUTS:
            (mine, bytes_, seconds), (theirs, wanted_bytes, wanted_seconds) = (
                dtc.plan(each, layout) for each in ("captured", "imported"))
            differ = {key: f"{mine.get(key, 0)} for {theirs.get(key, 0)}" for key in sorted(mine | theirs)
                      if mine.get(key) != theirs.get(key)}
            memory, time = bytes_ / wanted_bytes - 1, seconds / wanted_seconds - 1
            less, faster = LESS.get(family, (MEMORY, SECONDS))
            good &= -less <= memory <= MEMORY and -faster <= time <= SECONDS
            good &= set(differ) <= set(KNOWN.get(family, ()))
            print(f"{family:9} {layout or 'one device':30} memory {memory:+7.2%}  step {time:+7.2%}  "
                  f"{', '.join(f'{key} {value}' for key, value in differ.items()) or 'the same kernels'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"), help="the folder of dtc's programs")
    parser.add_argument("families", nargs="*", help="the families (default: all)")
    arguments = parser.parse_args()
    for family in arguments.families:
        if family not in FAMILIES:
            parser.error(f"there is no family '{family}', expected one of {', '.join(FAMILIES)}")
    if not all([compare(family, arguments.bin) for family in arguments.families or FAMILIES]):
        raise SystemExit("plans of captured models differ from those of dtc-import")


if __name__ == "__main__":
    main()
