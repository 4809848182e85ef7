#!/usr/bin/env python3
"""Makes the reference data of the parity test of LoRA with PyTorch, Hugging Face transformers and PEFT.

For some of the models of make_parity_reference.py, whose configurations, weights and samples it reads, it writes a folder
lora_<name> below test/parity/data (see the README there): adapters, and what three steps of training them must give.

    python3 -m venv venv && venv/bin/pip install -r scripts/reference/requirements-lora.txt
    venv/bin/python scripts/reference/make_lora_reference.py

The experts of gpt-oss are one tensor, to which PEFT adds an adapter by "target_parameters"; in these nothing is computed in
f32. As there, the reference is computed in f64 and once more in f32, and the distance is "f32_noise". PEFT's own initial
values are replaced by random ones: with a lora_B of zeros the first gradient of lora_A would be zero.

In transformers 4 each expert of a mixture has linear layers of its own, beside which PEFT puts adapters; in transformers 5
the experts of a layer are one tensor. With transformers 4 this makes the data of the mixtures instead, in which nothing
is computed in f32:

    python3 -m venv venv4 && venv4/bin/pip install -r scripts/reference/requirements-lora-experts.txt
    venv4/bin/python scripts/reference/make_lora_reference.py
"""

import argparse
import contextlib
import os

import peft
import safetensors.torch
import torch
import transformers

from families import everything_in_f64
from make_parity_reference import BATCH, SEQ, STEPS, distances, save, write_json
from routing import Margin
from training import ADAMW

