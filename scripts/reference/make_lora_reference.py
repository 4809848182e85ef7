#!/usr/bin/env python3
"""Makes the reference data of the parity test of LoRA with PyTorch, Hugging Face transformers and PEFT.

For some of the models of make_parity_reference.py, whose configurations, weights and samples it reads, it writes a folder
lora_<name> below test/parity/data (see the README there): adapters, and what three steps of training them must give.

    python3 -m venv venv && venv/bin/pip install -r scripts/reference/requirements-lora.txt
    venv/bin/python scripts/reference/make_lora_reference.py

As there, the reference is computed in f64 and once more in f32, and the distance is "f32_noise". PEFT's own initial
values are replaced by random ones: with a lora_B of zeros the first gradient of lora_A would be zero.
"""

import argparse
import os

import peft
import safetensors.torch
import torch
import transformers

from make_parity_reference import BATCH, OPTIMIZER, SEQ, STEPS, distances, save, write_json

# 10 / 3 is no number that few binary digits hold; the first model has adapters everywhere, the second in some layers.
LORA = {
    "gpt2": {"r": 3, "lora_alpha": 10, "target_modules": ["c_attn", "c_fc", "c_proj", "lm_head"]},
    "llama": {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj", "o_proj", "mlp.down_proj"]},
}


def load(folder, name, dtype):
    config = transformers.AutoConfig.from_pretrained(folder, attn_implementation="sdpa")
    model = transformers.AutoModelForCausalLM.from_config(config)
    weights = safetensors.torch.load_file(os.path.join(folder, "weights.safetensors"))
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    model = peft.get_peft_model(model, peft.LoraConfig(**LORA[name]))
    return model.to(dtype)


def adapters_of(model):
    """The adapters by the names of PEFT's files, without the base's own weights of an adapted output projection."""
    state = peft.get_peft_model_state_dict(model, save_embedding_layers=False)
    return {key: value.detach().clone() for key, value in state.items()}


def parameters_of(model):
    """The parameters that train by the names of PEFT's files, in which they are not named for the adapter "default"."""
    return {key.replace(".default", ""): p for key, p in model.named_parameters() if p.requires_grad}


def train(model, samples):
    """Trains for STEPS steps. Returns the losses, the norms of the gradients before clipping, the gradients of the
    first step before clipping and the adapters at the end."""
    trained = parameters_of(model)
    optimizer = torch.optim.AdamW(
        trained.values(), lr=OPTIMIZER["lr"], betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]),
        eps=OPTIMIZER["eps"], weight_decay=OPTIMIZER["weight_decay"])
    model.train()
    losses, norms, gradients = [], [], None
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        tokens, labels = samples["tokens"][rows].long(), samples["labels"][rows].long()
        logits = model(input_ids=tokens, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        if gradients is None:
            gradients = {name: p.grad.clone() for name, p in trained.items()}
        norms.append(float(torch.nn.utils.clip_grad_norm_(trained.values(), OPTIMIZER["clip_norm"])))
        losses.append(float(loss.detach()))
        optimizer.step()
    return losses, norms, gradients, adapters_of(model)


def make(name, source, folder, seed):
    generator = torch.Generator().manual_seed(seed)
    samples = safetensors.torch.load_file(os.path.join(source, "samples.safetensors"))
    single = load(source, name, torch.float32)
    initial = {}
    for key, parameter in parameters_of(single).items():
        parameter.data.copy_(0.2 * torch.randn(parameter.shape, generator=generator))
        initial[key] = parameter.detach().clone()
    assert initial.keys() == adapters_of(single).keys()
    double = load(source, name, torch.float64)
    for key, parameter in parameters_of(double).items():
        parameter.data.copy_(initial[key])
    base = {key: p.detach().clone() for key, p in double.named_parameters() if not p.requires_grad}

    in_single = train(single, samples)
    losses, norms, gradients, parameters = train(double, samples)
    assert all(norm > 1.2 * OPTIMIZER["clip_norm"] for norm in norms), norms
    assert all(torch.equal(base[key], p) for key, p in double.named_parameters() if key in base)

    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "adapters.safetensors"), initial)
    save(os.path.join(folder, "gradients.safetensors"), gradients, torch.float32)
    save(os.path.join(folder, "parameters.safetensors"), parameters, torch.float32)
    write_json(os.path.join(folder, "expected.json"), {
        "base": name,
        "batch": BATCH,
        "seq": SEQ,
        "steps": STEPS,
        "lora": LORA[name],
        "optimizer": OPTIMIZER,
        "loss": losses,
        "grad_norm": norms,
        "f32_noise": {
            "loss": max(abs(a - b) for a, b in zip(losses, in_single[0])),
            "grad_norm": max(abs(a - b) for a, b in zip(norms, in_single[1])),
            "gradients": distances(gradients, in_single[2]),
            "parameters": distances(parameters, in_single[3]),
        },
    })
    print(f"{name}: loss {losses}, gradient norm {norms}")


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    data = os.path.join(root, "test", "parity", "data")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=data, help="the folder to write to (default: test/parity/data)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for seed, name in enumerate(LORA):
        make(name, os.path.join(data, name), os.path.join(arguments.output, "lora_" + name), seed)


if __name__ == "__main__":
    main()
