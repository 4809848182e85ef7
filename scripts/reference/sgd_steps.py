"""Trains models of dtc with plain SGD, for scripts that compare captured models with the framework they come from."""

import json
import pathlib
import subprocess

STEPS = 3
LAYOUTS = ["", "--mesh dp=2", "--mesh dp=2 --zero 3", "--mesh pp=2 --microbatches 2", "--mesh tp=2"]
SGD = ["--optimizer", "sgd", "--momentum", "0", "--weight-decay", "0", "--clip", "0"]
CONSTANT = ["--lr-schedule", "constant", "--warmup", "0", "--sampling", "epochs", "--threads", "1"]
TOLERANCES = {"f64": 1e-9, "f32": 1e-4}
LEARNING_RATE = 0.1


class SgdSteps:
    """dtc's programs in a folder with initial.safetensors and samples.safetensors."""

    def __init__(self, programs, folder, load_file):
        self.programs, self.folder, self.load_file = pathlib.Path(programs).resolve(), pathlib.Path(folder), load_file

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
        return losses, self.load_file(self.folder / "after.safetensors")
