"""What the sweeps share: dtc's programs, and what they say."""

import argparse
import array
import json
import pathlib
import struct
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
            lines = done.stderr.strip().splitlines()
            said = "\n".join([line for line in lines if "error:" in line] or lines)
            raise Failure(f"{name} exits with {done.returncode}: {said[:600]}")
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


def read_tensors(path):
    """All tensors of f64."""
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    result = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            assert entry["dtype"] == "F64", entry
            result[name] = array.array("d", data[begin:end])
    return result


def shape_of(values):
    return [len(values), *shape_of(values[0])] if isinstance(values, list) else []


def flattened(values):
    return [each for value in values for each in flattened(value)] if isinstance(values, list) else [values]


def write_tensors(path, tensors):
    """Tensors by name, each nested lists of int (i32) or float (f64)."""
    header, data = {}, b""
    for name, values in tensors.items():
        numbers = flattened(values)
        floats = isinstance(numbers[0], float)
        content = array.array("d" if floats else "i", numbers).tobytes()
        header[name] = {"dtype": "F64" if floats else "I32", "shape": shape_of(values),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def difference(one, other):
    """The largest one of two lists of numbers, relative to the largest magnitude."""
    scale = max([1.0, *map(abs, one)])
    return max((abs(a - b) for a, b in zip(one, other, strict=True)), default=0.0) / scale


def expect_close(name, found, expected, tolerance=1e-8):
    if found is not None and abs(found - expected) > tolerance * max(abs(expected), 1e-3):
        raise Failure(f"{name} is {found:.12g}, expected {expected:.12g}")


def summarize(results):
    """Prints how many cases ended in which way."""
    for way in sorted(set(results)):
        print(f"{way}: {results.count(way)}")


def run_seeds(description, flag, what, default, run):
    """The exit status of a sweep: run(folder of the programs, seed) says what was right, or raises Failure, of each seed."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("programs", nargs="?", type=pathlib.Path, default=pathlib.Path("build/release/bin"),
                        help="the folder of dtc-import, dtc-compile and dtc-run (default: build/release/bin)")
    parser.add_argument(f"--{flag}", dest="count", type=int, default=default, help=f"the number of {what} (default: {default})")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first one; each next one has the next (default: 1)")
    options = parser.parse_args()
    failures = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            print(f"seed {seed}: {run(options.programs, seed)}", flush=True)
        except Failure as failure:
            failures += 1
            print(f"seed {seed}: error: {failure}", flush=True)
    print(f"{options.count} {what}, {failures} of which differ")
    return failures > 0
