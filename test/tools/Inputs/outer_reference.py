"""outer_reference.py data: writes samples. outer_reference.py STEP REPLICAS STEPS NAME... [--proximal MU] [--stream FRAGMENTS:EVERY:DELAY:BLEND]
[--compress METHOD] [--skip REPLICA:STEP]: compares NAME.jsonl and NAME.safetensors with replicas that train one after the other; with
NAME@COUNT the metrics are means over the first replicas. The replica of --skip has a gradient that is not finite in that step. outer_reference.py copies FOLDER:
whether a checkpoint has replicas that differ.

Inner steps: AdamW (Loshchilov and Hutter 2019) with the gradient's norm clipped at 1 (Pascanu et al. 2013). Outer steps: mean
(McMahan et al. 2017, algorithm 1), nesterov (Douillard et al. 2023, algorithm 1) with PyTorch's SGD, or none. MU is the factor
of the proximal term (Li et al. 2020, equation 2), METHOD as for compressed.py. With --stream each parameter is a layer, and fragments of
layers have their outer steps in turn (Douillard et al. 2025, algorithm 2)."""

import glob
import json
import math
import random
import struct
import sys

INNER, OUTER, MOMENTUM = 0.05, 0.7, 0.9
SHAPES = {"w1": (4, 6), "w2": (6, 2)}


