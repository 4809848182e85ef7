#!/usr/bin/env python3
"""Fails unless all metrics files have the losses of the first: compare-losses.py RELATIVE-ERROR FIRST OTHER..."""

import json
import sys


def losses(path):
    with open(path) as file:
        return [json.loads(line)["loss"] for line in file]


limit, first = float(sys.argv[1]), losses(sys.argv[2])
assert first and all(loss is not None for loss in first), first
for path in sys.argv[3:]:
    others = losses(path)
    assert len(others) == len(first), path
    for step, (a, b) in enumerate(zip(first, others), 1):
        if b is None or abs(a - b) > limit * abs(a):
            sys.exit(f"{path}: the loss of step {step} is {b}, expected {a}")