# 10 / 3 is no number that few binary digits hold; the first model has adapters everywhere, the second in some layers.
LORA = {
    "gpt2": {"r": 3, "lora_alpha": 10, "target_modules": ["c_attn", "c_fc", "c_proj", "lm_head"]},
    "llama": {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj", "o_proj", "mlp.down_proj"]},
}
# The first has adapters beside all layers of experts and the router, the second also beside those of a MLP without experts,
# and not beside gates; the third beside experts and the one that all tokens go to, whose layers have the same names; the
# fourth beside the router, and no experts.
MIXTURES = {
    "mixtral_narrow": {"r": 2, "lora_alpha": 3, "target_modules": ["q_proj", "gate", "w1", "w2", "w3"]},
    "qwen3_moe_narrow": {"r": 3, "lora_alpha": 10, "target_modules": ["o_proj", "up_proj", "down_proj"]},
    "deepseek_v3_narrow": {"r": 2, "lora_alpha": 5, "target_modules": ["gate_proj", "down_proj"]},
    "olmoe_narrow": {"r": 3, "lora_alpha": 5, "target_modules": ["v_proj", "gate"]},
}
# Experts in one tensor: the first has adapters of both tensors, the second of the last one alone.
TENSORS = {
    "gpt_oss_narrow": {"r": 2, "lora_alpha": 3, "target_modules": ["q_proj"],
                       "target_parameters": ["gate_up_proj", "down_proj"]},
    "gpt_oss_uneven": {"r": 3, "lora_alpha": 10, "target_modules": ["o_proj"],
                       "target_parameters": ["experts.down_proj"]},
}
# The gradients of adapters of small models are small.
MIXTURE_ADAMW = ADAMW | {"clip_norm": 0.25}
# How far a router's score that is chosen is at least from one that is not: rounding must not choose another expert.
LEAST_MARGIN = 1e-5


def configuration_of(folder, is_mixture):
    config = transformers.AutoConfig.from_pretrained(folder, attn_implementation="eager" if is_mixture else "sdpa")
    if is_mixture and transformers.__version__ < "5":
        # As transformers 5 writes the number of experts and the base of rotary positions.
        for key in ("num_experts", "n_routed_experts"):
            if hasattr(config, key):
                setattr(config, key, getattr(config, "num_local_experts", getattr(config, key)))
        assert config.rope_parameters["rope_type"] == "default"
        assert config.rope_theta == config.rope_parameters["rope_theta"]
    if is_mixture:
        config._experts_implementation = "eager"
        config.output_router_logits = False  # the loss is that of the tokens alone
    return config


def load(folder, name, weights, dtype):
    config = configuration_of(folder, name in MIXTURES | TENSORS)
    model = transformers.AutoModelForCausalLM.from_config(config)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    model = peft.get_peft_model(model, peft.LoraConfig(**(LORA | MIXTURES | TENSORS)[name]))
    return model.to(dtype)


def adapters_of(model):
    """The adapters by the names of PEFT's files, without the base's own weights of an adapted output projection."""
    state = peft.get_peft_model_state_dict(model, save_embedding_layers=False)
    return {key: value.detach().clone() for key, value in state.items()}


def parameters_of(model):
    """The parameters that train by the names of PEFT's files, in which they are not named for the adapter "default"."""
    return {key.replace(".default", ""): p for key, p in model.named_parameters() if p.requires_grad}


def train(model, samples, settings):
    """Trains for STEPS steps. Returns the losses, the norms of the gradients before clipping, the gradients of the
    first step before clipping and the adapters at the end; None if a parameter has no gradient."""
    trained = parameters_of(model)
    optimizer = torch.optim.AdamW(
        trained.values(), lr=settings["lr"], betas=(settings["beta1"], settings["beta2"]),
        eps=settings["eps"], weight_decay=settings["weight_decay"])
    model.train()
    losses, norms, gradients = [], [], None
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        tokens, labels = samples["tokens"][rows].long(), samples["labels"][rows].long()
        logits = model(input_ids=tokens, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        if any(p.grad is None for p in trained.values()):
            return None  # an expert without a token: PyTorch leaves its adapter as it is, without a decay of weights
        if gradients is None:
            gradients = {name: p.grad.clone() for name, p in trained.items()}
        norms.append(float(torch.nn.utils.clip_grad_norm_(trained.values(), settings["clip_norm"])))
        losses.append(float(loss.detach()))
        optimizer.step()
    return losses, norms, gradients, adapters_of(model)


def make(name, source, folder, seed):
    """The data of one model; False if an expert has no token with this seed, or rounding could choose another one."""
    is_exact = name in MIXTURES | TENSORS
    settings = MIXTURE_ADAMW if is_exact else ADAMW
    generator = torch.Generator().manual_seed(seed)
    samples, weights = (safetensors.torch.load_file(os.path.join(source, file + ".safetensors"))
                        for file in ("samples", "weights"))
    single = load(source, name, weights, torch.float32)
    initial = {}
    for key, parameter in parameters_of(single).items():
        parameter.data.copy_(0.2 * torch.randn(parameter.shape, generator=generator))
        initial[key] = parameter.detach().clone()
    assert initial.keys() == adapters_of(single).keys()
    in_single = train(single, samples, settings)
    with everything_in_f64() if is_exact else contextlib.nullcontext(), Margin() as routing:
        double = load(source, name, weights, torch.float64)
        for key, parameter in parameters_of(double).items():
            parameter.data.copy_(initial[key])
        base = {key: p.detach().clone() for key, p in double.named_parameters() if not p.requires_grad}
        in_double = train(double, samples, settings)
    if not in_single or not in_double or routing.margin < LEAST_MARGIN:
        return False
    losses, norms, gradients, parameters = in_double
    assert all(norm > 1.2 * settings["clip_norm"] for norm in norms), norms
    assert all(torch.equal(base[key], p) for key, p in double.named_parameters() if key in base)

    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "adapters.safetensors"), initial)
    save(os.path.join(folder, "gradients.safetensors"), gradients, None if is_exact else torch.float32)
    save(os.path.join(folder, "parameters.safetensors"), parameters, torch.float32)
    write_json(os.path.join(folder, "expected.json"), {
        "base": name,
        "batch": BATCH,
        "seq": SEQ,
        "steps": STEPS,
        **({"exact": True, "routing_margin": routing.margin} if is_exact else {}),
        "lora": (LORA | MIXTURES | TENSORS)[name],
        "optimizer": settings,
        "loss": losses,
        "grad_norm": norms,
        "f32_noise": {
            "loss": max(abs(a - b) for a, b in zip(losses, in_single[0])),
            "grad_norm": max(abs(a - b) for a, b in zip(norms, in_single[1])),
            "gradients": distances(gradients, in_single[2]),
            "parameters": distances(parameters, in_single[3]),
        },
    })
    print(f"{name}: seed {seed}, loss {losses}, gradient norm {norms}")
    return True


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    data = os.path.join(root, "test", "parity", "data")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=data, help="the folder to write to (default: test/parity/data)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for seed, name in enumerate(MIXTURES if transformers.__version__ < "5" else LORA | TENSORS):
        if not any(make(name, os.path.join(data, name), os.path.join(arguments.output, "lora_" + name), seed + number)
                   for number in range(0, 20, 3)):
            raise SystemExit(f"{name}: no seed has a token for each expert and clear choices")


if __name__ == "__main__":
    main()
