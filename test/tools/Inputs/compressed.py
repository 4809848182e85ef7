#!/usr/bin/env python3
"""Computes a run of a linear model whose gradients are summed in a compressed form, and compares it with one of dtc-run.

compressed.py METHOD DEVICES SAMPLES METRICS SAVED PARAMETER...

METHOD is as in --compress, such as int4:block=4,feedback=on. The gradient of a parameter is the sum of the samples of its
name; METRICS says by `id` which samples each step had, and SAVED has the parameters after the last step, of steps of size
1 from zeros. It is written from the formulas of docs/parallelism.md (section "Compressed gradients") and from their
sources: Dettmers et al. (arXiv:2110.02861) for the scale of a block, Salmon et al. (SC 2011) for Philox, Seide et al. (2014)
and Karimireddy et al. (arXiv:1901.09847) for error feedback, Lin et al. (arXiv:1712.01887) for the largest elements, and
Vogels et al. (arXiv:1905.13727) for factors of low rank. It needs nothing but Python."""

import json
import math
import struct
import sys


def read_safetensors(path):
    """The elements and the shape of each tensor."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    tensors, shapes = {}, {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        assert entry["dtype"] == "F64", (name, entry)
        tensors[name] = struct.unpack(f"<{(last - first) // 8}d", data[first:last])
        shapes[name] = entry["shape"]
    return tensors, shapes


def to_f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def subtract(a, b):
    return [x - y for x, y in zip(a, b)]


# ----- Random numbers -----

WORD = 2 ** 32 - 1


def philox(counter, key):
    """Philox4x32-10."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        x, y = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (y >> 32) ^ b ^ k0, y & WORD, (x >> 32) ^ d ^ k1, x & WORD
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return a, b, c, d


def hash_of(text):
    """64-bit FNV-1a."""
    result = 0xcbf29ce484222325
    for byte in text.encode():
        result = ((result ^ byte) * 0x100000001b3) & (2 ** 64 - 1)
    return result


SEED = philox((0, 0, 0, 0), (0x6d61736b, 0x64726f70))[0]  # of the run's seed 0


