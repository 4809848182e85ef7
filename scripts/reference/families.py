"""The tiny models of the parity reference of families: each has what distinguishes its family, at sizes at which it acts
on sequences of 16 tokens. No two sizes of a model are equal where a mistake could otherwise hide."""

import contextlib

import torch
import transformers

SIZES = dict(
    vocab_size=29, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0,
    pad_token_id=None)


def family(name, attention="eager", **changes):
    config = getattr(transformers, name + "Config")(**(SIZES | changes), attn_implementation=attention)
    return transformers.AutoModelForCausalLM.from_config(config)


def llama3():
    """Of the frequencies of a head of 8, one is high, one between, and two are low."""
    return family("Llama", head_dim=8, rope_theta=10000.0, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 8.0,
        "original_max_position_embeddings": 256})


def llama_linear():
    return family("Llama", rope_scaling={"type": "linear", "factor": 2.5}, attention_bias=True, mlp_bias=True)


def llama_yarn():
    """The ramp lies within the eight frequencies, and the attention factor is not 1."""
    return family("Llama", head_dim=16, rope_theta=5000.0, rope_scaling={
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 4.0,
        "beta_slow": 0.25})


def mistral():
    return family("Mistral", sliding_window=5)


def qwen2():
    """The second layer has a window."""
    return family("Qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=1, tie_word_embeddings=True)


def qwen3():
    return family("Qwen3", head_dim=10)


def smollm3():
    """The second layer has no rotary positions."""
    return family("SmolLM3", no_rope_layer_interval=2, tie_word_embeddings=True)


def olmo2():
    return family("Olmo2")


def gemma():
    return family("Gemma", head_dim=10, hidden_act="gelu_pytorch_tanh", tie_word_embeddings=True)


def gemma2():
    """Caps low enough to bend, a window in the first layer."""
    return family("Gemma2", head_dim=10, query_pre_attn_scalar=7, sliding_window=6, attn_logit_softcapping=1.5,
                  final_logit_softcapping=4.0, tie_word_embeddings=True)


def gemma3():
    """Positions of the layer without a window are scaled, and those of the other have a base of their own."""
    return family("Gemma3Text", head_dim=10, query_pre_attn_scalar=7, sliding_window=6, rope_theta=100000.0,
                  rope_local_base_freq=500.0, rope_scaling={"rope_type": "linear", "factor": 3.0},
                  layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=True)


def phi3():
    return family("Phi3", sliding_window=7, partial_rotary_factor=2 / 3)


def gpt_neox(**changes):
    """The first half of each head is rotated."""
    sizes = {key: value for key, value in SIZES.items() if key != "num_key_value_heads"}
    config = transformers.GPTNeoXConfig(**(sizes | {"hidden_size": 24, "num_attention_heads": 3} | changes), rotary_pct=0.5,
                                        attn_implementation="eager")
    return transformers.AutoModelForCausalLM.from_config(config)


def gpt_neox_sequential():
    return gpt_neox(use_parallel_residual=False, attention_bias=False)


FAMILIES = {function.__name__: function for function in (
    llama3, llama_linear, llama_yarn, mistral, qwen2, qwen3, smollm3, olmo2, gemma, gemma2, gemma3, phi3, gpt_neox,
    gpt_neox_sequential)}


@contextlib.contextmanager
def everything_in_f64():
    """transformers computes angles, norms and softmaxes in f32 whatever the model's type; here nothing is."""
    names = ("float", "float32")
    kept, method = {name: getattr(torch, name) for name in names}, torch.Tensor.float
    for name in names:
        setattr(torch, name, torch.float64)
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(torch, name, value)
        torch.Tensor.float = method
