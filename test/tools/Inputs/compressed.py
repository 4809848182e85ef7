#!/usr/bin/env python3
"""Computes a run of a linear model whose gradients are summed as integers, and compares it with one of dtc-run.

compressed.py METHOD DEVICES SAMPLES METRICS SAVED PARAMETER...

METHOD is as in --compress, such as int4:block=4,feedback=on. The gradient of a parameter is the sum of the samples of its
name; METRICS says by `id` which samples each step had, and SAVED has the parameters after the last step, of steps of size
1 from zeros. It is written from the formulas of docs/parallelism.md (section "Compressed gradients") and from their
sources, Dettmers et al. (arXiv:2110.02861) for the scale of a block, Seide et al. (2014) and Karimireddy et al.
(arXiv:1901.09847) for error feedback; it needs nothing but Python."""

import json
import math
import struct
import sys


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        assert entry["dtype"] == "F64", (name, entry)
        tensors[name] = struct.unpack(f"<{(last - first) // 8}d", data[first:last])
    return tensors


def to_f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def quantized(x, bits, block):
    """What the integers of x stand for: of each `block` elements q = round(x / s), ties to even, with the scale
    s = max |x| / (2^(bits - 1) - 1) in f32."""
    limit = 2 ** (bits - 1) - 1
    result = []
    for begin in range(0, len(x), block):
        part = x[begin:begin + block]
        scale = to_f32(max(abs(value) for value in part) / limit)
        if scale < 2.0 ** -126:
            result += [0.0] * len(part)
            continue
        result += [max(-limit, min(limit, round(value / scale))) * scale for value in part]
    return result


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def run(samples, batches, devices, bits, block, feedback):
    """The parameter after steps of size 1 from zeros, and whether the step was applied is in the batches."""
    size = len(samples[0])
    parameter = [0.0] * size
    residuals = [[0.0] * size for _ in range(devices)]
    for batch in batches:
        if batch is None:  # a step that was skipped
            continue
        share = len(batch) // devices
        total = [0.0] * size
        for device in range(devices):
            gradient = [0.0] * size
            for number in batch[device * share:(device + 1) * share]:
                gradient = add(gradient, samples[number])
            if feedback:
                gradient = add(gradient, residuals[device])
            sent = quantized(gradient, bits, block)
            residuals[device] = [x - y for x, y in zip(gradient, sent)]
            total = add(total, sent)
        parameter = [x - y for x, y in zip(parameter, quantized(total, bits, block))]
    return parameter


def main():
    method, devices, samples, metrics, saved, *names = sys.argv[1:]
    width, _, settings = method.partition(":")
    settings = dict(setting.split("=") for setting in settings.split(","))
    steps = [json.loads(line) for line in open(metrics)]
    skipped = [b["skipped_steps"] - a for a, b in zip([0] + [s["skipped_steps"] for s in steps], steps)]
    batches = [None if skip else [int(x) for x in step["model"]["id"]] for step, skip in zip(steps, skipped)]
    assert any(batches)
    inputs, results = read_safetensors(samples), read_safetensors(saved)
    for name in names:
        size = len(results[name])
        rows = [inputs[name][i:i + size] for i in range(0, len(inputs[name]), size)]
        expected = run(rows, batches, int(devices), int(width.removeprefix("int")), int(settings["block"]),
                       settings.get("feedback") == "on")
        largest = max(abs(x) for x in expected)
        worst = max(abs(x - y) for x, y in zip(expected, results[name]))
        print(f"{name}: the largest difference is {worst:.3g} of {largest:.3g}")
        assert math.isfinite(largest) and largest > 0 and worst <= 1e-9 * largest, (name, worst, largest)


main()
