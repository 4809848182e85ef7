#!/usr/bin/env python3
"""Prints the names of the tensors that two safetensors files have alike, bit by bit: same-tensors.py ONE OTHER."""

import json
import struct
import sys


def load(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


one, other = load(sys.argv[1]), load(sys.argv[2])
assert one.keys() == other.keys()
print([name for name in sorted(one) if one[name] == other[name]])
