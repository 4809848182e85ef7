#!/usr/bin/env python3
"""Captures the models of captured_models.py and compares what dtc computes of them with PyTorch.

Each is captured with python/dtc, converted by dtc-import, compiled for one device and for several, and trained for three
steps of plain SGD from the same parameters on the same samples. The loss of each step, the gradients of the first, and the
parameters after the last must be those of PyTorch in f64: relative to 1e-9 in f64 and to 1e-4 in f32.

    python3 -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/capture.py --bin build/release/bin [model...]
    venv/bin/python scripts/reference/capture.py --record test/compiler/import/torch/captures

Models that cannot be captured have to be refused with the error that says why.
With --record it writes the captures in f32, which the tests convert and compile without PyTorch, and compares nothing.
"""

import argparse
import os
import pathlib
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "python"))  # after PYTHONPATH, which may name a build of the package

import models  # noqa: E402
from captured_models import MODELS, REFUSED, Tied  # noqa: E402
from dtc.torch import CaptureError, capture, empty_weights  # noqa: E402
from families import everything_in_f64  # noqa: E402
from sgd_steps import LAYOUTS, LEARNING_RATE, SGD, STEPS, TOLERANCES, SgdSteps  # noqa: E402

# Models that take a maximum over the samples of a batch, which microbatches do not see.
WHOLE_BATCH = ("operators",)
CLASSES = {"mlp": 5, "operators": 6}


def capture_in(name, dtype, initial=None):
    """The captured model; and the model with its loss and example, with the parameters of `initial` if there are some."""
    model, loss, batch = MODELS[name]()
    if dtype == "f64":
        model = model.double()
        batch = {key: each.double() if each.is_floating_point() else each for key, each in batch.items()}
    captured = capture(model, loss, batch)
    if initial is not None:
        models.restore(model, initial)
    return captured, model, loss, batch


def draw(batch, classes, generator):
    """Samples of the types of an example. Labels differ from tokens, and some do not count."""
    samples = {}
    for key, each in batch.items():
        if each.is_floating_point():
            samples[key] = torch.randn(each.shape, generator=generator, dtype=each.dtype)
        else:
            samples[key] = torch.randint(1, classes, each.shape, generator=generator, dtype=torch.int32)
    return samples


def ignored_of(text):
    found = text.partition("ignore_index = ")[2].partition(" ")[0]
    return int(found)


def train(model, loss, samples):
    """The losses of steps of SGD, the gradients of the first and the parameters after the last."""
    batch = {key: each.long() if each.dtype == torch.int32 else each for key, each in samples.items()}
    losses, gradients = [], None
    model.train()
    for _ in range(STEPS):
        model.zero_grad()
        value = loss(model, batch)
        value.backward()
        used = {name: each for name, each in model.named_parameters() if each.grad is not None}
        gradients = gradients or {name: each.grad.clone() for name, each in used.items()}
        losses.append(float(value.detach()))
        with torch.no_grad():
            for each in used.values():
                each -= LEARNING_RATE * each.grad
    return losses, gradients, {name: each.detach().clone() for name, each in used.items()}


def distance(wanted, found):
    """The largest of the differences, each relative to the tensor's largest element."""
    assert wanted.keys() <= found.keys(), wanted.keys() - found.keys()
    # A softmax does not change with the bias of keys: all of its gradient is rounding.
    return max(float((found[name].double() - each).abs().max() / max(float(each.abs().max()), 1e-4))
               for name, each in wanted.items())


def compare(name, dtype, layout, reference, dtc):
    """The largest relative error of losses, gradients and parameters."""
    initial, (losses, gradients, parameters) = reference
    dtc.run("dtc-compile", "m.mlir", *SGD, *layout.split(), "-o", "m.plan")
    _, moved = dtc.steps(1, 1.0)
    found = {key: initial[key].double() - each.double() for key, each in moved.items()}
    found_losses, after = dtc.steps(STEPS, LEARNING_RATE)
    errors = (max(abs(a / b - 1) for a, b in zip(found_losses, losses, strict=True)), distance(gradients, found),
              distance(parameters, after))
    print(f"{name:8} {dtype} {layout or 'one device':32} loss {errors[0]:.1e}  gradients {errors[1]:.1e}  "
          f"parameters {errors[2]:.1e}", flush=True)
    return max(errors) <= TOLERANCES[dtype]


