#!/usr/bin/env python3
"""Makes the reference data of the parity tests with PyTorch and Hugging Face transformers.

For each of a few tiny models it writes a folder below test/parity/data (see the README there): a configuration,
initial parameters, samples, and what three steps of training must give; of some models also what other settings of the
training give, the loss on samples held out, or what the model goes on with from a prompt. The models are transformers'
own, the losses, optimizers (but Lion, which PyTorch lacks) and the clipping are PyTorch's own: nothing of dtc is used.

    python3 -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/make_parity_reference.py

The reference is computed in f64 from weights that are exact in f32, and is stored in f32. The same is done once more in
f32; the distances between the two are written down as "f32_noise": what an implementation in f32 may be off without
being wrong. Elements whose gradient is rounding and nothing else (GPT-2's key bias: softmax does not see a constant)
are left out of the parameters' distances, for AdamW makes a full step of any gradient.
"""

import argparse
import dataclasses
import json
import math
import os

import safetensors.torch
import torch

import generation
import models
from training import ADAMW, Case, evaluate, train

BATCH = 4
SEQ = 16
STEPS = 3
HELD_OUT_BATCHES = 3
# A gradient in f64 that is smaller than this, and not zero, is rounding.
ROUNDING = 1e-12
# How far PyTorch's own f32 may be from f64, relative to a tensor's largest element: a fifth of the tests' bound. An
# element near the edge of Lion's sign would be further.
MOST_NOISE = 2e-5
# The gradients of small models are small.
SMALL_ADAMW = ADAMW | {"clip_norm": 0.5}


