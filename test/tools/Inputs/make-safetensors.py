#!/usr/bin/env python3
"""Writes a safetensors file of tensors that are full of one number: make-safetensors.py OUT NAME:DTYPE:SHAPE:VALUE...

For example features:F32:8,4:0.5 labels:I32:8:1.
"""

import json
import math
import struct
import sys

CODES = {"F32": "f", "F64": "d", "I32": "i", "I64": "q", "U8": "B"}

header, data = {}, b""
for argument in sys.argv[2:]:
    name, dtype, shape, value = argument.split(":")
    shape = [int(size) for size in shape.split(",") if size]
    number = float(value) if dtype.startswith("F") else int(value)
    content = struct.pack("<" + CODES[dtype], number) * math.prod(shape)
    header[name] = {"dtype": dtype, "shape": shape,
                    "data_offsets": [len(data), len(data) + len(content)]}
    data += content
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
