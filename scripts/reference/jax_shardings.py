#!/usr/bin/env python3
"""Compiles a loss of JAX whose arrays have shardings, and checks that the plan has them: the losses are those of JAX on one device,
and the collectives those of the shardings.

    PYTHONPATH=BUILD/python venv/bin/python scripts/reference/jax_shardings.py
"""

import warnings

import jax
import numpy

import dtc
from dtc.jax import capture
from jax_models import SHARDED

STEPS, RATE, CLASSES = 3, 0.1, 5
ENTRIES = {"sharded": ["over_batch=batch", "over_model=model", "bias#0=model", "down#0=model", "up#1=model", "x#0=batch"],
           "sharded-heads": ["over_batch=batch", "over_model=model"]}
# Entries of the user's own, and how many constraints each model has that have no effect.
OWN = {"sharded": "x#0=model,down#1=batch", "sharded-heads": "x#0=model,out#1=batch"}
LOST = {"sharded": 0, "sharded-heads": 2}


def reference(loss, values, batches):
    losses = []
    with jax.set_mesh(jax.make_mesh((1, 1), ("batch", "model"))):
        for batch in batches:
            value, gradient = jax.value_and_grad(loss)(values, batch)
            losses.append(float(value))
            values = jax.tree.map(lambda w, g: w - RATE * g, values, gradient)
    return losses


def check(name):
    """The ways to compile a model that are wrong."""
    params, loss, example = SHARDED[name]()
    generator = numpy.random.default_rng(0)
    values = {key: generator.standard_normal(each.shape).astype(numpy.float32) for key, each in params.items()}
    batches = [{"x": generator.standard_normal(example["x"].shape).astype(numpy.float32),
                "labels": generator.integers(0, CLASSES, example["labels"].shape, numpy.int32)} for _ in range(STEPS)]
    # The constraint of the loss is on an abstract mesh, on which nothing is computed.
    jax.lax.with_sharding_constraint, constrain = lambda x, _: x, jax.lax.with_sharding_constraint
    wanted = reference(loss, values, batches)
    jax.lax.with_sharding_constraint = constrain
    failures = []
    captured = capture(params, loss, example)
    if sorted(captured.shards) != sorted(ENTRIES[name]) or captured.mesh != {"batch": 2, "model": 2}:
        failures.append(f"the shardings {captured.shards} on {captured.mesh}")
    optimizer = dtc.SGD(lr=RATE, momentum=0, weight_decay=0, clip=0)
    for way, mesh, warned, options in (
            ("the mesh of the shardings", None, 0, {}), ("a given mesh", {"batch": 4, "model": 2}, 0, {}),
            ("a place of the user's own", None, 0, {"shard": OWN[name]}), ("a mesh with other axes", "dp=2", 1, {}),
            ("a search", "auto", 1, {"devices": 2})):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step = dtc.compile(params, loss, example, mesh=mesh, init=values, optimizer=optimizer, **options)
        found = [step(batch)["loss"] for batch in batches]
        error = max(abs(a / b - 1) for a, b in zip(found, wanted, strict=True))
        messages = [str(each.message) for each in caught]
        left_out = [each for each in messages if "left out" in each]
        lost = [each for each in messages if "is lost" in each]
        print(f"{name:13} {way:28} loss {error:.1e}, {len(lost)} lost  {'; '.join(left_out)}")
        # The second product adds up over the axis that splits the inner dimension.
        are_split = "over model" in str(step)
        if error > 1e-5 or len(left_out) != warned or len(lost) != LOST[name] or are_split != (warned == 0):
            failures.append(f"{name} with {way}")
    return failures


def main():
    failures = [each for name in SHARDED for each in check(name)]
    if failures:
        raise SystemExit(f"wrong: {', '.join(failures)}")


if __name__ == "__main__":
    main()
