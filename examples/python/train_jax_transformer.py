#!/usr/bin/env python3
"""Trains a small transformer of flax.linen, with dropout, on a text whose bytes are its tokens, on virtual devices.

    python3 examples/python/train_jax_transformer.py
    torchrun --nproc-per-node 4 examples/python/train_jax_transformer.py --mesh dp=2,tp=2
    mpirun -n 4 python3 examples/python/train_jax_transformer.py --text book.txt
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy
import optax

import dtc
from common import draw_windows, parse_arguments, read_tokens, train

BATCH, LENGTH, WIDTH, HEADS, LAYERS, DROPOUT = 16, 64, 64, 4, 2, 0.1


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        y = nn.MultiHeadDotProductAttention(num_heads=HEADS)(nn.LayerNorm()(x), mask=mask)
        x = x + nn.Dropout(DROPOUT, deterministic=False)(y)
        y = nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))
        return x + nn.Dropout(DROPOUT, deterministic=False)(y)


class Decoder(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(256, WIDTH)(tokens) + self.param("positions", nn.initializers.normal(0.02), (LENGTH, WIDTH))
        for _ in range(LAYERS):
            x = Block()(x)
        return nn.Dense(256, use_bias=False)(nn.LayerNorm()(x))


def main():
    arguments = parse_arguments(__doc__.partition("\n\n")[0], text={"help": "a text file; the documentation of Python without it"})
    tokens, generator = read_tokens(arguments.text), numpy.random.default_rng(0)
    model, example = Decoder(), draw_windows(tokens, BATCH, LENGTH, generator)
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    params = model.init(keys, example["tokens"])["params"]

    def loss(params, batch):
        logits = model.apply({"params": params}, batch["tokens"], rngs={"dropout": keys["dropout"]})
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

    step = dtc.compile(params, loss, example, optimizer=dtc.AdamW(lr=3e-3), **arguments.layout)
    train(step, lambda: draw_windows(tokens, BATCH, LENGTH, generator), arguments.steps)


if __name__ == "__main__":
    main()
