#!/usr/bin/env python3
"""Trains a small ResNet of transformers on images that it draws: waves of four directions under noise, on virtual devices. Its batch
norms normalize by the whole batch, whatever devices have parts of it.

    python3 examples/python/train_resnet.py
    torchrun --nproc-per-node 4 examples/python/train_resnet.py --mesh dp=4
    mpirun -n 4 python3 examples/python/train_resnet.py
"""

import numpy
import torch
import transformers

import dtc
from common import parse_arguments, train

BATCH, SIZE, DIRECTIONS = 16, 24, 4


def make_model():
    torch.manual_seed(0)  # all processes start from the same parameters
    return transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=DIRECTIONS))


def loss(model, batch):
    return torch.nn.functional.cross_entropy(model(batch["pixels"]).logits, batch["labels"])


def draw_images(generator):
    labels = generator.integers(0, DIRECTIONS, BATCH, numpy.int32)
    angles = (labels * numpy.pi / DIRECTIONS)[:, None, None]
    rows, columns = numpy.mgrid[:SIZE, :SIZE]
    waves = numpy.sin(rows * numpy.cos(angles) + columns * numpy.sin(angles) + generator.uniform(0, 6, (BATCH, 1, 1)))
    pixels = waves[:, None] + 0.5 * generator.standard_normal((BATCH, 3, SIZE, SIZE))
    return {"pixels": pixels.astype(numpy.float32), "labels": labels}


def main():
    arguments, generator = parse_arguments(__doc__.partition("\n\n")[0]), numpy.random.default_rng(0)
    step = dtc.compile(make_model(), loss, draw_images(generator), optimizer=dtc.AdamW(lr=3e-3), **arguments.layout)
    train(step, lambda: draw_images(generator), arguments.steps)


if __name__ == "__main__":
    main()