def check(name, programs, layouts, seed):
    generator = torch.Generator().manual_seed(seed)
    model, _, example = MODELS[name]()
    models.randomize(model, generator)
    getattr(model, "begin", lambda: None)()
    initial = models.saved_tensors(model)
    samples = draw(example, CLASSES.get(name, 29), generator)
    good = True
    with everything_in_f64():
        captured, model, loss, batch = capture_in(name, "f64", initial)
        ignored = ignored_of(captured.text)
        flat = samples["labels"].flatten()
        flat[1::5] = ignored
        samples = {key: each.double() if each.is_floating_point() else each for key, each in samples.items()}
        results = train(model, loss, samples)
    if constant := [key for key, each in results[1].items() if not each.any()]:
        raise SystemExit(f"{name}: the loss does not depend on {', '.join(constant)}: nothing would be compared")
    texts = {"f64": captured.text, "f32": capture_in(name, "f32")[0].text}
    for dtype, source in texts.items():
        kind = torch.float64 if dtype == "f64" else torch.float32
        with tempfile.TemporaryDirectory() as folder:
            dtc = SgdSteps(programs, folder, load_file)
            weights = {key: each.to(kind).clone() for key, each in initial.items()}
            save_file(weights, dtc.folder / "initial.safetensors")
            save_file({key: (each.to(kind) if each.is_floating_point() else each).contiguous()
                       for key, each in samples.items()}, dtc.folder / "samples.safetensors")
            (dtc.folder / "captured.mlir").write_text(source)
            dtc.run("dtc-import", "captured.mlir", "-o", "m.mlir")
            for layout in layouts:
                if name in WHOLE_BATCH and "micro" in layout:
                    continue
                good &= compare(name, dtype, layout, (weights, results), dtc)
    return good


def is_refused(name):
    make, expected, *losses = REFUSED[name]
    loss = losses[0] if losses else lambda model, batch: model(batch["x"]).mean()
    try:
        capture(make(), loss, {"x": torch.zeros(3, 4)})
    except CaptureError as error:
        print(f"{name:8} is refused: {str(error).splitlines()[0]}")
        return expected in str(error)
    print(f"{name:8} is captured")
    return False


def is_tied_without_memory():
    """Whether a model without memory gives the capture that it gives with it, in which a tied parameter is one."""
    def text(model):
        return capture(model, lambda model, batch: model(batch["x"]).mean(), {"x": torch.zeros(3, 4)}).text

    with empty_weights():
        model = Tied()
    found = text(model)
    return found == text(Tied()) and found.count("torch.parameter =") == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"), help="the folder of dtc's programs")
    parser.add_argument("--record", help="write the captures to this folder instead of comparing")
    parser.add_argument("--layout", action="append", choices=LAYOUTS, help="only this layout; may be given again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("models", nargs="*", help="the models (default: all)")
    arguments = parser.parse_args()
    for name in arguments.models:
        if name not in MODELS:
            parser.error(f"there is no model '{name}', expected one of {', '.join(MODELS)}")
    torch.set_num_threads(1)
    os.chdir(ROOT)  # paths in captures are relative to it
    names = arguments.models or list(MODELS)
    if arguments.record:
        for name in names:
            capture_in(name, "f32")[0].write(os.path.join(arguments.record, f"{name}.mlir"))
        return
    results = [check(name, arguments.bin, arguments.layout or LAYOUTS, arguments.seed) for name in names]
    results += [is_refused(name) for name in ([] if arguments.models else REFUSED)]
    results += [] if arguments.models else [is_tied_without_memory()]
    if not all(results):
        raise SystemExit("dtc and PyTorch differ, a model is not refused, or one without memory is another")


if __name__ == "__main__":
    main()
