"""What the sweeps share: dtc's programs, and what they say."""

import json
import pathlib
import subprocess


class Failure(Exception):
    """A program refused its input, or a result is not the expected one."""


class Tools:
    """The programs of a folder, run in another one."""

    def __init__(self, binaries, folder):
        self.binaries, self.folder = pathlib.Path(binaries).resolve(), pathlib.Path(folder)

    def run(self, name, *arguments):
        """Standard error of the program, where warnings are."""
        command = [str(self.binaries / name), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise Failure(f"{name} exits with {done.returncode}: {done.stderr.strip()[:600]}")
        return done.stderr

    def first_step(self, batch, sequence, strategy):
        """The loss and the norm of the gradient of config.json's model with weights.safetensors on samples.safetensors,
        in f64, and what dtc-import warned about."""
        length = ["--seq", sequence] if sequence else []
        warnings = self.run("dtc-import", "config.json", "--batch", batch, *length, "--dtype", "f64", "--no-dropout",
                            "-o", "model.mlir")
        self.run("dtc-compile", "model.mlir", *strategy, "-o", "model.plan")
        self.run("dtc-run", "model.plan", "--init", "weights.safetensors", "--data", "samples.safetensors",
                 "--sampling", "epochs", "--steps", 1, "--lr", 0, "--threads", 1, "--metrics", "metrics.jsonl")
        with open(self.folder / "metrics.jsonl") as file:
            steps = [entry for entry in map(json.loads, file) if "loss" in entry]
        return steps[0]["loss"], steps[0].get("grad_norm"), warnings


def expect_close(name, found, expected, tolerance=1e-8):
    if found is not None and abs(found - expected) > tolerance * max(abs(expected), 1e-3):
        raise Failure(f"{name} is {found:.12g}, expected {expected:.12g}")


def summarize(results):
    """Prints how many cases ended in which way."""
    for way in sorted(set(results)):
        print(f"{way}: {results.count(way)}")