def numbers(text, step, first, count):
    """A number from [0, 1) for each of the elements from `first` on."""
    key = SEED, hash_of(text) & WORD
    return [(philox(((e // 4) & WORD, e // 4 >> 32, step, 0), key)[e % 4] >> 8) / 2 ** 24
            for e in range(first, first + count)]


# ----- Methods: what the sum of the devices' addends becomes, and what of each addend the others have -----

class Integers:
    def __init__(self, name, size, shape, settings, width):
        self.name, self.size, self.width = name, size, width
        self.block = int(settings["block"])
        self.is_stochastic = settings.get("rounding") == "stochastic"

    def quantized(self, x, noise):
        """What the integers of x stand for: of each block q = round(x / s), ties to even, or floor(x / s + noise), with
        the scale s = max |x| / (2^(bits - 1) - 1) in f32."""
        limit = 2 ** (self.width - 1) - 1
        result = []
        for begin in range(0, len(x), self.block):
            part = x[begin:begin + self.block]
            scale = to_f32(max(abs(value) for value in part) / limit)
            if scale < 2.0 ** -126:
                result += [0.0] * len(part)
                continue
            for place, value in enumerate(part, begin):
                q = math.floor(value / scale + noise[place]) if noise else round(value / scale)
                result.append(max(-limit, min(limit, q)) * scale)
        return result

    def draw(self, what, step, device=0):
        return self.is_stochastic and numbers(f"{self.name}.{what}", step, device * self.size, self.size)

    def sum(self, addends, step):
        kept = [self.quantized(x, self.draw("addend", step, device)) for device, x in enumerate(addends)]
        total = [0.0] * self.size
        for x in kept:
            total = add(total, x)
        return self.quantized(total, self.draw("sum", step)), kept


class Largest:
    def __init__(self, name, size, shape, settings):
        self.block, self.share = int(settings["block"]), float(settings["share"])

    def largest(self, x):
        """x with zeros for all but the largest elements of each block; of equal ones the first are taken."""
        result = [0.0] * len(x)
        # The block is no longer than the tensor, and ends with zeros where it is longer than what is left.
        block = min(self.block, len(x))
        count = max(1, math.ceil(self.share * block - 1e-9))
        for begin in range(0, len(x), block):
            places = range(begin, min(begin + block, len(x)))
            for place in sorted(places, key=lambda i: (-abs(x[i]), i))[:count]:
                result[place] = x[place]
        return result

    def sum(self, addends, step):
        kept = [self.largest(x) for x in addends]
        total = [0.0] * len(addends[0])
        for x in kept:
            total = add(total, x)
        return total, kept


class Factors:
    def __init__(self, name, size, shape, settings):
        self.rank = int(settings["rank"])
        # The first dimensions are the rows: the number of them with which rows and columns are fewest.
        cuts = [(math.prod(shape[:cut]) + math.prod(shape[cut:]), cut) for cut in range(1, len(shape))]
        self.is_smaller = bool(cuts) and self.rank * min(cuts)[0] < size
        if not self.is_smaller:
            return
        self.rows, self.columns = math.prod(shape[:min(cuts)[1]]), math.prod(shape[min(cuts)[1]:])
        tensor = hash_of(f"{name}.powersgd_factor")
        words = [philox((e // 4, 0, tensor & WORD, tensor >> 32), (0, 0))[e % 4]
                 for e in range(self.columns * self.rank)]
        values = [(word >> 8) / 2 ** 23 - 1 for word in words]
        self.q = [values[i * self.rank:(i + 1) * self.rank] for i in range(self.columns)]

    def orthonormal(self, p):
        """Gram-Schmidt, column by column, each against all before it. Returns the rows, and which columns are left out."""
        columns, result, is_none = list(zip(*p)), [], []
        for column in columns:
            left = list(column)
            for other in result:
                share = sum(x * y for x, y in zip(left, other))
                left = [x - share * y for x, y in zip(left, other)]
            square, before = sum(x * x for x in left), sum(x * x for x in column)
            is_none.append(square <= before * 2.0 ** -86)
            result.append([0.0 if is_none[-1] else x / math.sqrt(square) for x in left])
        return list(zip(*result)), is_none

    def sum(self, addends, step):
        if not self.is_smaller:
            total = [0.0] * len(addends[0])
            for x in addends:
                total = add(total, x)
            return total, addends
        n, r = self.columns, range(self.rank)
        matrices = [[x[i * n:(i + 1) * n] for i in range(self.rows)] for x in addends]
        # Means, as in the paper's algorithm 1; and each device keeps what is not in its share of the mean, which is as much
        # on all devices together as what is not in what it sent itself.
        mean = [[sum(m[i][j] for m in matrices) / len(matrices) for j in range(n)] for i in range(self.rows)]
        p = [[sum(row[j] * self.q[j][k] for j in range(n)) for k in r] for row in mean]
        p, is_none = self.orthonormal(p)
        q = [[sum(mean[i][j] * p[i][k] for i in range(self.rows)) for k in r] for j in range(n)]
        result = [sum(p[i][k] * q[j][k] for k in r) for i in range(self.rows) for j in range(n)]
        self.q = [[self.q[j][k] if is_none[k] else q[j][k] for k in r] for j in range(n)]
        return [x * len(matrices) for x in result], [result] * len(matrices)


def method_of(text, name, shape):
    kind, _, settings = text.partition(":")
    settings = dict(setting.split("=") for setting in settings.split(","))
    size = math.prod(shape)
    if kind.startswith("int"):
        return Integers(name, size, shape, settings, int(kind.removeprefix("int"))), settings.get("feedback") == "on"
    return {"topk": Largest, "powersgd": Factors}[kind](name, size, shape, settings), settings.get("feedback") != "off"


def run(samples, batches, devices, method, feedback):
    """The parameter after steps of size 1 from zeros, and whether the step was applied is in the batches."""
    size = len(samples[0])
    parameter = [0.0] * size
    residuals = [[0.0] * size for _ in range(devices)]
    for step, batch in enumerate(batches):
        if batch is None:  # a step that was skipped
            continue
        share = len(batch) // devices
        addends = []
        for device in range(devices):
            gradient = [0.0] * size
            for number in batch[device * share:(device + 1) * share]:
                gradient = add(gradient, samples[number])
            addends.append(add(gradient, residuals[device]))
        total, kept = method.sum(addends, step)
        if feedback:
            residuals = [subtract(x, y) for x, y in zip(addends, kept)]
        parameter = subtract(parameter, total)
    return parameter


def main():
    text, devices, samples, metrics, saved, *names = sys.argv[1:]
    steps = [json.loads(line) for line in open(metrics)]
    skipped = [b["skipped_steps"] - a for a, b in zip([0] + [s["skipped_steps"] for s in steps], steps)]
    batches = [None if skip else [int(x) for x in step["model"]["id"]] for step, skip in zip(steps, skipped)]
    assert any(batches)
    inputs, _ = read_safetensors(samples)
    results, shapes = read_safetensors(saved)
    for name in names:
        size = len(results[name])
        rows = [inputs[name][i:i + size] for i in range(0, len(inputs[name]), size)]
        expected = run(rows, batches, int(devices), *method_of(text, name, shapes[name]))
        largest = max(abs(x) for x in expected)
        worst = max(abs(x - y) for x, y in zip(expected, results[name]))
        print(f"{name}: the largest difference is {worst:.3g} of {largest:.3g}")
        assert math.isfinite(largest) and largest > 0 and worst <= 1e-9 * largest, (name, worst, largest)


if __name__ == "__main__":
    main()
