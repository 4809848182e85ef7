#!/usr/bin/env python3
"""Compares training steps of dtc.compile() with PyTorch: the models of captured_models.py, in this process.

What step.save_pretrained() writes is loaded again. Each model is trained for three steps by AdamW, Adam and SGD with momentum, from its own parameters and on other batches for
each step, on one device and on several. In f64, losses, norms of gradients and the parameters after the last step must be
PyTorch's to 1e-9; in f32, losses and norms to 1e-4, and the parameters of SGD.

    PYTHONPATH=build/python-module/python python3 scripts/reference/python_training.py [model...]
"""

import argparse
import contextlib
import itertools
import sys
import tempfile
import warnings

import models
import torch
from captured_models import MODELS
from capture import CLASSES, EXPERTS, WHOLE_BATCH, draw, ignored_of
from families import everything_in_f64

import dtc
from dtc.torch import capture

STEPS, RATE = 3, 0.01
# Adam adds eps to the root of a second moment. Where a gradient is rounding alone, as that of the bias of keys is, eps is large
# beside it in f64 and small in f32, in which such parameters move by the learning rate in any direction.
TOLERANCES = {"f64": 1e-9, "f32": 1e-4}
LAYOUTS = ({}, {"mesh": "dp=2", "zero": 1}, {"mesh": {"dp": 2, "tp": 2}}, {"mesh": "pp=2", "microbatches": 2},
           {"mesh": "auto", "devices": 8})
EXPERT_LAYOUTS = ({"mesh": "ep=2"}, {"mesh": {"dp": 2, "ep": 2}, "zero": 3})
OPTIMIZERS = {
    "adamw": (dtc.AdamW(lr=RATE, weight_decay=0, clip=0), lambda p: torch.optim.AdamW(p, RATE, betas=(0.9, 0.95), weight_decay=0)),
    "adam": (dtc.Adam(lr=RATE, weight_decay=0, clip=0, betas=(0.8, 0.9)), lambda p: torch.optim.Adam(p, RATE, betas=(0.8, 0.9))),
    "sgd": (dtc.SGD(lr=RATE, weight_decay=0, clip=0, momentum=0.9), lambda p: torch.optim.SGD(p, RATE, momentum=0.9)),
}


def batches_of(name, example, ignored):
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        batch = draw(example, CLASSES.get(name, 29), generator)
        batch["labels"].flatten()[1::5] = ignored
        yield batch


def train_with_torch(model, loss, batches, make):
    """The loss and the norm of the gradient of each step."""
    optimizer, results = make(model.parameters()), []
    model.train()
    for batch in batches:
        optimizer.zero_grad()
        value = loss(model, {key: each.long() if each.dtype == torch.int32 else each for key, each in batch.items()})
        value.backward()
        norm = torch.nn.utils.get_total_norm([each.grad for each in model.parameters() if each.grad is not None])
        results.append((float(value.detach()), float(norm)))
        optimizer.step()
    return results


def difference(found, wanted):
    return abs(found - wanted) / max(abs(wanted), 1e-3)


def in_double(batch):
    return {key: each.double() if each.is_floating_point() else each for key, each in batch.items()}


def check_saved(name, step, model, batch):
    """Whether from_pretrained() and load_state_dict() load what save_pretrained() has written, with the names and types of the
    module."""
    if not hasattr(model, "save_pretrained"):
        return
    with tempfile.TemporaryDirectory() as folder:
        step.save_pretrained(folder)
        again, after = type(model).from_pretrained(folder).state_dict(), step.state_dict()
        before = step.evaluate(batch)
        step.load_state_dict(folder)
        if step.evaluate(batch) != before:
            raise SystemExit(f"{name}: what save_pretrained() has written gives another loss")
    if list(again) != list(after) or any(again[key].dtype != each.dtype or not torch.equal(again[key], each)
                                         for key, each in after.items()):
        raise SystemExit(f"{name}: what save_pretrained() has written is not the state_dict")


def compare(name, dtype, optimizer, layout):
    """The largest difference of losses and norms, and of parameters."""
    ours, theirs = OPTIMIZERS[optimizer]
    torch.manual_seed(0)
    model, loss, example = MODELS[name]()
    if hasattr(model, "begin"):  # drawn as in capture.py: from the ones that some of them have, SGD diverges
        models.randomize(model, torch.Generator().manual_seed(0))
        model.begin()
    if dtype == "f64":
        model, example = model.double(), in_double(example)
    # The losses of transformers convert logits to f32.
    with everything_in_f64() if dtype == "f64" else contextlib.nullcontext():
        step = dtc.compile(model, loss, example, optimizer=ours, threads=1, **layout)
        batches = list(batches_of(name, example, ignored_of(capture(model, loss, example).text)))
        found = [(metrics["loss"], metrics["grad_norm"]) for metrics in map(step, batches)]
        wanted = train_with_torch(model, loss, batches, theirs)
    values = max(difference(a, b) for pair in zip(found, wanted, strict=True) for a, b in zip(*pair, strict=True))
    after, expected = step.state_dict(), model.state_dict()
    if list(after) != list(expected):
        raise SystemExit(f"{name}: the state_dict has other names than the module's")
    if not layout or "mesh" in layout and "tp" in layout["mesh"]:
        check_saved(name, step, model, batches[0])
    if dtype == "f32" and optimizer != "sgd":
        return values, 0
    return values, max(float((after[key] - each).abs().max() / max(float(each.abs().max()), 1e-2))
                       for key, each in expected.items() if each.is_floating_point())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="the models (default: all)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    good = True
    for name in arguments.models or MODELS:
        layouts = LAYOUTS + (EXPERT_LAYOUTS if name in EXPERTS else ())
        for dtype, optimizer, layout in itertools.product(TOLERANCES, OPTIMIZERS, layouts):
            # Of what mixes samples the planner compiles no strategy.
            if name in WHOLE_BATCH and ("microbatches" in layout or layout.get("mesh") == "auto"):
                continue
            values, parameters = compare(name, dtype, optimizer, layout)
            good &= max(values, parameters) <= TOLERANCES[dtype]
            print(f"{name:10} {dtype} {optimizer:6} {layout}  losses {values:.1e}  parameters {parameters:.1e}", flush=True)
    if not good:
        sys.exit("dtc and PyTorch differ")


if __name__ == "__main__":
    main()
