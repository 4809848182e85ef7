#!/usr/bin/env python3
"""Makes samples for examples/mlp.mlir: points in 16 dimensions that belong to four classes.

Needs nothing but Python. Writes a safetensors file with one tensor for each input of the model: "features", f32
[samples, 16], and "labels", i32 [samples].
"""

import argparse
import json
import random
import struct

FEATURES = 16
CLASSES = 4
CENTERS_PER_CLASS = 2


def make_samples(count, noise, seed):
    """Points around centers with coordinates of -1 and 1; two centers belong to each class, so that no linear model
    tells the classes apart."""
    generator = random.Random(seed)
    centers = [[generator.choice((-1.0, 1.0)) for _ in range(FEATURES)]
               for _ in range(CLASSES * CENTERS_PER_CLASS)]
    features, labels = [], []
    for _ in range(count):
        center = generator.randrange(len(centers))
        features += [generator.gauss(x, noise) for x in centers[center]]
        labels.append(center % CLASSES)
    return features, labels


def write_safetensors(path, tensors):
    """Writes tensors, given as name -> (dtype, shape, bytes). A safetensors file is the length of its header as a
    64-bit integer, the header, a JSON object, and the elements, all of it little-endian."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True, help="the safetensors file to write")
    parser.add_argument("--samples", type=int, default=4096, help="how many (default: %(default)s)")
    parser.add_argument("--noise", type=float, default=0.7,
                        help="the standard deviation around a center (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    features, labels = make_samples(arguments.samples, arguments.noise, arguments.seed)
    write_safetensors(arguments.output, {
        "features": ("F32", [len(labels), FEATURES], struct.pack(f"<{len(features)}f", *features)),
        "labels": ("I32", [len(labels)], struct.pack(f"<{len(labels)}i", *labels)),
    })


if __name__ == "__main__":
    main()
