"""The tiny models of the parity reference of families: each has what distinguishes its family, at sizes at which it acts
on sequences of 16 tokens, or on images of a few patches. No two sizes of a model are equal where a mistake could otherwise hide."""

import contextlib
import copy

import torch
import transformers

import models

SIZES = dict(
    vocab_size=29, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0,
    pad_token_id=None)


def family(name, attention="eager", **changes):
    # A copy, for transformers writes into the objects that it is given.
    settings = copy.deepcopy(SIZES | changes)
    config = getattr(transformers, name + "Config")(**settings, attn_implementation=attention)
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
    defaults = {"hidden_size": 24, "num_attention_heads": 3, "rotary_pct": 0.5}
    config = transformers.GPTNeoXConfig(**(sizes | defaults | changes), attn_implementation="eager")
    return transformers.AutoModelForCausalLM.from_config(config)


def gpt_neox_sequential():
    return gpt_neox(use_parallel_residual=False, attention_bias=False)


# transformers keeps the scale of Gemma's embeddings, the root of the hidden size, in f32, so that it is a whole number
# here, but not in gemma_uneven and gemma2_uneven, whose data are of transformers 4.57.3.
# Odd configurations: one key-value head and heads of another size than the others' quotient, or sizes that two devices
# do not divide; and of each family what its ordinary one leaves out.
NARROW = dict(vocab_size=31, hidden_size=12, intermediate_size=18, num_key_value_heads=1, head_dim=6)
UNEVEN = dict(vocab_size=31, hidden_size=18, intermediate_size=13, num_attention_heads=3, num_key_value_heads=3,
              head_dim=6, num_hidden_layers=3)
# Attention with latent keys and values, and shared experts. The parts of a head that are rotated and not, and values,
# have sizes of their own; those of the latents and of keys of DeepSeek V2 must be even.
LATENT = dict(num_key_value_heads=4, kv_lora_rank=8, q_lora_rank=None, qk_nope_head_dim=4, qk_rope_head_dim=6, v_head_dim=3,
              moe_intermediate_size=7, n_shared_experts=2, first_k_dense_replace=1)
UNEVEN_LATENT = LATENT | dict(num_key_value_heads=3, kv_lora_rank=10, q_lora_rank=11, qk_nope_head_dim=6,
                              qk_rope_head_dim=4, head_dim=4, v_head_dim=9, n_shared_experts=1)
SQUARE, UNEVEN_SQUARE = NARROW | {"hidden_size": 16}, UNEVEN | {"hidden_size": 36}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 4.0, "beta_slow": 0.25}
LINEAR = {"rope_type": "linear", "factor": 2.0}
SLIDING, FULL = "sliding_attention", "full_attention"


def longrope(original, **changes):
    """Sequences of 16 tokens are within the original positions, or beyond."""
    return family("Phi3", original_max_position_embeddings=original, rope_scaling={
        "type": "longrope", "short_factor": [1.0, 1.25, 1.5], "long_factor": [1.5, 3.0, 7.0]}, **changes)


def gpt_neox_narrow():
    return gpt_neox(hidden_size=32, num_attention_heads=2, intermediate_size=18, hidden_act="relu", rotary_pct=0.25,
                    tie_word_embeddings=True)


def gpt2(**changes):
    settings = dict(vocab_size=31, n_positions=20, n_embd=16, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
                    attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    config = transformers.GPT2Config(**(settings | changes), attn_implementation="eager")
    return transformers.GPT2LMHeadModel(config)


def encoder(name, **changes):
    sizes = dict(vocab_size=29, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
                 max_position_embeddings=24, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    config = getattr(transformers, name + "Config")(**(sizes | changes), attn_implementation="eager")
    return transformers.AutoModelForMaskedLM.from_config(config)


def bert():
    return encoder("Bert")


def roberta():
    return encoder("Roberta", type_vocab_size=1)


def vit(**changes):
    """Nine patches and the class token."""
    settings = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, image_size=12,
                    patch_size=4, num_labels=5)
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(**(settings | changes), attn_implementation="eager"))


LONG = {"rope_type": "longrope", "factor": 2.0, "original_max_position_embeddings": 8, "short_factor": [1.0] * 3,
        "long_factor": [1.5, 3.0, 7.0]}


def tied_bias(model):
    """A masked language model as transformers 4 has it: the bias of the head is the one of the layer around it, although
    the embeddings are not tied."""
    around = model.cls.predictions if hasattr(model, "cls") else model.lm_head
    around.decoder.bias = around.bias
    return models.published(model, transformers_version="4.57.3")


