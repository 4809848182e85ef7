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

import os
import sys

import torch

from sgd_steps import EXPERT_LAYOUTS, LAYOUTS, LEARNING_RATE, ROOT, STEPS, compare, parse_arguments

sys.path.append(str(ROOT / "python"))  # after PYTHONPATH, which may name a build of the package

import models  # noqa: E402
from captured_models import DRAWS, MODELS, REFUSED, Tied  # noqa: E402
from dtc.torch import CaptureError, capture, empty_weights  # noqa: E402
from families import everything_in_f64  # noqa: E402

# Models that take a maximum over the samples of a batch, or normalize by it, which microbatches do not see.
WHOLE_BATCH = ("operators", "resnet", "windows", "qwen3_moe", "mixture")
EXPERTS = ("mixtral", "qwen3_moe", "mixture", "gpt_oss", "deepseek_v2", "deepseek_v3")
CLASSES = {"activations": 5, "mixture": 5, "functions": 5, "mlp": 5, "operators": 6, "vit": 5, "resnet": 5, "resnet-eval": 5, "convnext": 5, "whisper": 5, "windows": 5, "ceilings": 5}


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
        if key in DRAWS:
            samples[key] = DRAWS[key](each.shape, generator)
        elif each.is_floating_point():
            samples[key] = torch.randn(each.shape, generator=generator, dtype=each.dtype)
        else:
            samples[key] = torch.randint(1, classes, each.shape, generator=generator, dtype=torch.int32)
    return samples


def ignored_of(text):
    found = text.partition("ignore_index = ")[2].partition(" ")[0]
    return int(found)


def train(model, loss, samples):
    """The losses of steps of SGD, the gradients of the first and the parameters and saved buffers after the last."""
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
    used |= models.saved_buffers(model)
    return losses, gradients, {name: each.detach().clone() for name, each in used.items()}


def arrays_of(tensors):
    return {name: each.detach().numpy() for name, each in tensors.items()}


def check(name, programs, layouts, seed):
    generator = torch.Generator().manual_seed(seed)
    model, _, example = MODELS[name]()
    models.randomize(model, generator)
    getattr(model, "begin", lambda: None)()
    initial = models.saved_tensors(model)
    samples = draw(example, CLASSES.get(name, 29), generator)
    with everything_in_f64():
        captured, model, loss, batch = capture_in(name, "f64", initial)
        ignored = ignored_of(captured.text)
        flat = samples["labels"].flatten()
        flat[1::5] = ignored
        samples = {key: each.double() if each.is_floating_point() else each for key, each in samples.items()}
        results = train(model, loss, samples)
    if constant := [key for key, each in results[1].items() if not each.any()]:
        raise SystemExit(f"{name}: the loss does not depend on {', '.join(constant)}: nothing would be compared")
    layouts = [layout for layout in layouts if name not in WHOLE_BATCH or "micro" not in layout]
    losses, gradients, parameters = results
    return compare(name, programs, layouts, lambda dtype: captured.text if dtype == "f64" else capture_in(name, "f32")[0].text,
                   arrays_of(initial), arrays_of(samples), (losses, arrays_of(gradients), arrays_of(parameters)))


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
    arguments = parse_arguments(__doc__, MODELS)
    torch.set_num_threads(1)
    names = arguments.models or list(MODELS)
    if arguments.record:
        for name in names:
            capture_in(name, "f32")[0].write(os.path.join(arguments.record, f"{name}.mlir"))
        return
    results = [check(name, arguments.bin, arguments.layout or LAYOUTS + (EXPERT_LAYOUTS if name in EXPERTS else []), arguments.seed)
               for name in names]
    results += [is_refused(name) for name in ([] if arguments.models else REFUSED)]
    results += [] if arguments.models else [is_tied_without_memory()]
    if not all(results):
        raise SystemExit("dtc and PyTorch differ, a model is not refused, or one without memory is another")


if __name__ == "__main__":
    main()
