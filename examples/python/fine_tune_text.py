#!/usr/bin/env python3
"""Trains a model of transformers on a text whose bytes are its tokens, on virtual devices: a tiny Llama from a configuration, or
one of a folder, which is then fine-tuned.

    python3 examples/python/fine_tune_text.py
    torchrun --nproc-per-node 4 examples/python/fine_tune_text.py --mesh dp=2,tp=2
    mpirun -n 4 python3 examples/python/fine_tune_text.py --text book.txt --save tuned
"""

import numpy
import torch
import transformers

import dtc
from common import draw_windows, parse_arguments, read_tokens, train

BATCH, LENGTH = 16, 64


def make_model(folder):
    torch.manual_seed(0)  # all processes start from the same parameters
    if folder:
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=LENGTH))


def loss(model, batch):
    logits = model(input_ids=batch["tokens"]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())


def main():
    arguments = parse_arguments(__doc__.partition("\n\n")[0], text={"help": "a text file; the documentation of Python without it"},
                                model={"help": "a folder with a model of transformers, whose vocabulary has the 256 bytes"},
                                save={"help": "the folder in which the trained model is written"})
    tokens, generator = read_tokens(arguments.text), numpy.random.default_rng(0)
    model = make_model(arguments.model)
    step = dtc.compile(model, loss, draw_windows(tokens, BATCH, LENGTH, generator), optimizer=dtc.AdamW(lr=3e-3),
                       **arguments.layout)
    train(step, lambda: draw_windows(tokens, BATCH, LENGTH, generator), arguments.steps)
    if arguments.save:
        step.save_pretrained(arguments.save)


if __name__ == "__main__":
    main()
