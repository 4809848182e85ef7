#!/usr/bin/env python3
"""Checks the dropout of captured losses of JAX, in f64: the share and the scale of what is kept, that the backward pass has the mask
of the forward pass, that each step has another mask, that layouts compute what one device does, and that evaluate() drops nothing.
jax_capture.py compares dropout of the rate 0 with JAX.

    PYTHONPATH=BUILD/python venv/bin/python scripts/reference/jax_dropout.py
"""

import jax
import jax.numpy as jnp
import numpy

import dtc
from jax_capture import draw, floats_as
from jax_models import BATCH, CLASSES, DROPOUTS, DRAWN

RATE, ROWS, COLUMNS = 0.25, 64, 48
LAYOUTS = ({"mesh": "dp=4"}, {"mesh": "dp=2", "zero": 1}, {"mesh": "dp=2", "zero": 3}, {"microbatches": 4},
           {"mesh": "pp=2,dp=2", "microbatches": 2})
TOLERANCE = 1e-9


def is_near(found, wanted):
    return bool(numpy.all(numpy.abs(found - wanted) <= TOLERANCE * (1 + numpy.abs(wanted))))


def changes_of(drop, layout, steps=2):
    """What steps of SGD with the rate 1 add to w of the sum of dropout(w x), which is -x times the mask over what is kept; the losses,
    and evaluate() at the end."""
    generator = numpy.random.default_rng(0)
    x = generator.uniform(1, 2, (ROWS, COLUMNS))
    params = {"w": jnp.asarray(generator.uniform(1, 2, (ROWS, COLUMNS)))}

    def loss(params, batch):
        return drop(params["w"] * batch["x"], batch["key"], RATE).sum()
    batch = {"x": x, "key": jax.random.key(3)}
    step = dtc.compile(params, loss, batch, optimizer=dtc.SGD(lr=1, momentum=0, weight_decay=0, clip=0), threads=1, **layout)
    weights, changes, losses = [numpy.array(params["w"])], [], []
    for _ in range(steps):
        losses.append(step(batch)["loss"])
        weights.append(numpy.array(step.state_dict()["w"]))
        changes.append(weights[-2] - weights[-1])
    return x, weights, changes, losses, step.evaluate(batch)


def check_masks(name, drop):
    """The masks of one device; that layouts have the same ones."""
    x, weights, changes, losses, whole = changes_of(drop, {})
    kept = [each / x for each in changes]  # 0 or 1 / (1 - rate)
    units = ROWS if name == "rows" else ROWS * COLUMNS
    shares = [float((each != 0).mean()) for each in kept]
    error = 5 * (RATE * (1 - RATE) / units) ** 0.5  # five standard deviations of a share
    results = {
        "scale": all(is_near(each[each > 0.5], 1 / (1 - RATE)) and is_near(each[each <= 0.5], 0) for each in kept),
        "share": all(abs(each - (1 - RATE)) < error for each in shares),
        "backward": all(is_near((w * change).sum(), loss) for w, change, loss in zip(weights, changes, losses)),
        "another": not is_near(changes[0], changes[1]),
        "evaluate": is_near((weights[-1] * x).sum(), whole),
        "rows": name != "rows" or all(is_near(each, each[:, :1]) for each in kept),
    }
    for layout in LAYOUTS:
        if "microbatches" in layout:  # w has an element for each of the samples, which these would cut
            continue
        _, _, there, losses_there, whole_there = changes_of(drop, layout)
        results[str(layout)] = all(map(is_near, there, changes)) and is_near(numpy.array(losses_there), numpy.array(losses)) \
            and is_near(whole_there, whole)
    failed = [each for each, good in results.items() if not good]
    print(f"{name:10} kept {shares[0]:.4f} and {shares[1]:.4f} of {units}{': differs in ' + ', '.join(failed) if failed else ''}",
          flush=True)
    return not failed


def check_model():
    """The losses of a model with dropout on layouts, and that each step is another one."""
    generator = numpy.random.default_rng(0)
    params, loss, example = DRAWN["dropout"]()
    params, example = floats_as(params, jnp.float64), floats_as(example, jnp.float64)
    batch = draw(example, CLASSES["dropout"], generator)
    found = []
    for layout in ({}, *LAYOUTS):
        step = dtc.compile(params, loss, example, optimizer=dtc.AdamW(lr=1e-2), threads=1, **layout)
        found.append(numpy.array([*(step(batch)["loss"] for _ in range(4)), step.evaluate(batch)]))
        error = float(numpy.abs(found[-1] / found[0] - 1).max())
        print(f"{BATCH} samples {layout or 'one device'}: losses differ by {error:.1e}", flush=True)
    return all(is_near(each, found[0]) for each in found)


def main():
    jax.config.update("jax_enable_x64", True)
    results = [check_masks(name, drop) for name, drop in DROPOUTS.items()] + [check_model()]
    if not all(results):
        raise SystemExit("dropout of JAX differs from what it should be")


if __name__ == "__main__":
    main()
