"""The tiny models of the parity reference. No two sizes of a model are equal where a mistake could otherwise hide."""

import torch
import transformers

COMMON = {"bos_token_id": 0, "eos_token_id": 0, "attn_implementation": "sdpa"}


def gpt2(**changes):
    settings = dict(
        vocab_size=67, n_positions=20, n_embd=32, n_layer=2, n_head=4, n_inner=48,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**(settings | changes), **COMMON))


def llama(**changes):
    """Grouped queries, untied."""
    settings = dict(
        vocab_size=67, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=20,
        tie_word_embeddings=False)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**(settings | changes), **COMMON))


def llama_tied():
    """The rest of what a Llama configuration can say: tied, biases, one key-value head, a head size and theta of its
    own."""
    return llama(
        num_key_value_heads=1, head_dim=6, rope_theta=500.0, rms_norm_eps=1e-5,
        attention_bias=True, mlp_bias=True, tie_word_embeddings=True)


def gpt2_small():
    """Small enough that each setting of a training has its own gradients and parameters."""
    return gpt2(vocab_size=37, n_positions=16, n_embd=16, n_layer=1, n_head=2, n_inner=24)


def llama_small():
    return llama(vocab_size=37, hidden_size=16, intermediate_size=24, num_hidden_layers=1)


def gpt2_long():
    """With room for what is generated."""
    return gpt2(n_positions=128)


def llama_long():
    return llama(max_position_embeddings=128)


def saved_buffers(model):
    """What is saved beside the parameters and does not train, such as the biases of DeepSeek's routers. Counters are none."""
    saved = model.state_dict().keys()
    return {name: buffer for name, buffer in model.named_buffers() if name in saved and buffer.is_floating_point()}


def randomize(model, generator, spread=0.2):
    """Draws every parameter anew: no zero bias, no norm of ones, weights large enough that nothing is linear."""
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() >= 2:
            parameter.data.copy_(spread * noise)
        elif name.endswith("bias"):
            parameter.data.copy_(0.1 * noise)
        else:  # the scale of a norm
            parameter.data.copy_(1.0 + 0.2 * noise)
    for buffer in saved_buffers(model).values():
        buffer.copy_(0.2 * torch.randn(buffer.shape, generator=generator))


def saved_tensors(model):
    """A copy of what is saved, by the names of the model in memory."""
    tensors = dict(model.named_parameters()) | saved_buffers(model)
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def restore(model, tensors):
    """Sets every tensor that is saved to the one of that name, in the model's own type."""
    for name, tensor in (*model.named_parameters(), *saved_buffers(model).items()):
        tensor.data.copy_(tensors[name])


def configuration(model):
    """The model's config.json, without what transformers adds on its own account: the file is to be read, and stays
    as it is when transformers changes."""
    config = model.config.to_diff_dict()
    for key in ("transformers_version", "dtype", "bos_token_id", "eos_token_id", "use_cache"):
        config.pop(key, None)
    config["architectures"] = [type(model).__name__]
    for key in getattr(model, "unpublished_fields", ()):
        del config[key]
    return dict(sorted((config | getattr(model, "published_fields", {})).items()))


def published(model, without=(), **fields):
    """The model, whose config.json has these fields as they are published, not as transformers converts them, and lacks
    those that only transformers writes."""
    model.published_fields, model.unpublished_fields = fields, without
    return model


def named_as_saved(model, tensors):
    """Tensors by the names that weights files have, which are not those of transformers 5's parameters in all models."""
    # Transformers 4, with which make_lora_reference.py runs as well, has no such module.
    from transformers.core_model_loading import revert_weight_conversion
    return dict(revert_weight_conversion(model, tensors))
