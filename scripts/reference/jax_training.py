#!/usr/bin/env python3
"""Trains the models of jax_models.py with dtc.compile() and compares with optax: losses of steps of AdamW with clipped gradients,
and the parameters after them.

    PYTHONPATH=BUILD/python venv/bin/python scripts/reference/jax_training.py [model...]
"""

import sys

import jax
import numpy
import optax

import dtc
from jax_capture import arrays_of, draw
from jax_models import CLASSES, MODELS, TOKENS
from sgd_steps import distance

STEPS, RATE, CLIP, DECAY = 5, 3e-3, 1.0, 0.1
# A softmax does not change with the bias of keys, whose gradient is rounding alone: with a small eps Adam would make steps of it.
EPS = 1e-3


def reference(params, loss, batches):
    update = optax.chain(optax.clip_by_global_norm(CLIP), optax.adamw(RATE, b1=0.9, b2=0.95, eps=EPS, weight_decay=DECAY,
                         mask=lambda tree: jax.tree.map(lambda x: x.ndim > 1, tree)))
    state, losses = update.init(params), []
    for batch in batches:
        value, gradients = jax.value_and_grad(loss)(params, batch)
        changes, state = update.update(gradients, state, params)
        params = optax.apply_updates(params, changes)
        losses.append(float(value))
    return losses, params


def check(name, mesh, options):
    generator = numpy.random.default_rng(0)
    params, loss, example = MODELS[name]()
    params = jax.tree.map(lambda x: jax.numpy.asarray(x + 0.1 * generator.standard_normal(x.shape), x.dtype), params)
    batches = [jax.tree.map(lambda x: x.astype(numpy.float32) if x.dtype == numpy.float64 else x,
                            draw(example, CLASSES.get(name, TOKENS), generator)) for _ in range(STEPS)]
    wanted, after = reference(params, loss, batches)
    step = dtc.compile(params, loss, example, mesh=mesh,
                       optimizer=dtc.AdamW(lr=RATE, betas=(0.9, 0.95), eps=EPS, weight_decay=DECAY, clip=CLIP), **options)
    found = [step(batch)["loss"] for batch in batches]
    tree = step.state_dict()
    assert jax.tree.structure(tree) == jax.tree.structure(params)
    errors = max(abs(a / b - 1) for a, b in zip(found, wanted, strict=True)), distance(arrays_of(after), arrays_of(tree))
    print(f"{name:8} {mesh or 'one device':12} loss {errors[0]:.1e}  parameters {errors[1]:.1e}", flush=True)
    return max(errors) <= 2e-4


def main():
    names = sys.argv[1:] or list(MODELS)
    layouts = ((None, {}), ("dp=2,tp=2", {"zero": 1}), ("pp=2,dp=2", {"microbatches": 2}))
    if not all([check(name, *layout) for name in names for layout in layouts]):
        raise SystemExit("dtc and optax differ")


if __name__ == "__main__":
    main()
