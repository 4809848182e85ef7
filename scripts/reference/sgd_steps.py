"""Trains models of dtc with plain SGD, for scripts that compare captured models with the framework they come from."""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import numpy
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 3
LAYOUTS = ["", "--mesh dp=2", "--mesh dp=2 --zero 3", "--mesh pp=2 --microbatches 2", "--mesh tp=2", "--mesh dp=2,tp=2 --zero 1"]
# Of models with experts.
EXPERT_LAYOUTS = ["--mesh ep=2", "--mesh dp=2,ep=2 --zero 1"]
SGD = ["--optimizer", "sgd", "--momentum", "0", "--weight-decay", "0", "--clip", "0"]
CONSTANT = ["--lr-schedule", "constant", "--warmup", "0", "--sampling", "epochs", "--threads", "1"]
TYPES = {"f64": numpy.float64, "f32": numpy.float32}
TOLERANCES = {"f64": 1e-9, "f32": 1e-4}
LEARNING_RATE = 0.1


def distance(wanted, found):
    """The largest of the differences, each relative to the tensor's largest element. A tensor of zeros but for rounding, as the
    gradient of the bias of keys is, with which a softmax does not change, is compared with the largest element of all."""
    assert wanted.keys() <= found.keys(), wanted.keys() - found.keys()
    largest = {name: float(numpy.abs(each).max()) for name, each in wanted.items()}

    def scale(name):
        return max(largest[name] if largest[name] > 1e-12 else max(largest.values()), 1e-4)
    return max(float(numpy.abs(found[name].astype(numpy.float64) - each).max()) / scale(name) for name, each in wanted.items())


class SgdSteps:
    """The steps of a captured model by the programs of dtc, in a folder, from initial parameters on samples."""

    def __init__(self, programs, folder, captured, initial, samples):
        self.programs, self.folder, self.initial = pathlib.Path(programs).resolve(), pathlib.Path(folder), initial
        save_file(initial, self.folder / "initial.safetensors")
        save_file(samples, self.folder / "samples.safetensors")
        (self.folder / "captured.mlir").write_text(captured)
        self.run("dtc-import", "captured.mlir", "-o", "m.mlir")

    def run(self, program, *arguments):
        command = [str(self.programs / program), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")

    def steps(self, count, rate):
        """The losses of steps of the plan m.plan, and the parameters after them."""
        self.run("dtc-run", "m.plan", "--init", "initial.safetensors", "--data", "samples.safetensors", "--steps", count,
                 "--lr", rate, *CONSTANT, "--metrics", "m.jsonl", "--save", "after.safetensors")
        losses = [entry["loss"] for entry in map(json.loads, (self.folder / "m.jsonl").read_text().splitlines())
                  if "loss" in entry]
        return losses, load_file(self.folder / "after.safetensors")

    def errors(self, layout, losses, gradients, parameters):
        """The relative errors of the losses, of the gradients of the first step and of the parameters after the last one."""
        self.run("dtc-compile", "m.mlir", *SGD, *layout.split(), "-o", "m.plan")
        _, moved = self.steps(1, 1.0)
        found = {key: self.initial[key].astype(numpy.float64) - each for key, each in moved.items()}
        found_losses, after = self.steps(STEPS, LEARNING_RATE)
        return (max(abs(a / b - 1) for a, b in zip(found_losses, losses, strict=True)), distance(gradients, found),
                distance(parameters, after))


def as_type(tensors, dtype):
    """Arrays by name whose floats have the type."""
    return {name: numpy.ascontiguousarray(each.astype(TYPES[dtype]) if each.dtype.kind == "f" else each)
            for name, each in tensors.items()}


def compare(name, programs, layouts, capture_in, initial, samples, reference):
    """Prints the errors of a model on layouts, in f64 and in f32, and says whether they are within the tolerances.
    capture_in("f64") is the text of its capture, `reference` the losses, gradients and parameters in f64."""
    good = True
    for dtype, tolerance in TOLERANCES.items():
        with tempfile.TemporaryDirectory() as folder:
            steps = SgdSteps(programs, folder, capture_in(dtype), as_type(initial, dtype), as_type(samples, dtype))
            for layout in layouts:
                errors = steps.errors(layout, *reference)
                print(f"{name:8} {dtype} {layout or 'one device':32} loss {errors[0]:.1e}  gradients {errors[1]:.1e}  "
                      f"parameters {errors[2]:.1e}", flush=True)
                good &= max(errors) <= tolerance
    return good


def parse_arguments(description, models):
    """The command line of a script that compares `models`; its working directory becomes the root of the tree, to which paths
    in captures are relative."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build" / "release" / "bin"), help="the folder of dtc's programs")
    parser.add_argument("--record", help="write the captures to this folder instead of comparing")
    parser.add_argument("--layout", action="append", choices=LAYOUTS + EXPERT_LAYOUTS, help="only this layout; may be given again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("models", nargs="*", help="the models (default: all)")
    arguments = parser.parse_args()
    for name in arguments.models:
        if name not in models:
            parser.error(f"there is no model '{name}', expected one of {', '.join(models)}")
    os.chdir(ROOT)
    return arguments
