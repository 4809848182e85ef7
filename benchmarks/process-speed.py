#!/usr/bin/env python3
"""Steps of one plan in two processes against those in one process with two devices, in turns.

process-speed.py build/release/bin [--config examples/gpt2-30m/config.json] [--rounds 3] [--steps 8]: for each way to run
it the median time of a step, without the first one of each run, and the time in one process divided by it (the median of
the rounds).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ONE = "one process"
WAYS = {
    ONE: [],
    "mpi": ["--processes", "2", "--network", "mpi"],
    "tcp": ["--processes", "2"],
    "mpi, no shared memory": ["--processes", "2", "--network", "mpi", "--no-shared-memory"],
    "tcp, no shared memory": ["--processes", "2", "--no-shared-memory"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("bin", type=pathlib.Path, help="the folder of the tools")
    parser.add_argument("--config", type=pathlib.Path, default=ROOT / "examples/gpt2-30m/config.json")
    parser.add_argument("--mesh", default="dp=2")
    parser.add_argument("--batch", default="4")
    parser.add_argument("--seq", default="128")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    os.environ["PATH"] = f"{args.bin.resolve()}:{os.environ['PATH']}"
    config = args.config.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for command in (["dtc-import", str(config), "--batch", args.batch, "--seq", args.seq, "-o", "m.mlir"],
                        ["dtc-compile", "m.mlir", "--mesh", args.mesh, "-o", "m.plan"],
                        [sys.executable, str(ROOT / "test/tools/Inputs/make-tokens.py"), "text.txt", "20000", "64"]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = {way: [] for way in WAYS}  # medians of the rounds
        losses = set()
        for _ in range(args.rounds):
            for way, flags in WAYS.items():
                subprocess.run(["dtc-run", "m.plan", "--data", "text.txt", "--steps", str(args.steps), "--threads", "1",
                                "--metrics", "metrics.jsonl", *flags], check=True, stdout=subprocess.DEVNULL)
                steps = [json.loads(line) for line in pathlib.Path("metrics.jsonl").read_text().splitlines()]
                seconds[way].append(statistics.median(step["step_seconds"] for step in steps[1:]))
                losses.add(tuple(step["loss"] for step in steps))
        assert len(losses) == 1, losses
        print(f"{args.config}, {args.mesh}: the same losses everywhere")
        for way, times in seconds.items():
            ratio = statistics.median(one / other for one, other in zip(seconds[ONE], times))
            print(f"{way:24} {1e3 * statistics.median(times):9.1f} ms a step  {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
