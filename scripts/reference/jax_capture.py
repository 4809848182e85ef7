#!/usr/bin/env python3
"""Captures the models of jax_models.py and compares what dtc computes of them with JAX, as capture.py does for PyTorch: the loss
of three steps of SGD, the gradients of the first and the parameters after the last, relative to 1e-9 in f64 and 1e-4 in f32.

    python3 -m venv venv && venv/bin/pip install -r scripts/reference/requirements-jax.txt
    venv/bin/python scripts/reference/jax_capture.py --bin build/release/bin [model...]
    venv/bin/python scripts/reference/jax_capture.py --record test/compiler/import/torch/captures

Models that cannot be captured have to be refused with the error that says why. Of the masks of jax_masks.py it checks which are drawn,
and the share of what they keep.
With --record it writes the captures in f32, which the tests convert and compile without JAX, and compares nothing.
"""

import os
import re
import sys

import jax
import jax.numpy as jnp
import numpy

from sgd_steps import LAYOUTS, LEARNING_RATE, ROOT, STEPS, TYPES, compare, parse_arguments

sys.path.append(str(ROOT / "python"))  # after PYTHONPATH, which may name a build of the package

from dtc.jax import CaptureError, capture, named  # noqa: E402
import jax_masks  # noqa: E402
from jax_models import CLASSES, DRAWN, MODELS, REFUSED, SHARDED, TOKENS  # noqa: E402


def floats_as(tree, dtype):
    return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)


def arrays_of(tree):
    return {name: numpy.asarray(each) for name, each in named(tree).items()}


def draw(batch, classes, generator):
    return {key: generator.standard_normal(each.shape) if jnp.issubdtype(each.dtype, jnp.floating)
            else generator.integers(0, classes, each.shape, numpy.int32) for key, each in batch.items()}


def train(loss, params, samples):
    """The losses of steps of SGD, the gradients of the first and the parameters after the last, by name."""
    losses, gradients = [], None
    for _ in range(STEPS):
        value, gradient = jax.value_and_grad(loss)(params, samples)
        gradients = gradients or arrays_of(gradient)
        losses.append(float(value))
        params = jax.tree.map(lambda x, g: x - LEARNING_RATE * g, params, gradient)
    return losses, gradients, arrays_of(params)


def check(name, programs, layouts, seed):
    generator = numpy.random.default_rng(seed)
    params, loss, batch = MODELS[name]()
    # Zeros and ones would hide what is exchanged.
    params = jax.tree.map(lambda x: x + 0.1 * generator.standard_normal(x.shape), floats_as(params, jnp.float64))
    samples = draw(batch, CLASSES.get(name, TOKENS), generator)

    def capture_in(dtype):
        return capture(floats_as(params, TYPES[dtype]), loss, floats_as(batch, TYPES[dtype])).text
    return compare(name, programs, layouts, capture_in, arrays_of(params), samples, train(loss, params, samples))


def is_refused(name):
    function, expected, *types = REFUSED[name]
    return fails(name, expected, {"w": jnp.zeros((3, 3), *types)}, lambda params, batch: function(params["w"], batch["x"]),
                 {"x": jnp.zeros((4, 3))})


def fails(name, expected, *model):
    try:
        capture(*model)
    except CaptureError as error:
        print(f"{name:8} is refused: {str(error).splitlines()[0]}")
        return expected in str(error)
    print(f"{name:8} is captured")
    return False


def of_masks(function):
    return {"w": jnp.zeros(jax_masks.WHOLE, jnp.float32)}, lambda params, batch: function(params["w"], batch), jax_masks.batch()


def drawn_by(captured):
    """[(rate, shape)] of the dropouts of a capture."""
    found = re.findall(r'"aten.dropout".*\bp = ([\d.e+-]+).* -> tensor<([\dx]+)xf', captured.text)
    return [(float(rate), tuple(map(int, shape.split("x")))) for rate, shape in found]


def has_masks(name):
    function, shapes, keys = jax_masks.MASKS[name]
    captured = capture(*of_masks(function))
    good = drawn_by(captured) == [(jax_masks.RATE, shape) for shape in shapes] \
        and set(captured.left_out) == {"key", "keys", *keys}
    print(f"mask {name:15} draws {drawn_by(captured)}{'' if good else f', expected {shapes} of {keys}'}")
    return good


def has_share(name):
    """Whether a mask keeps the share of JAX, within five standard deviations."""
    keeps, count = jax_masks.SHARES[name], 2**20
    share = float(keeps(jax.random.key(5), (count,)).mean())
    [(rate, _)] = drawn_by(capture(*of_masks(lambda w, batch: jnp.where(keeps(batch["key"], w.shape), w, 0).sum())))
    print(f"mask {name:15} keeps {1 - rate:.5f}, {share:.5f} of {count} in JAX")
    return abs(1 - rate - share) < 5 * (rate * (1 - rate) / count) ** 0.5


def main():
    arguments = parse_arguments(__doc__, MODELS | DRAWN | SHARDED)
    names = arguments.models or list(MODELS)
    if arguments.record:
        recorded = MODELS | DRAWN | SHARDED
        for name in arguments.models or recorded:
            capture(*recorded[name]()).write(os.path.join(arguments.record, f"jax-{name}.mlir"))
        return
    jax.config.update("jax_enable_x64", True)
    results = [check(name, arguments.bin, arguments.layout or LAYOUTS, arguments.seed) for name in names]
    if not arguments.models:
        results += [*map(is_refused, REFUSED), *map(has_masks, jax_masks.MASKS), *map(has_share, jax_masks.SHARES)]
        results += [fails(f"mask {name}", expected, *of_masks(function)) for name, (function, expected) in jax_masks.REFUSED_MASKS.items()]
    if not all(results):
        raise SystemExit("dtc and JAX differ, or a model is not refused")


if __name__ == "__main__":
    main()
