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
from jax_models import sharded

STEPS, RATE, CLASSES = 3, 0.1, 5
ENTRIES = ["over_batch=batch", "over_model=model", "bias#0=model", "down#0=model", "up#1=model", "x#0=batch"]


def reference(loss, values, batches):
    losses = []
    with jax.set_mesh(jax.make_mesh((1, 1), ("batch", "model"))):
        for batch in batches:
            value, gradient = jax.value_and_grad(loss)(values, batch)
            losses.append(float(value))
            values = jax.tree.map(lambda w, g: w - RATE * g, values, gradient)
    return losses


def main():
    params, loss, example = sharded()
    generator = numpy.random.default_rng(0)
    values = {name: generator.standard_normal(each.shape).astype(numpy.float32) for name, each in params.items()}
    batches = [{"x": generator.standard_normal(example["x"].shape).astype(numpy.float32),
                "labels": generator.integers(0, CLASSES, example["labels"].shape, numpy.int32)} for _ in range(STEPS)]
    # The constraint of the loss is on an abstract mesh, on which nothing is computed.
    jax.lax.with_sharding_constraint, constrain = lambda x, _: x, jax.lax.with_sharding_constraint
    wanted = reference(loss, values, batches)
    jax.lax.with_sharding_constraint = constrain
    failures = []
    captured = capture(params, loss, example)
    if sorted(captured.shards) != sorted(ENTRIES) or captured.mesh != {"batch": 2, "model": 2}:
        failures.append(f"the shardings {captured.shards} on {captured.mesh}")
    optimizer = dtc.SGD(lr=RATE, momentum=0, weight_decay=0, clip=0)
    for name, mesh, warned, options in (
            ("the mesh of the shardings", None, 0, {}), ("a given mesh", {"batch": 4, "model": 2}, 0, {}),
            ("a place of the user's own", None, 0, {"shard": "x#0=model,down#1=batch"}), ("a mesh with other axes", "dp=2", 1, {}),
            ("a search", "auto", 1, {"devices": 2})):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step = dtc.compile(params, loss, example, mesh=mesh, init=values, optimizer=optimizer, **options)
        found = [step(batch)["loss"] for batch in batches]
        error = max(abs(a / b - 1) for a, b in zip(found, wanted, strict=True))
        left_out = [str(each.message) for each in caught if "left out" in str(each.message)]
        print(f"{name:28} loss {error:.1e}  {'; '.join(left_out)}")
        # The second product adds up over the axis that splits the inner dimension.
        are_split = "over model" in str(step)
        if error > 1e-5 or len(left_out) != warned or are_split != (warned == 0):
            failures.append(name)
    if failures:
        raise SystemExit(f"wrong: {', '.join(failures)}")


if __name__ == "__main__":
    main()
