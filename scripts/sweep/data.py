#!/usr/bin/env python3
"""Trains on random data sets in two ways, which must give the same losses and parameters: sweep/data.py [--cases 500]

One is a model with one document in each row, all in one batch on one device. The other is a random way of having the same
documents: packed into rows, split into files, and read in epochs of several batches (--accumulate), over microbatches or
devices. A step has all documents in both, so that the order of samples does not matter. Labels are masked at random, of some
documents, rows or data sets all of them. Everything is in f64, and the optimizer is plain SGD, so that parameters differ by
the learning rate times the gradients. A case is made of its seed alone, which is printed: --seed SEED --cases 1 makes it again.
"""

import functools
import json
import random
import sys
import tempfile

from tools import Failure, Tools, difference, read_tensors, run_seeds, write_tensors

VOCABULARY = 31
CONFIGS = {
    "llama": dict(model_type="llama", vocab_size=VOCABULARY, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32),
    "gpt2": dict(model_type="gpt2", vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=4, n_positions=32,
                 resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
}
TOLERANCE = 1e-9


class PlanTools(Tools):
    """Makes plans of the same options once."""

    def __init__(self, programs, folder):
        super().__init__(programs, folder)
        self.plans = {}
        for name, config in CONFIGS.items():
            (self.folder / f"{name}.json").write_text(json.dumps(config))

    def plan(self, import_options, compile_options):
        key = (*import_options, "|", *compile_options)
        if key not in self.plans:
            name = f"{len(self.plans)}.plan"
            self.run("dtc-import", *import_options, "--dtype", "f64", "-o", "m.mlir")
            self.run("dtc-compile", "m.mlir", "--optimizer", "sgd", "--momentum", 0, "--weight-decay", 0, "--clip", 0,
                     *compile_options, "-o", name)
            self.plans[key] = name
        return self.plans[key]

    def train(self, plan, files, *options):
        """The losses of two steps, the parameters after them, and whether a note says that no label counts."""
        data = [argument for file in files for argument in ("--data", file)]
        said = self.run("dtc-run", plan, *data, "--sampling", "epochs", "--steps", 2, "--lr", 0.5, "--lr-schedule",
                        "constant", "--warmup", 0, "--threads", 1, "--metrics", "m.jsonl", "--save", "w.safetensors", *options)
        losses = [json.loads(line)["loss"] for line in (self.folder / "m.jsonl").read_text().splitlines()]
        return losses, read_tensors(self.folder / "w.safetensors"), "no label counts" in said


def draw_documents(choose, seq, ignored):
    """Tokens and labels of each document."""
    masked = choose.choice((0.0, 0.0, 0.3, 0.9, 1.0))
    documents = []
    for _ in range(choose.choice((1, 2, 4, 6, 8, 12))):
        length = choose.randint(1, seq)
        here = choose.choice((masked, masked, 0.0 if masked < 1 else 1.0, 1.0))
        documents.append(([choose.randrange(VOCABULARY) for _ in range(length)],
                          [ignored if choose.random() < here else choose.choice([token for token in range(VOCABULARY)
                                                                                if token != ignored]) for _ in range(length)]))
    return documents


def pack(choose, documents, seq):
    """Rows of documents that fit, in a random order, with padding between and after them where there is room."""
    rows = []
    for document in choose.sample(documents, len(documents)):
        fitting = [row for row in rows if sum(len(each[0]) for each in row) + len(document[0]) <= seq]
        if fitting and choose.random() < 0.8:
            choose.choice(fitting).append(document)
        else:
            rows.append([document])
    return rows


def packed_tensors(choose, rows, seq, ignored):
    tensors = {name: [] for name in ("tokens", "labels", "segments", "positions")}
    for row in rows:
        parts, room = [], seq - sum(len(tokens) for tokens, _ in row)
        for number, (tokens, labels) in enumerate(row):
            gap = choose.randint(0, room) if choose.random() < 0.3 else 0
            room -= gap
            parts += [(-1, [0] * gap, [ignored] * gap), (number, tokens, labels)]
        parts.append((-1, [0] * room, [ignored] * room))
        tensors["tokens"].append([token for _, tokens, _ in parts for token in tokens])
        tensors["labels"].append([label for _, _, labels in parts for label in labels])
        tensors["segments"].append([number for number, tokens, _ in parts for _ in tokens])
        tensors["positions"].append([position for _, tokens, _ in parts for position in range(len(tokens))])
    return tensors


def compare(tools, seed):
    """Makes and runs a case. Returns what it was."""
    choose = random.Random(seed)
    model, seq = choose.choice(sorted(CONFIGS)), choose.choice((5, 8, 16))
    ignored = choose.choice((-100, -100, -1, 7))
    documents = draw_documents(choose, seq, ignored)
    common = (f"{model}.json", "--seq", seq, "--ignore-index", ignored, "--attention", choose.choice(("fused", "decomposed")))

    # One document in each row; its tokens do not see the text after it.
    padded = {"tokens": [tokens + [1] * (seq - len(tokens)) for tokens, _ in documents],
              "labels": [labels + [ignored] * (seq - len(labels)) for _, labels in documents]}
    write_tensors(tools.folder / "plain.safetensors", padded)
    plain = tools.plan((*common, "--batch", len(documents)), ())
    expected = tools.train(plain, ["plain.safetensors"])

    rows = pack(choose, documents, seq)
    batches = choose.choice((1, 1, 2, 3))
    batch = -(-len(rows) // batches)
    compile_options = []
    if choose.random() < 0.5:
        batch += batch % 2
        compile_options += ["--mesh", "dp=2"] if choose.random() < 0.5 else ["--microbatches", 2]
    rows += [[] for _ in range(batch * batches - len(rows))] # of padding alone
    choose.shuffle(rows)
    tensors = packed_tensors(choose, rows, seq, ignored)
    numbers = sorted({0, len(rows), *(choose.randrange(len(rows)) for _ in range(choose.randrange(3)))})
    files = []
    for begin, end in zip(numbers, numbers[1:]):
        files.append(f"part-{len(files)}.safetensors")
        write_tensors(tools.folder / files[-1], {name: values[begin:end] for name, values in tensors.items()})
    if batches > 1:
        compile_options.append("--accumulate")
    packed = tools.plan((*common, "--packed", "--batch", batch), compile_options)
    found = tools.train(packed, files, "--accumulate", batches)

    what = (f"{model}, {len(documents)} documents in {len(rows)} rows of {seq} and {len(files)} files, {batches} of batch {batch}"
            f"{''.join(f' {option}' for option in compile_options)}")
    if difference(expected[0], found[0]) > TOLERANCE:
        raise Failure(f"{what}: the losses are {found[0]}, expected {expected[0]}")
    if sorted(expected[1]) != sorted(found[1]):
        raise Failure(f"{what}: the parameters have other names")
    for name, values in expected[1].items():
        if difference(values, found[1][name]) > TOLERANCE:
            raise Failure(f"{what}: {name} differs by {difference(values, found[1][name])}")
    none = all(label == ignored for _, labels in documents for label in labels)
    if (expected[2], found[2]) != (none, none):
        raise Failure(f"{what}: {'no' if none else 'a'} label counts, and the notes say otherwise")
    return what + (", no label counts" if none else "")


def main():
    with tempfile.TemporaryDirectory() as folder:
        tools_of = functools.cache(lambda programs: PlanTools(programs, folder))
        return run_seeds(__doc__, "cases", "data sets", 20, lambda programs, seed: compare(tools_of(programs), seed))


if __name__ == "__main__":
    sys.exit(main())
