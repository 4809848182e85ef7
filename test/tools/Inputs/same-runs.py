"""Whether two runs, NAME.jsonl and NAME.safetensors of both names, have the same losses, norms and weights, bit by bit."""

import json, sys
from struct import unpack

def metrics(path):
    with open(path + ".jsonl") as file:
        return [(step["loss"], step["grad_norm"]) for step in map(json.loads, file)]

def tensors(path):
    with open(path + ".safetensors", "rb") as file:
        header = json.loads(file.read(unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}

first, other = sys.argv[1:]
assert metrics(first) and metrics(first) == metrics(other), (metrics(first), metrics(other))
a, b = tensors(first), tensors(other)
assert a and a.keys() == b.keys()
for name in a:
    assert a[name] == b[name], name + " differs"