def ignore_unevenly(labels, generator):
    """-100 in the place of labels: more of them in each row, and all of the second row of each step."""
    rows = labels.shape[0]
    share = torch.linspace(0.0, 0.8, BATCH).repeat(rows // BATCH)
    share[1::BATCH] = 1.0
    ignored = torch.rand(labels.shape, generator=generator) < share[:, None]
    return torch.where(ignored, -100, labels)


def ignore_token_more_often(labels, generator):
    """Token 7 instead of the padding of text: an index that a logit has."""
    rows = labels.shape[0]
    share = torch.linspace(0.1, 0.7, BATCH).repeat(rows // BATCH)
    ignored = torch.rand(labels.shape, generator=generator) < share[:, None]
    return torch.where(ignored, 7, labels)


def cases_of(norms, middle):
    """Each setting of a training. `norms` is a pattern for the scales of norms, `middle` for some matrices."""
    return {
        "label_smoothing": Case({"label_smoothing": 0.1}, SMALL_ADAMW),
        "z_loss": Case({"z_loss": 0.05}, SMALL_ADAMW),
        "ignored_labels": Case({"ignore_index": -100}, SMALL_ADAMW, change_labels=ignore_unevenly),
        "all_losses": Case({"label_smoothing": 0.2, "z_loss": 0.02, "ignore_index": 7}, SMALL_ADAMW,
                           change_labels=ignore_token_more_often),
        "adam": Case(optimizer=SMALL_ADAMW | {"name": "adam"}),
        "sgd": Case(optimizer={"name": "sgd", "lr": 0.2, "momentum": 0.9, "weight_decay": 0.05,
                               "clip_norm": 0.5}),
        "lion": Case(optimizer={"name": "lion", "lr": 3e-3, "beta1": 0.9, "beta2": 0.99,
                                "weight_decay": 0.3, "clip_norm": 0.5}),
        "groups": Case(optimizer=SMALL_ADAMW, freeze=[middle],
                       param_groups=[f"{norms}:weight_decay=0.3,lr_scale=0.5",
                                     "*.0.*:lr_scale=2", "*:weight_decay=0"]),
    }


# The references that are made of each model.
TRAINED = {"gpt2": models.gpt2, "llama": models.llama, "llama_tied": models.llama_tied}
SETTINGS = {"gpt2_small": (models.gpt2_small, cases_of("*.ln_?.*", "*.mlp.c_fc.*")),
            "llama_small": (models.llama_small, cases_of("*norm.weight", "*.[qk]_proj.weight"))}
GENERATED = {"gpt2_long": models.gpt2_long, "llama_long": models.llama_long}
# The seed of each model. It is another one where MOST_NOISE does not hold with the first: AdamW and Lion magnify the
# rounding of gradients near 0.
SEEDS = {"gpt2": 0, "llama": 1, "llama_tied": 2, "gpt2_small": 5, "llama_small": 6, "gpt2_long": 7,
         "llama_long": 8}


def distances(lhs, rhs, gradients=None):
    """The largest distance of two elements for each tensor, without the elements whose gradient is mere rounding."""
    result = {}
    for name in lhs:
        distance = (lhs[name].double() - rhs[name].double()).abs()
        if gradients is not None and name in gradients:
            size = gradients[name].abs()
            distance = distance[(size == 0) | (size >= ROUNDING)]
        result[name] = float(distance.max()) if distance.numel() else 0.0  # all of it is rounding
    return result


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def save(path, tensors, dtype=None):
    tensors = {name: t.to(dtype or t.dtype).contiguous() for name, t in tensors.items()}
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def draw_samples(subject, batches):
    text = torch.randint(0, subject.model.config.vocab_size, (batches * BATCH, SEQ + 1),
                         generator=subject.generator, dtype=torch.int32)
    return {"tokens": text[:, :-1], "labels": text[:, 1:]}


@dataclasses.dataclass
class Subject:
    """A model, where it is written to, and what is drawn for it."""
    folder: str
    model: torch.nn.Module
    initial: dict
    generator: torch.Generator

    @classmethod
    def begin(cls, build, folder, seed, spread=0.2):
        """Writes what does not depend on any training."""
        generator = torch.Generator().manual_seed(seed)
        model = build()
        models.randomize(model, generator, spread)
        initial = {key: p.detach().clone() for key, p in model.named_parameters()}
        os.makedirs(folder, exist_ok=True)
        write_json(os.path.join(folder, "config.json"), models.configuration(model))
        save(os.path.join(folder, "weights.safetensors"), initial)
        return cls(folder, model, initial, generator)

    def in_f64(self, parameters):
        models.restore(self.model.double(), parameters)
        return self.model

    def in_f32(self, parameters):
        models.restore(self.model.float(), parameters)
        return self.model


def make_case(subject, key, samples, case):
    """Trains from the initial parameters and writes what comes out below the model's folder, or there if `key` is empty.
    Returns the parameters at the end."""
    single = train(subject.in_f32(subject.initial), case, samples, BATCH)
    losses, norms, gradients, parameters = train(subject.in_f64(subject.initial), case, samples,
                                                 BATCH)
    assert all(norm > 1.5 * case.optimizer["clip_norm"] for norm in norms), norms
    assert all(math.isfinite(loss) for loss in losses)
    noise = {
        "loss": max(abs(a - b) for a, b in zip(losses, single[0])),
        "grad_norm": max(abs(a - b) for a, b in zip(norms, single[1])),
        "gradients": distances(gradients, single[2]),
        "parameters": distances(parameters, single[3], gradients),
    }
    for name, distance in noise["parameters"].items():
        assert distance < MOST_NOISE * parameters[name].abs().max(), (key, name, distance)

    folder = os.path.join(subject.folder, key)
    os.makedirs(folder, exist_ok=True)
    # A case has the files that differ from those of its model.
    if not key or case.change_labels:
        save(os.path.join(folder, "samples.safetensors"), samples)
    if not key or case.changes_gradients():
        save(os.path.join(folder, "gradients.safetensors"), gradients, torch.float32)
    save(os.path.join(folder, "parameters.safetensors"), parameters, torch.float32)
    write_json(os.path.join(folder, "expected.json"), {
        "batch": BATCH,
        "seq": SEQ,
        "steps": STEPS,
        **case.settings(),
        "optimizer": case.optimizer,
        "loss": losses,
        "grad_norm": norms,
        "rounding": ROUNDING,
        "f32_noise": noise,
    })
    print(f"{os.path.basename(subject.folder)}/{key}: loss {losses}, gradient norm {norms}")
    return parameters


def make_evaluation(subject, key, parameters, case):
    """The losses of batches that are not trained on, before the first step and after the last."""
    samples = draw_samples(subject, HELD_OUT_BATCHES)
    if case.change_labels:
        samples["labels"] = case.change_labels(samples["labels"], subject.generator)
    folder = os.path.join(subject.folder, key)
    save(os.path.join(folder, "held_out.safetensors"), samples)
    found = {"batch": BATCH, "seq": SEQ}
    for moment, weights in (("before", subject.initial), ("after", parameters)):
        batches = evaluate(subject.in_f64(weights), case, samples, BATCH)
        counted = sum(batch["counted"] for batch in batches)
        total = sum(batch["loss"] * batch["counted"] for batch in batches)
        found[moment] = {"batches": batches, "mean": total / counted}
    write_json(os.path.join(folder, "evaluation.json"), found)
    print(f"  held out: {found['before']['mean']} -> {found['after']['mean']}")


def make_trained(build, folder, seed):
    """A model that trains with AdamW as it is."""
    subject = Subject.begin(build, folder, seed)
    samples = draw_samples(subject, STEPS)
    parameters = make_case(subject, "", samples, Case())
    make_evaluation(subject, "", parameters, Case())


def make_settings(build, cases, folder, seed):
    """A model that trains with AdamW, and again from the same weights for each case."""
    subject = Subject.begin(build, folder, seed)
    samples = draw_samples(subject, STEPS)
    make_case(subject, "", samples, Case(optimizer=SMALL_ADAMW))
    for key, case in cases.items():
        own = dict(samples)
        if case.change_labels:
            own["labels"] = case.change_labels(samples["labels"], subject.generator)
        parameters = make_case(subject, key, own, case)
        if case.change_labels:
            make_evaluation(subject, key, parameters, case)


def make_generated(build, folder, seed):
    """A model that goes on from prompts; with larger weights it repeats itself less."""
    subject = Subject.begin(build, folder, seed, spread=0.4)
    found = generation.generate(subject.in_f64(subject.initial), subject.generator)
    write_json(os.path.join(folder, "generation.json"), found)
    for prompt in found["prompts"]:
        print(f"{os.path.basename(folder)}: {prompt['prompt']}: margin "
              f"{prompt['smallest_margin']}, {len(set(prompt['generated']))} tokens")


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=os.path.join(root, "test", "parity", "data"),
                        help="the folder to write to (default: test/parity/data)")
    parser.add_argument("models", nargs="*", choices=[[], *SEEDS], default=[],
                        help="the models to make the data of (default: all)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in arguments.models or SEEDS:
        folder, seed = os.path.join(arguments.output, name), SEEDS[name]
        if name in TRAINED:
            make_trained(TRAINED[name], folder, seed)
        elif name in SETTINGS:
            make_settings(*SETTINGS[name], folder, seed)
        else:
            make_generated(GENERATED[name], folder, seed)


if __name__ == "__main__":
    main()