def read(path):
    blob = open(path, "rb").read()
    size = struct.unpack("<Q", blob[:8])[0]
    tensors = {}
    for name, entry in json.loads(blob[8 : 8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F64":
            begin, end = entry["data_offsets"]
            tensors[name] = list(struct.unpack(f"<{(end - begin) // 8}d", blob[8 + size + begin : 8 + size + end]))
    return tensors


def write(path, tensors, dtype="F64"):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        content = struct.pack(f"<{len(values)}{'d' if dtype == 'F64' else 'f'}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


def gradients(w, samples):
    """The loss, the mean of the squares over the samples' two outputs, and its gradients."""
    total, grads = 0.0, {name: [0.0] * len(values) for name, values in w.items()}
    for x, y in samples:
        a = [math.tanh(sum(x[i] * w["w1"][6 * i + j] for i in range(4))) for j in range(6)]
        d = [sum(a[j] * w["w2"][2 * j + k] for j in range(6)) - y[k] for k in range(2)]
        total += sum(e * e for e in d)
        for j in range(6):
            back = 0.0
            for k in range(2):
                grads["w2"][2 * j + k] += 2 * d[k] * a[j]
                back += 2 * d[k] * w["w2"][2 * j + k]
            for i in range(4):
                grads["w1"][6 * i + j] += back * (1 - a[j] * a[j]) * x[i]
    count = 2 * len(samples)
    return total / count, {name: [g / count for g in values] for name, values in grads.items()}


class Replica:
    def __init__(self, weights):
        self.w = {name: list(values) for name, values in weights.items()}
        self.m = {name: [0.0] * len(values) for name, values in weights.items()}
        self.v = {name: [0.0] * len(values) for name, values in weights.items()}
        self.steps = 0

    def step(self, samples, outer, proximal, skips):
        loss, grads = gradients(self.w, samples)
        if skips:
            return loss, math.inf
        for name, w in self.w.items():
            grads[name] = [g + proximal * (a - b) for g, a, b in zip(grads[name], w, outer[name])]
        norm = math.sqrt(sum(g * g for values in grads.values() for g in values))
        scale = min(1.0, 1.0 / (norm + 1e-6))
        self.steps += 1
        for name, w in self.w.items():
            for i, g in enumerate(grads[name]):
                m = self.m[name][i] = 0.9 * self.m[name][i] + 0.1 * g * scale
                v = self.v[name][i] = 0.95 * self.v[name][i] + 0.05 * (g * scale) ** 2
                m, v = m / (1 - 0.9**self.steps), v / (1 - 0.95**self.steps)
                w[i] -= INNER * (m / (math.sqrt(v) + 1e-8) + 0.1 * w[i])
        return loss, norm


def compressor(settings, name):
    """A function that sums what replicas have changed a parameter by, in a compressed form."""
    from compressed import add, method_of, subtract

    method, feedback = method_of(settings, name, SHAPES[name])
    lost = {}

    def total(changes):
        addends = [add(x, lost[r]) if feedback and r in lost else x for r, x in enumerate(changes)]
        result, kept = method.sum(addends, 0)
        lost.update(enumerate(map(subtract, addends, kept)))
        return result

    return total


def close(found, expected, what):
    assert len(found) == len(expected), what
    for a, b in zip(found, expected):
        if math.isinf(b):
            assert a is None, what
            continue
        assert abs(a - b) < 1e-9 * max(1.0, abs(b)), (what, a, b)


def train(step, count, steps, proximal, stream, compression, skip):
    fragments, every, delay, blend = stream
    initial = {name: values for name, values in read("init.safetensors").items() if name in SHAPES}
    data = read("data.safetensors")
    rows = {data["x"][4 * r]: (data["x"][4 * r : 4 * r + 4], data["y"][2 * r : 2 * r + 2]) for r in range(32)}
    replicas = [Replica(initial) for _ in range(count)]
    outer = {name: list(values) for name, values in initial.items()}
    momentum = {name: [0.0] * len(values) for name, values in initial.items()}
    metrics, pending = [], {}
    compressed = {name: compressor(compression, name) for name in SHAPES} if compression else {}
    for number, line in enumerate(open("order.jsonl"), 1):
        batch = [rows[first] for first in json.loads(line)["model"]["first"]]
        size = len(batch) // count
        metrics.append([replica.step(batch[r * size : (r + 1) * size], outer, proximal, (r, number) == skip)
                        for r, replica in enumerate(replicas)])
        for index, name in enumerate(SHAPES if step != "none" else []):
            sent = every // fragments * (index % fragments + 1)  # the first step after which it is sent
            if (number - sent) % every == 0:
                changes = [[a - b for a, b in zip(outer[name], replica.w[name])] for replica in replicas]
                total = compressed[name](changes) if compressed else [sum(each) for each in zip(*changes)]
                pending[name] = [each / count for each in total]
            if number <= delay or (number - delay - sent) % every:
                continue
            for i, gradient in enumerate(pending[name]):
                if step == "nesterov":
                    momentum[name][i] = MOMENTUM * momentum[name][i] + gradient
                    gradient = OUTER * (gradient + MOMENTUM * momentum[name][i])
                outer[name][i] -= gradient
                for replica in replicas:
                    replica.w[name][i] = blend * replica.w[name][i] + (1 - blend) * outer[name][i]
    assert len(metrics) == steps
    return replicas[0].w, metrics


if sys.argv[1] == "data":
    random.seed(5)
    samples = {"x": ([32, 4], [random.uniform(-1, 1) for _ in range(128)]),
               "y": ([32, 2], [random.uniform(-1, 1) for _ in range(64)])}
    write("data.safetensors", samples)
    write("f32.safetensors", samples, "F32")
elif sys.argv[1] == "copies":
    states = {}
    for path in glob.glob(sys.argv[2] + "/*.safetensors"):
        states.update(read(path))
    for name in ["w1", "w1.exp_avg", "w1.exp_avg_sq", "w2"]:
        half = len(states[name]) // 2
        assert half == math.prod(SHAPES[name[:2]]) and states[name][:half] != states[name][half:], name
    assert len(states["w1.outer_params"]) == math.prod(SHAPES["w1"])
else:
    names, _, skip = " ".join(sys.argv[4:]).partition(" --skip ")
    names, _, compression = names.partition(" --compress ")
    names, _, stream = names.partition(" --stream ")
    names, _, proximal = names.partition(" --proximal ")
    fragments, every, delay, blend = (stream or "1:2:0:0").split(":")
    stream = int(fragments), int(every), int(delay), float(blend)
    skip = tuple(map(int, skip.split(":"))) if skip else None
    weights, metrics = train(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(proximal or 0), stream, compression, skip)
    for name in names.split():
        name, _, covered = name.partition("@")
        covered = int(covered or sys.argv[2])
        losses, norms = ([sum(each[i] for each in step[:covered]) / covered for step in metrics] for i in range(2))
        lines = [json.loads(line) for line in open(name + ".jsonl")]
        close([line["loss"] for line in lines], losses, name + " loss")
        close([line["grad_norm"] for line in lines], norms, name + " norm")
        for tensor, values in read(name + ".safetensors").items():
            close(values, weights[tensor], name + " " + tensor)
