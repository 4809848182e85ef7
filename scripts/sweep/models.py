#!/usr/bin/env python3
"""Trains random models in model IR on random layouts and on one device: sweep/models.py [--models 200]

A model is what no importer writes: odd sizes, shared parameters, constants that are used several times, parameters that are cut,
joined and transposed before they are used, inputs of floats and of indices, lookups, reductions over several dimensions, the batch
in any dimension, dropout, frozen parameters, metrics, and losses that are sums, weighted means, or other functions of sums. Some
mix the samples of the batch. A layout has any mesh, dimensions of parameters on any axes of it, ZeRO stages, schedules, microbatches,
recomputation, or the batch of a step in several batches. The losses, the norms of the gradients, the metrics and the saved
parameters must be those of one device, in f64. A layout may be refused for what it cannot compute: microbatches and several
batches where the loss is no sum over samples, and pipelines with more stages than the model has parts. A case is made of its seed
alone, which is printed: --seed SEED --models 1 makes it again. Needs nothing but Python's own library.
Exits with 0 if all layouts agree.
"""

import collections
import json
import pathlib
import random
import sys
import tempfile

from model_writer import MEANS, SUMS, Writer
from tools import Failure, Tools, difference, read_tensors, run_seeds, write_tensors

BATCH, STEPS, TOLERANCE = 12, 2, 1e-9
# A layout may be refused for these, of a model or a mesh that gives reason for it.
OF_SAMPLES = ("microbatches cannot see each other", "needs a sum over all microbatches", "only sums are carried",
              "partly a sum and partly a maximum", "compile a larger batch and do not accumulate")
OF_STAGES = ("some of them empty", "ask for fewer", "which comes later", "no op works on a microbatch")


def draw_layout(choose, writer, batch):
    """Flags of dtc-compile for a batch of `batch` samples."""
    sizes = {"dp": choose.choice((1, 1, 2, 3, 4)), "tp": choose.choice((1, 2, 2, 3)), "pp": choose.choice((1, 1, 1, 2))}
    if sizes["dp"] * sizes["tp"] * sizes["pp"] > 8:
        sizes["dp"] = 1
    sizes = {axis: size for axis, size in sizes.items() if size > 1}
    flags = ["--mesh", ",".join(f"{axis}={size}" for axis, size in sizes.items())] if sizes else []
    if "tp" in sizes:
        places = [(name, dim) for name, shape in sorted(writer.parameters.items()) for dim, size in enumerate(shape)
                  if -(-size // sizes["tp"]) * (sizes["tp"] - 1) < size]  # each device has an element
        chosen = dict(choose.sample(places, choose.randint(0, len(places))))  # one dimension of each
        shards = [f"{name}#{dim}=tp" for name, dim in chosen.items()]
        flags += ["--shard", ",".join(shards)] if shards else []
    microbatches = choose.choice([number for number in (1, 1, 1, 2, 3, 4) if batch % (number * sizes.get("dp", 1)) == 0] or [1])
    if microbatches > 1:
        flags += ["--microbatches", microbatches]
    if "pp" in sizes and microbatches > 1:
        flags += ["--schedule", choose.choice(("naive", "gpipe", "1f1b", "zb-h1"))]
    if "dp" in sizes:
        flags += ["--zero", choose.randint(0, 3)]
    if choose.random() < 0.3:
        flags += ["--recompute", choose.choice(("selective", "full"))]
    return flags


class Case:
    """A model, its samples and its optimizer."""

    def __init__(self, tools, seed):
        self.tools, self.seed, self.choose = tools, seed, random.Random(f"layouts {seed}")
        self.writer = self.write(BATCH)
        self.optimizer = ["--optimizer", "sgd", "--momentum", self.choose.choice((0, 0.9)), "--clip", self.choose.choice((0, 0.5))]
        write_tensors(tools.folder / "samples.safetensors", self.writer.samples(BATCH * STEPS))

    def write(self, batch):
        writer = Writer(random.Random(f"model {self.seed}"), batch)
        (self.tools.folder / "model.mlir").write_text(writer.text())
        return writer

    def train(self, batches, flags):
        """Losses, norms and metrics of the steps, and the parameters after them."""
        self.write(BATCH // batches)
        accumulate = ["--accumulate"] if batches > 1 and "--microbatches" not in flags else []
        self.tools.run("dtc-compile", "model.mlir", *self.optimizer, *flags, *accumulate, "-o", "m.plan")
        self.tools.run("dtc-run", "m.plan", "--data", "samples.safetensors", "--sampling", "epochs", "--steps", STEPS, "--seed", 5,
                       "--lr", 0.1, "--lr-schedule", "constant", "--warmup", 0, "--threads", 1, "--accumulate", batches,
                       "--metrics", "m.jsonl", "--save", "w.safetensors")
        lines = [json.loads(line) for line in (self.tools.folder / "m.jsonl").read_text().splitlines()]
        steps = [line | line.get("model", {}) for line in lines if "loss" in line]
        values = {name: [step[name] for step in steps] for name in ("loss", "grad_norm", *self.writer.metrics)}
        return values, read_tensors(self.tools.folder / "w.safetensors")

    def may_be_refused(self, message, batches, flags):
        many = batches > 1 or "--microbatches" in flags
        sums = not self.writer.mixes and self.writer.loss_kind in SUMS
        return ((many and not sums and any(reason in message for reason in OF_SAMPLES))
                or ("pp=" in " ".join(map(str, flags)) and any(reason in message for reason in OF_STAGES)))

    def compare(self, expected, found):
        for part, (one, other) in enumerate(zip(expected, found, strict=True)):
            if sorted(one) != sorted(other):
                raise Failure(f"the names are {sorted(other)}, expected {sorted(one)}")
            for name, values in one.items():
                if not difference(values, other[name]) <= TOLERANCE:  # also where it is no number
                    raise Failure(f"{'parameter ' if part else ''}{name} is {list(other[name])[:4]}, expected {list(values)[:4]}")


def run_case(tools, seed, counts):
    case = Case(tools, seed)
    expected = case.train(1, [])
    what = f"{case.writer.loss_kind}{', mixes samples' if case.writer.mixes else ''}, {len(case.writer.parameters)} parameters"
    for _ in range(4):
        # A mean over batches is one over the samples; masks belong to a batch.
        accumulates = case.writer.loss_kind in MEANS and not case.writer.draws
        batches = case.choose.choice((1, 1, 2, 3)) if accumulates else 1
        flags = draw_layout(case.choose, case.writer, BATCH // batches)
        layout = f"{' '.join(map(str, flags)) or 'one device'}{f' in {batches} batches' if batches > 1 else ''}"
        try:
            found = case.train(batches, flags)
            case.compare(expected, found)
            counts["layouts that agree"] += 1
        except Failure as failure:
            if not str(failure).startswith("dtc-compile") or not case.may_be_refused(str(failure), batches, flags):
                raise Failure(f"{what}: {layout}: {failure}") from failure
            counts["layouts that are refused with reason"] += 1
    return what


def main():
    counts = collections.Counter()

    def run(programs, seed):
        with tempfile.TemporaryDirectory() as folder:
            return run_case(Tools(pathlib.Path(programs), folder), seed, counts)

    status = run_seeds(__doc__, "models", "models", 10, run)
    for kind, number in sorted(counts.items()):
        print(f"{number} {kind}")
    return status


if __name__ == "__main__":
    sys.exit(main())