def mixture(name, **changes):
    """Each expert is computed by itself, in a loop."""
    return family(name, experts_implementation="eager", **changes)


def deepseek(name, **changes):
    """transformers writes two sizes of heads that follow from others."""
    return models.published(mixture(name, **changes), without=["head_dim", "qk_head_dim"])


UNEVEN_ENCODER = dict(vocab_size=31, hidden_size=18, intermediate_size=13, num_attention_heads=3, num_hidden_layers=3)
ODD = {
    # Fields of a family that transformers 5 reads, and fields that it does not read.
    "bert_untied": lambda: encoder("Bert", hidden_size=12, num_attention_heads=1, tie_word_embeddings=False),
    "roberta_relu": lambda: encoder("Roberta", hidden_size=12, num_attention_heads=1, hidden_act="relu",
                                    tie_word_embeddings=False),
    "gemma_published": lambda: models.published(
        family("Gemma", hidden_act="gelu", tie_word_embeddings=True, **SQUARE), hidden_act="gelu", hidden_activation=None),
    "gemma2_published": lambda: models.published(
        family("Gemma2", sliding_window=3, **SQUARE), hidden_act="gelu", partial_rotary_factor=0.5),
    "gemma3_capped": lambda: family("Gemma3Text", query_pre_attn_scalar=9, sliding_window=4, attn_logit_softcapping=1.5,
                                    **SQUARE),
    "llama_longrope": lambda: family("Llama", rope_scaling=LONG, **NARROW),
    "llama_unread": lambda: family("Llama", partial_rotary_factor=2 / 3, sliding_window=3, layer_types=[SLIDING, FULL],
                                   **NARROW),
    "qwen3_yarn": lambda: family("Qwen3", rope_scaling=YARN | {"attn_factor": 0.5, "finetuned": True}, **NARROW),
    "phi3_yarn": lambda: family("Phi3", original_max_position_embeddings=8, rope_scaling={
        "type": "yarn", "short_factor": [1.0] * 3, "long_factor": [1.5, 3.0, 7.0]}, **(NARROW | {"hidden_size": 24})),
    "smollm3_windows": lambda: family("SmolLM3", no_rope_layers=[0, 1], sliding_window=4, layer_types=[FULL, SLIDING],
                                      **NARROW),
    "bert_narrow": lambda: tied_bias(encoder("Bert", hidden_size=12, num_attention_heads=1, type_vocab_size=3,
                                             hidden_act="relu", tie_word_embeddings=False)),
    "bert_uneven": lambda: encoder("Bert", hidden_act="gelu_new", layer_norm_eps=1e-3, pad_token_id=5,
                                   **UNEVEN_ENCODER),
    # Images and patches that are no squares.
    "vit_narrow": lambda: vit(hidden_size=12, num_attention_heads=1, num_channels=1, image_size=[6, 12], patch_size=[2, 3],
                              qkv_bias=False, hidden_act="relu", num_labels=3),
    "vit_uneven": lambda: vit(hidden_size=18, intermediate_size=13, num_attention_heads=3, num_hidden_layers=3,
                              image_size=[9, 6], patch_size=3, hidden_act="gelu_new", layer_norm_eps=1e-3,
                              initializer_range=0.1, num_labels=7),
    "roberta_narrow": lambda: encoder("Roberta", hidden_size=12, num_attention_heads=1, initializer_range=0.1, pad_token_id=4),
    "roberta_uneven": lambda: tied_bias(encoder("Roberta", layer_norm_eps=1e-3, pad_token_id=0, tie_word_embeddings=False,
                                                max_position_embeddings=17, **UNEVEN_ENCODER)),
    "gemma_narrow": lambda: family("Gemma", hidden_act="gelu_pytorch_tanh", attention_bias=True,
                                   tie_word_embeddings=True, **SQUARE),
    "gemma_uneven": lambda: family("Gemma", hidden_act="gelu_pytorch_tanh", **(UNEVEN | {"head_dim": 8})),
    "gemma2_narrow": lambda: family("Gemma2", query_pre_attn_scalar=9, sliding_window=3, attn_logit_softcapping=None,
                                    final_logit_softcapping=5.0, layer_types=[FULL, SLIDING], attention_bias=True,
                                    tie_word_embeddings=True, **SQUARE),
    "gemma2_uneven": lambda: family("Gemma2", query_pre_attn_scalar=5, sliding_window=5, attn_logit_softcapping=2.0,
                                    final_logit_softcapping=None, **UNEVEN),
    "gemma3_narrow": lambda: family("Gemma3Text", query_pre_attn_scalar=9, sliding_window=4,
                                    final_logit_softcapping=3.0, layer_types=[SLIDING, SLIDING], attention_bias=True,
                                    tie_word_embeddings=True, **SQUARE),
    "gemma3_uneven": lambda: family("Gemma3Text", query_pre_attn_scalar=5, sliding_window=5, rope_local_base_freq=300.0,
                                    layer_types=[FULL, SLIDING, SLIDING], **UNEVEN_SQUARE),
    "gpt2_inverse": lambda: gpt2(activation_function="relu", scale_attn_by_inverse_layer_idx=True),
    "gpt2_uneven": lambda: gpt2(n_embd=18, n_head=3, n_layer=3, n_inner=13, scale_attn_weights=False,
                                layer_norm_epsilon=1e-3, tie_word_embeddings=False),
    "gpt_neox_narrow": gpt_neox_narrow,
    "mistral_narrow": lambda: family("Mistral", sliding_window=None, tie_word_embeddings=True, **NARROW),
    "mistral_uneven": lambda: family("Mistral", sliding_window=3, rope_theta=300.0, rope_scaling=LINEAR, **UNEVEN),
    "olmo2_narrow": lambda: family("Olmo2", attention_bias=True, tie_word_embeddings=True, **NARROW),
    "olmo2_uneven": lambda: family("Olmo2", rope_scaling={"type": "linear", "factor": 2.0}, hidden_act="gelu", **UNEVEN),
    "phi3_narrow": lambda: longrope(64, sliding_window=None, **(NARROW | {"hidden_size": 24})),
    "phi3_uneven": lambda: longrope(8, sliding_window=5, tie_word_embeddings=True, **UNEVEN),
    "qwen2_narrow": lambda: family("Qwen2", use_sliding_window=True, sliding_window=5, layer_types=[SLIDING, FULL],
                                   **NARROW),
    "qwen2_uneven": lambda: family("Qwen2", rope_scaling=YARN, hidden_act="gelu", tie_word_embeddings=True, **UNEVEN),
    "qwen3_narrow": lambda: family("Qwen3", attention_bias=True, use_sliding_window=True, sliding_window=5,
                                   max_window_layers=1, tie_word_embeddings=True, **NARROW),
    "qwen3_uneven": lambda: family("Qwen3", rope_scaling=YARN, rms_norm_eps=1e-3, **UNEVEN),
    "smollm3_narrow": lambda: family("SmolLM3", no_rope_layers=[0, 1], mlp_bias=True, **NARROW),
    "smollm3_uneven": lambda: family("SmolLM3", no_rope_layer_interval=2, use_sliding_window=True, sliding_window=4,
                                     tie_word_embeddings=True, **UNEVEN),
    # Mixtures of experts: a layer has 5 or 6 experts, and a token selects 1, 2 or 3. Where output_router_logits is true, the loss
    # that balances the experts is part of the loss.
    "mixtral_narrow": lambda: mixture("Mixtral", num_local_experts=5, num_experts_per_tok=2, sliding_window=5,
                                      output_router_logits=True, router_aux_loss_coef=0.02, **NARROW),
    "mixtral_uneven": lambda: mixture("Mixtral", num_local_experts=6, num_experts_per_tok=3, rope_theta=300.0,
                                      rope_scaling=LINEAR, router_aux_loss_coef=0.02, tie_word_embeddings=True, **UNEVEN),
    # Every other layer is dense, and of those below max_window_layers every other one has a window.
    "qwen2_moe_narrow": lambda: models.published(
        mixture("Qwen2Moe", num_experts=5, num_experts_per_tok=3, norm_topk_prob=True, moe_intermediate_size=7,
                shared_expert_intermediate_size=9, decoder_sparse_step=2, use_sliding_window=True, sliding_window=5,
                max_window_layers=2, output_router_logits=True, router_aux_loss_coef=0.05,
                **(NARROW | {"num_hidden_layers": 4})),
        without=["layer_types"]),
    "qwen2_moe_uneven": lambda: mixture("Qwen2Moe", num_experts=6, num_experts_per_tok=1, moe_intermediate_size=11,
                                        shared_expert_intermediate_size=5, mlp_only_layers=[1], qkv_bias=False,
                                        rope_scaling=YARN, hidden_act="gelu", tie_word_embeddings=True, **UNEVEN),
    "qwen3_moe_narrow": lambda: mixture("Qwen3Moe", num_experts=6, num_experts_per_tok=2, norm_topk_prob=True,
                                        moe_intermediate_size=7, mlp_only_layers=[0], attention_bias=True,
                                        use_sliding_window=True, sliding_window=5, tie_word_embeddings=True,
                                        **(NARROW | {"num_hidden_layers": 3})),
    # One of the four layers has experts; the last would be another.
    "qwen3_moe_uneven": lambda: models.published(
        mixture("Qwen3Moe", num_experts=5, num_experts_per_tok=3, moe_intermediate_size=7, decoder_sparse_step=2,
                mlp_only_layers=[3], rope_scaling=YARN, rms_norm_eps=1e-3, output_router_logits=True,
                router_aux_loss_coef=0.02, **(UNEVEN | {"num_hidden_layers": 4})),
        without=["num_local_experts"], num_experts=5),
    "olmoe_narrow": lambda: mixture("Olmoe", num_experts=5, num_experts_per_tok=2, norm_topk_prob=True,
                                    attention_bias=True, output_router_logits=True, router_aux_loss_coef=0.02,
                                    tie_word_embeddings=True, **(NARROW | {"num_attention_heads": 2})),
    # About half of the queries, keys and values are clipped.
    "olmoe_uneven": lambda: mixture("Olmoe", num_experts=6, num_experts_per_tok=1, clip_qkv=0.75, rope_scaling=LINEAR,
                                    **(UNEVEN | {"hidden_size": 24, "num_attention_heads": 6, "head_dim": 4})),
    "deepseek_v2_narrow": lambda: deepseek("DeepseekV2", n_routed_experts=5, num_experts_per_tok=3,
                                           routed_scaling_factor=1.5, **(NARROW | LATENT)),
    # Two of three groups of two experts are chosen.
    "deepseek_v2_uneven": lambda: deepseek(
        "DeepseekV2", n_routed_experts=6, num_experts_per_tok=3, topk_method="group_limited_greedy", n_group=3, topk_group=2,
        attention_bias=True, mlp_bias=True, rms_norm_eps=1e-3, rope_scaling=YARN | {"mscale": 1.0, "mscale_all_dim": 0.7},
        tie_word_embeddings=True, **(UNEVEN | UNEVEN_LATENT)),
    "deepseek_v3_narrow": lambda: deepseek("DeepseekV3", n_routed_experts=6, num_experts_per_tok=3, n_group=3, topk_group=2,
                                           num_nextn_predict_layers=0, **(NARROW | LATENT)),
    "deepseek_v3_uneven": lambda: deepseek(
        "DeepseekV3", n_routed_experts=5, num_experts_per_tok=2, n_group=1, topk_group=1, norm_topk_prob=False,
        routed_scaling_factor=0.8, rope_interleave=False, attention_bias=True, rms_norm_eps=1e-3,
        rope_scaling=YARN | {"mscale": 1.0, "mscale_all_dim": 0.7}, tie_word_embeddings=True, **(UNEVEN | UNEVEN_LATENT)),
    # The experts' gates and values are clamped, and the layers have windows as they do by default.
    "gpt_oss_narrow": lambda: models.published(
        mixture("GptOss", num_local_experts=5, num_experts_per_tok=3, sliding_window=5, swiglu_limit=1.0,
                rope_theta=5000.0, rope_scaling=YARN | {"truncate": False}, output_router_logits=True,
                router_aux_loss_coef=0.02, **NARROW),
        without=["layer_types", "swiglu_alpha"]),
    "gpt_oss_uneven": lambda: mixture(
        "GptOss", num_local_experts=6, num_experts_per_tok=2, sliding_window=3, layer_types=[FULL, SLIDING, SLIDING],
        attention_bias=False, swiglu_alpha=1.2, swiglu_limit=2.5, rope_parameters={"rope_type": "default"},
        rms_norm_eps=1e-3, tie_word_embeddings=True, **UNEVEN),
}
# An expert of these has no token in the first step.
IDLE = {"olmoe_uneven"}
# Odd configurations that go on from prompts as well.
ODD_THAT_GENERATE = {"mixtral_narrow", "gpt_oss_narrow", "gpt_oss_uneven"}
FAMILIES = {function.__name__: function for function in (
    llama3, llama_linear, llama_yarn, mistral, qwen2, qwen3, smollm3, olmo2, gemma, gemma2, gemma3, phi3, gpt_neox,
    gpt_neox_sequential, bert, roberta, vit)} | ODD


def is_encoder(name):
    """Of text."""
    return name.split("_")[0] in ("bert", "roberta")


def reads_images(name):
    return name.split("_")[0] == "vit"


def is_decoder(name):
    return not is_encoder(name) and not reads_images(name)


def is_mixture(name):
    """Of experts."""
    return name.startswith(("mixtral_", "qwen2_moe_", "qwen3_moe_", "olmoe_", "deepseek_", "gpt_oss_"))


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
