#!/usr/bin/env python3
"""Checks the metrics of happy-path.test: check-happy-path.py LONG LOADED LOADED-ON-ONE-DEVICE FRESH."""

import json
import math
import sys


def losses(path):
    with open(path) as file:
        return [json.loads(line)["loss"] for line in file]


training, (loaded,), (one_device,), (fresh,) = map(losses, sys.argv[1:])
assert len(training) == 20
assert math.isclose(training[0], fresh, rel_tol=1e-6), "a run starts at the weights of its seed"
assert loaded < fresh - 0.1, "the weights that were loaded are trained ones"
assert math.isclose(loaded, one_device, rel_tol=1e-4), "weights mean the same on any mesh"
with open(sys.argv[1]) as file:
    for number, line in enumerate(file, 1):
        metrics = json.loads(line)
        assert list(metrics) == ["step", "loss", "grad_norm", "lr", "step_seconds",
                                 "tokens_per_second", "peak_bytes", "skipped_steps"], metrics
        assert metrics["skipped_steps"] == 0
        assert metrics["step"] == number and metrics["lr"] == 1e-2
        assert metrics["step_seconds"] > 0 and metrics["peak_bytes"] > 0
