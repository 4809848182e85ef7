#!/usr/bin/env python3
"""Trains random models in chains of checkpoints, each part on another layout: sweep/checkpoints.py [--chains 800]

A chain draws a model, an optimizer and two to five parts. Each part goes on from the checkpoint of the one before, with another
mesh, ZeRO stage, schedule, number of microbatches, recomputation, or the batch of a step in several batches (--accumulate).
The losses, the norms of the gradients and the saved parameters must be those of the same steps without a stop on one device, in
f64. Now and then a part is given again (it has no steps left, and changes nothing), or a checkpoint is damaged, so that its part
is done anew from the one before. A chain is made of its seed alone, which is printed: --seed SEED --chains 1 makes it again.
Needs nothing but Python's own library. Exits with 0 if all chains agree.
"""

import json
import random
import sys
import tempfile

from tools import Failure, Tools, difference, read_tensors, run_seeds, write_tensors

BATCH, VOCABULARY = 8, 30
TOLERANCE = 1e-9


def draw_model(choose):
    """A configuration and flags of dtc-import."""
    layers, heads = choose.choice((2, 4)), choose.choice((2, 4))
    width = heads * choose.choice((4, 6))
    if choose.random() < 0.4:
        dropout = choose.choice((0.0, 0.25))
        return dict(model_type="gpt2", vocab_size=VOCABULARY, n_embd=width, n_layer=layers, n_head=heads, n_positions=16,
                    resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout), layers, heads
    return dict(model_type=choose.choice(("llama", "qwen2", "gemma2", "qwen3")), vocab_size=VOCABULARY, hidden_size=width,
                head_dim=width // heads, intermediate_size=choose.choice((18, 20)), num_hidden_layers=layers,
                num_attention_heads=heads, num_key_value_heads=choose.choice((1, 2)), max_position_embeddings=16,
                tie_word_embeddings=choose.random() < 0.5), layers, heads


def draw_layout(choose, batch, layers, heads):
    """Flags of dtc-compile for a batch of `batch` samples."""
    tensor = choose.choice([size for size in (1, 1, 2, 4) if heads % size == 0])
    stages = choose.choice([size for size in (1, 1, 2, 4) if layers % size == 0 and size * tensor <= 8])
    data = choose.choice([size for size in (1, 2, 4) if batch % size == 0 and size * tensor * stages <= 8])
    name = choose.choice(("dp", "fsdp"))
    sizes = {name: data, "tp": tensor, "pp": stages}
    mesh = ",".join(f"{axis}={size}" for axis, size in sizes.items() if size > 1)
    flags = ["--mesh", mesh] if mesh else []
    microbatches = choose.choice([number for number in (1, 2, 4) if batch % (number * data) == 0])
    if microbatches > 1:
        flags += ["--microbatches", microbatches]
    if stages > 1 and microbatches > 1:
        flags += ["--schedule", choose.choice(("naive", "gpipe", "1f1b", "zb-h1"))]
    if data > 1:
        flags += ["--zero", choose.randint(0, 3)]
    if tensor > 1 and choose.random() < 0.5:
        flags += ["--sequence-parallel"]
    if choose.random() < 0.3:
        flags += ["--recompute", choose.choice(("selective", "full"))]
    return flags


