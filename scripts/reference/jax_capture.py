#!/usr/bin/env python3
"""Captures the models of jax_models.py and compares what dtc computes of them with JAX, as capture.py does for PyTorch: the loss
of three steps of SGD, the gradients of the first and the parameters after the last, relative to 1e-9 in f64 and 1e-4 in f32.

    python3 -m venv venv && venv/bin/pip install -r scripts/reference/requirements-jax.txt
    venv/bin/python scripts/reference/jax_capture.py --bin build/release/bin [model...]
    venv/bin/python scripts/reference/jax_capture.py --record test/compiler/import/torch/captures

Models that cannot be captured have to be refused with the error that says why.
With --record it writes the captures in f32, which the tests convert and compile without JAX, and compares nothing.
"""

import argparse
import os
import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "python"))  # after PYTHONPATH, which may name a build of the package

from dtc.jax import CaptureError, capture  # noqa: E402
from jax_models import CLASSES, MODELS, REFUSED, TOKENS  # noqa: E402
from sgd_steps import LAYOUTS, LEARNING_RATE, SGD, STEPS, TOLERANCES, SgdSteps  # noqa: E402


def as_type(tree, dtype):
    return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)


def named(tree):
    return {jax.tree_util.keystr(path, simple=True, separator="."): numpy.asarray(leaf)
            for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def draw(batch, classes, generator):
    return {key: generator.standard_normal(each.shape) if jnp.issubdtype(each.dtype, jnp.floating)
            else generator.integers(0, classes, each.shape, numpy.int32) for key, each in batch.items()}


def train(loss, params, samples):
    """The losses of steps of SGD, the gradients of the first and the parameters after the last, by name."""
    losses, gradients = [], None
    for _ in range(STEPS):
        value, gradient = jax.value_and_grad(loss)(params, samples)
        gradients = gradients or named(gradient)
        losses.append(float(value))
        params = jax.tree.map(lambda x, g: x - LEARNING_RATE * g, params, gradient)
    return losses, gradients, named(params)


def distance(wanted, found):
    assert wanted.keys() <= found.keys(), wanted.keys() - found.keys()
    return max(float(numpy.abs(found[name].astype(numpy.float64) - each).max() / max(float(numpy.abs(each).max()), 1e-4))
               for name, each in wanted.items())


def check(name, programs, layouts, seed):
    generator = numpy.random.default_rng(seed)
    params, loss, batch = MODELS[name]()
    # Zeros and ones would hide what is exchanged.
    params = jax.tree.map(lambda x: jnp.asarray(x + 0.1 * generator.standard_normal(x.shape), jnp.float64), as_type(params, jnp.float64))
    samples = draw(batch, CLASSES.get(name, TOKENS), generator)
    losses, gradients, parameters = train(loss, params, samples)
    good = True
    for dtype, kind in (("f64", jnp.float64), ("f32", jnp.float32)):
        with tempfile.TemporaryDirectory() as folder:
            dtc = SgdSteps(programs, folder, load_file)
            initial = {key: each.astype(kind) for key, each in named(params).items()}
            save_file(initial, dtc.folder / "initial.safetensors")
            save_file({key: each.astype(kind) if each.dtype == numpy.float64 else each for key, each in samples.items()},
                      dtc.folder / "samples.safetensors")
            capture(as_type(params, kind), loss, as_type(batch, kind)).write(dtc.folder / "captured.mlir")
            dtc.run("dtc-import", "captured.mlir", "-o", "m.mlir")
            for layout in layouts:
                dtc.run("dtc-compile", "m.mlir", *SGD, *layout.split(), "-o", "m.plan")
                _, moved = dtc.steps(1, 1.0)
                found = {key: initial[key].astype(numpy.float64) - each for key, each in moved.items()}
                found_losses, after = dtc.steps(STEPS, LEARNING_RATE)
                errors = (max(abs(a / b - 1) for a, b in zip(found_losses, losses, strict=True)), distance(gradients, found),
                          distance(parameters, after))
                print(f"{name:8} {dtype} {layout or 'one device':32} loss {errors[0]:.1e}  gradients {errors[1]:.1e}  "
                      f"parameters {errors[2]:.1e}", flush=True)
                good &= max(errors) <= TOLERANCES[dtype]
    return good


def is_refused(name):
    function, expected, *types = REFUSED[name]
    try:
        capture({"w": jnp.zeros((3, 3), *types)}, lambda params, batch: function(params["w"], batch["x"]), {"x": jnp.zeros((4, 3))})
    except CaptureError as error:
        print(f"{name:8} is refused: {str(error).splitlines()[0]}")
        return expected in str(error)
    print(f"{name:8} is captured")
    return False


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
    os.chdir(ROOT)  # paths in captures are relative to it
    names = arguments.models or list(MODELS)
    if arguments.record:
        for name in names:
            capture(*MODELS[name]()).write(os.path.join(arguments.record, f"jax-{name}.mlir"))
        return
    jax.config.update("jax_enable_x64", True)
    results = [check(name, arguments.bin, arguments.layout or LAYOUTS, arguments.seed) for name in names]
    results += [is_refused(name) for name in ([] if arguments.models else REFUSED)]
    if not all(results):
        raise SystemExit("dtc and JAX differ, or a model is not refused")


if __name__ == "__main__":
    main()
