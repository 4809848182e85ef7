"""What the examples have in common: their command line, text as tokens, and the loop that trains."""

import argparse
import pathlib
import pydoc_data.topics

import numpy


def parse_arguments(description, **more):
    """The command line of an example; `more` are further options and their settings."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--mesh", default="auto", help='"auto", which searches for --devices, or axes and sizes: dp=2,tp=2')
    parser.add_argument("--devices", type=int, default=8, help="virtual devices that a search is for")
    parser.add_argument("--steps", type=int, default=60)
    for name, settings in more.items():
        parser.add_argument("--" + name.replace("_", "-"), **settings)
    arguments = parser.parse_args()
    # What dtc.compile() is given: a mesh that is not searched has its devices.
    arguments.layout = {"mesh": arguments.mesh, **({"devices": arguments.devices} if arguments.mesh == "auto" else {})}
    return arguments


def read_tokens(path=None):
    """The bytes of a text file, which are the tokens; without one, of the documentation that Python has of itself."""
    text = pathlib.Path(path).read_bytes() if path else "".join(pydoc_data.topics.topics.values()).encode()
    return numpy.frombuffer(text, numpy.uint8).astype(numpy.int32)


def draw_windows(tokens, batch, length, generator):
    """Random windows [batch, length] of a text, and the tokens that follow each of theirs."""
    first = generator.integers(0, len(tokens) - length, (batch, 1))
    places = first + numpy.arange(length)
    return {"tokens": tokens[places], "labels": tokens[places + 1]}


def train(step, draw_batch, steps):
    """Prints the step, and trains on batches that draw_batch() gives. All processes draw the same ones, and the first prints."""
    is_first = step.process == 0
    if is_first:
        print(step, flush=True)
    losses = []
    for number in range(1, steps + 1):
        metrics = step(draw_batch())
        losses.append(metrics["loss"])
        if is_first and (number == 1 or number % 10 == 0 or number == steps):
            print(f"step {number}/{steps}  loss {metrics['loss']:.4f}", flush=True)
    tenth = max(steps // 10, 1)
    first, last = (float(numpy.mean(each)) for each in (losses[:tenth], losses[-tenth:]))
    if is_first:
        print(f"the loss went from {first:.4f} to {last:.4f}", flush=True)