class Chain:
    """The steps of a chain, and what is the same in all its parts."""

    def __init__(self, tools, seed):
        self.tools, self.folder, self.choose = tools, tools.folder, random.Random(seed)
        choose = self.choose
        self.config, self.layers, self.heads = draw_model(choose)
        self.seq = choose.choice((4, 6, 8))
        optimizers = [["--optimizer", "adamw"], ["--optimizer", "sgd"], ["--optimizer", "adamw", "--freeze", "*.mlp.*"]]
        if self.config["model_type"] not in ("gpt2", "qwen2"):  # the bias of keys has gradients of 0, and Lion takes their sign
            optimizers.append(["--optimizer", "lion"])
        self.optimizer = choose.choice(optimizers)
        self.optimizer += ["--clip", choose.choice((0, 0.5))]
        ends = sorted(choose.sample(range(2, 10), choose.randint(2, 5)))  # the warm-up of the first part has two steps
        self.parts = list(zip([0, *ends], ends))
        self.run_options = ["--data", "samples.safetensors", "--sampling", choose.choice(("epochs", "random")), "--seed", seed,
                            "--lr", 0.01, "--lr-schedule", "constant", "--warmup", 2, "--threads", 1]
        (self.folder / "config.json").write_text(json.dumps(self.config))
        samples = choose.choice((8, 11, 30))
        write_tensors(self.folder / "samples.safetensors",
                      {name: [[choose.randrange(VOCABULARY) for _ in range(self.seq)] for _ in range(samples)]
                       for name in ("tokens", "labels")})

    def compile(self, batches, flags):
        batch = BATCH // batches
        self.tools.run("dtc-import", "config.json", "--batch", batch, "--seq", self.seq, "--dtype", "f64", "-o", "m.mlir")
        accumulate = ["--accumulate"] if batches > 1 and "--microbatches" not in flags else []
        self.tools.run("dtc-compile", "m.mlir", *self.optimizer, *flags, *accumulate, "-o", "m.plan")

    def train(self, steps, batches, *options):
        """The losses and norms of the steps that ran, and the parameters."""
        metrics, saved = self.folder / "m.jsonl", self.folder / "w.safetensors"
        for file in (metrics, saved):
            file.unlink(missing_ok=True)
        self.tools.run("dtc-run", "m.plan", *self.run_options, "--steps", steps, "--accumulate", batches, "--metrics", metrics,
                       "--save", saved, *options)
        lines = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
        return {line["step"]: (line["loss"], line["grad_norm"]) for line in lines if "loss" in line}, read_tensors(saved)

    def resume(self, end, batches):
        changes = ["--allow-change", "batch"] if batches else []
        return self.train(end, max(batches, 1), "--checkpoint", "ck", "--checkpoint-every", 1000, "--keep", 0, "--resume",
                          *changes)

    def damage(self):
        """Changes a byte of the newest checkpoint, unless it is the only one."""
        checkpoints = sorted((self.folder / "ck").glob("step-*"))
        if len(checkpoints) < 2:
            return False
        file = self.choose.choice(sorted(checkpoints[-1].glob("*.safetensors")))
        content = bytearray(file.read_bytes())
        content[-1 - self.choose.randrange(8)] ^= 1 << self.choose.randrange(8)
        file.write_bytes(content)
        return True


def expect_steps(what, found, expected, first, last):
    if sorted(found) != list(range(first, last + 1)):
        raise Failure(f"{what}: steps {sorted(found)} ran, expected {first} to {last}")
    for step, values in found.items():
        if difference(expected[step], values) > TOLERANCE:
            raise Failure(f"{what}: step {step} has loss and norm {values}, expected {expected[step]}")


def expect_parameters(what, found, expected):
    if sorted(found) != sorted(expected):
        raise Failure(f"{what}: the parameters have other names")
    for name, values in expected.items():
        if difference(values, found[name]) > TOLERANCE:
            raise Failure(f"{what}: {name} differs by {difference(values, found[name])}")


def run_chain(tools, seed):
    chain = Chain(tools, seed)
    choose = chain.choose
    has_dropout = chain.config.get("resid_pdrop", 0.0) > 0
    parts = []
    for _ in chain.parts:
        # Masks of dropout belong to a batch, and samples that are drawn to their place in one.
        alone = has_dropout or "random" in chain.run_options
        batches = 1 if alone else choose.choice((1, 1, 2, 4))
        parts.append((batches, draw_layout(choose, BATCH // batches, chain.layers, chain.heads)))
    what = f"{chain.config['model_type']}, " + ", ".join(
        f"to step {end}: {' '.join(map(str, flags)) or 'one device'}{f' in {batches} batches' if batches > 1 else ''}"
        for (_, end), (batches, flags) in zip(chain.parts, parts))
    try:
        chain.compile(1, [])
        expected, parameters = chain.train(chain.parts[-1][1], 1)
        for (begin, end), (batches, flags) in zip(chain.parts, parts):
            chain.compile(batches, flags)
            found, saved = chain.resume(end, batches)
            expect_steps(what, found, expected, begin + 1, end)
            if choose.random() < 0.2:
                again, same = chain.resume(end, batches)
                expect_steps(what + " (given again)", again, expected, 1, 0)
                expect_parameters(what + " (given again)", same, saved)
            if choose.random() < 0.2 and chain.damage():
                found, saved = chain.resume(end, batches)
                expect_steps(what + " (damaged)", found, expected, begin + 1, end)
        expect_parameters(what, saved, parameters)
    except Failure as failure:
        raise Failure(f"{what}: {failure}") from failure
    return what


def run(programs, seed):
    with tempfile.TemporaryDirectory() as folder:
        return run_chain(Tools(programs, folder), seed)


if __name__ == "__main__":
    sys.exit(run_seeds(__doc__, "chains", "chains", 10, run))
