#!/usr/bin/env python3
"""Makes what docs/fine-tuning.md works with: instructions, and a model in Hugging Face's format.

Needs the Python package tokenizers. Writes to the current folder train.jsonl and held-out.jsonl (fields "instruction"
and "response") and the folder model: config.json (a small Qwen3), model.safetensors (random weights), tokenizer.json
(byte-level BPE, trained on the instructions) and tokenizer_config.json.
"""

import json
import math
import pathlib
import random
import struct

from make_mlp_samples import write_safetensors
from make_question_data import make_questions, train_tokenizer, write_lines

END = "<|endoftext|>"
HIDDEN, MLP, LAYERS, HEADS, KV_HEADS, HEAD = 64, 160, 2, 4, 2, 16


def shapes(vocab):
    yield "model.embed_tokens.weight", [vocab, HIDDEN]
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        yield name + "input_layernorm.weight", [HIDDEN]
        yield name + "self_attn.q_proj.weight", [HEADS * HEAD, HIDDEN]
        yield name + "self_attn.k_proj.weight", [KV_HEADS * HEAD, HIDDEN]
        yield name + "self_attn.v_proj.weight", [KV_HEADS * HEAD, HIDDEN]
        yield name + "self_attn.q_norm.weight", [HEAD]
        yield name + "self_attn.k_norm.weight", [HEAD]
        yield name + "self_attn.o_proj.weight", [HIDDEN, HEADS * HEAD]
        yield name + "post_attention_layernorm.weight", [HIDDEN]
        yield name + "mlp.gate_proj.weight", [MLP, HIDDEN]
        yield name + "mlp.up_proj.weight", [MLP, HIDDEN]
        yield name + "mlp.down_proj.weight", [HIDDEN, MLP]
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [vocab, HIDDEN]


def random_weights(vocab, rng):
    tensors = {}
    for name, shape in sorted(shapes(vocab)):
        if len(shape) == 1:
            values = [1.0] * shape[0]
        else:
            spread = 1.0 if "embed" in name else 1 / math.sqrt(shape[1])
            values = [rng.gauss(0, spread) for _ in range(shape[0] * shape[1])]
        tensors[name] = ("F32", shape, struct.pack(f"<{len(values)}f", *values))
    return tensors


def main():
    rng = random.Random(0)
    questions = make_questions()
    rng.shuffle(questions)
    write_lines("train.jsonl", questions[:128])
    write_lines("held-out.jsonl", questions[128:])

    model = pathlib.Path("model")
    model.mkdir(exist_ok=True)
    tokenizer = train_tokenizer(questions)
    tokenizer.save(str(model / "tokenizer.json"))
    vocab = tokenizer.get_vocab_size()
    (model / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END}, indent=2) + "\n")
    (model / "config.json").write_text(json.dumps({
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": vocab, "hidden_size": HIDDEN,
        "intermediate_size": MLP, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "max_position_embeddings": 128, "rope_theta": 10000.0,
        "rms_norm_eps": 1e-06, "hidden_act": "silu", "tie_word_embeddings": False,
        "eos_token_id": tokenizer.token_to_id(END)}, indent=2) + "\n")
    write_safetensors(model / "model.safetensors", random_weights(vocab, rng))


if __name__ == "__main__":
    main()
