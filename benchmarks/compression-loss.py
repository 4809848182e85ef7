#!/usr/bin/env python3
"""Measures what compressed gradients and rare outer steps cost the loss of a small GPT-2, and what they send.

Each method trains the same model from the same parameters on the same samples, on four devices of data parallelism, once
for each seed. The text is the documentation of this project, its last tenth held out, unless --data and --eval-data name
others; bytes are tokens. A table has the loss on the held-out text after the last step, the mean of the seeds and the
smallest and the largest difference to f32 of the same seed, and the bytes that a device sends in a step."""

import argparse
import datetime
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

METHODS = {
    "f32": [],
    "int8": ["--compress", "dp=int8"],
    "int8, feedback": ["--compress", "dp=int8:feedback=on"],
    "int8, stochastic": ["--compress", "dp=int8:rounding=stochastic"],
    "int4": ["--compress", "dp=int4"],
    "int4, feedback": ["--compress", "dp=int4:feedback=on"],
    "int4, stochastic": ["--compress", "dp=int4:rounding=stochastic"],
    "powersgd, rank 4": ["--compress", "dp=powersgd:rank=4"],
    "topk, 1%": ["--compress", "dp=topk:share=0.01"],
    "outer step": ["--outer", "dp"],
    "outer step, int8": ["--outer", "dp", "--compress", "dp=int8"],
    "outer step, int4, feedback": ["--outer", "dp", "--compress", "dp=int4:feedback=on"],
    "4 fragments": ["--outer", "dp", "--outer-fragments", "4"],
    "4 fragments, delay 5": ["--outer", "dp", "--outer-fragments", "4", "--outer-delay", "5", "--outer-blend", "0.5"],
    "4 fragments, delay 5, int8": ["--outer", "dp", "--outer-fragments", "4", "--outer-delay", "5", "--outer-blend", "0.5",
                                   "--compress", "dp=int8"],
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=448, help="elements of an activation; 448 in 4 layers: 9.8M parameters")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--outer-every", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=1, help="runs of each method, with the seeds 1, 2, ...")
    parser.add_argument("--method", action="append", choices=list(METHODS), help="a method; may be repeated (default: all)")
    parser.add_argument("--data", help="a text file to train on")
    parser.add_argument("--eval-data", help="a text file to compute the loss on")
    parser.add_argument("--eval-batches", type=int, default=24)
    parser.add_argument("--bin", default=os.path.join(root, "build", "release", "bin"), help="folder of the programs")
    args = parser.parse_args()
    if bool(args.data) != bool(args.eval_data):
        parser.error("--data and --eval-data go together")
    args.root = root
    return args


def call(args, program, *rest):
    command = [os.path.join(args.bin, program), *map(str, rest)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def write_inputs(args):
    if not args.data:
        text = b"".join(open(path, "rb").read() for path in sorted(glob.glob(os.path.join(args.root, "docs", "**", "*.md"),
                                                                              recursive=True)))
        args.data, args.eval_data = "train.txt", "held-out.txt"
        for name, part in ((args.data, text[:len(text) * 9 // 10]), (args.eval_data, text[len(text) * 9 // 10:])):
            with open(name, "wb") as file:
                file.write(part)
    with open(os.path.join(args.root, "examples", "gpt2-tiny", "config.json")) as file:
        config = json.load(file)
    config.update(n_layer=args.layers, n_embd=args.width, initializer_range=0.02)
    with open("config.json", "w") as file:
        json.dump(config, file)
    call(args, "dtc-import", "config.json", "--batch", args.batch, "--seq", args.seq, "-o", "m.mlir")


def every(args, method):
    """The steps from one outer step to the next: fragments divide them, so that they may be a few more."""
    fragments = 4 if "--outer-fragments" in METHODS[method] else 1
    return -(-args.outer_every // fragments) * fragments


def measure(args, method, seed):
    """The loss on held-out text after the last step, and the seconds of a step in the middle of the run."""
    outer = ["--outer-every", every(args, method)] if "--outer" in METHODS[method] else []
    call(args, "dtc-run", "m.plan", "--data", args.data, "--eval-data", args.eval_data, "--eval-batches", args.eval_batches,
         "--eval-every", args.steps, "--steps", args.steps, "--lr", args.lr, "--seed", seed, "--metrics", "m.jsonl",
         "--log-every", 1000000, *outer)
    with open("m.jsonl") as file:
        lines = [json.loads(line) for line in file]
    losses = [line["eval_loss"] for line in lines if "eval_loss" in line]
    seconds = sorted(line["step_seconds"] for line in lines if "step_seconds" in line)
    return losses[-1], seconds[len(seconds) // 2]


def sent_by(args, method):
    """What a device sends in a step, and after every H-th step besides."""
    text = call(args, "dtc-plan", "explain", "m.plan")
    found = re.search(r"a step: each device sends (.*?) in", text)
    step = found.group(1) if found else "nothing"
    outer = re.search(r"outer step.* after every .*?: (.*?) more in", text)
    return step + (f" and {outer.group(1)} every {every(args, method)} steps" if outer else "")


def main():
    args = parse_arguments()
    args.bin = os.path.abspath(args.bin)
    if args.data:
        args.data, args.eval_data = os.path.abspath(args.data), os.path.abspath(args.eval_data)
    folder = tempfile.mkdtemp(prefix="compression-loss-")
    os.chdir(folder)
    try:
        write_inputs(args)
        print(f"{datetime.date.today()}, {os.cpu_count()} cores: GPT-2 of {args.layers} layers of {args.width}, dp=4, "
              f"{args.batch} samples of {args.seq} bytes, {args.steps} steps, seeds 1 to {args.seeds}")
        print("| method | sent by a device in a step | held-out loss | against f32 | a step |")
        print("| --- | --- | --- | --- | --- |", flush=True)
        plain = {}
        for method in args.method or METHODS:
            call(args, "dtc-compile", "m.mlir", "--mesh", "dp=4", *METHODS[method], "-o", "m.plan")
            results = [measure(args, method, seed) for seed in range(1, args.seeds + 1)]
            losses = [loss for loss, _ in results]
            if method == "f32":
                plain = losses
            differences = [loss - base for loss, base in zip(losses, plain)]
            against = "" if not differences else f"{min(differences):+.4f}" if args.seeds == 1 else \
                f"{min(differences):+.4f} to {max(differences):+.4f}"
            print(f"| {method} | {sent_by(args, method)} | {sum(losses) / len(losses):.4f} | {against} | "
                  f"{1000 * sum(seconds for _, seconds in results) / len(results):.0f} ms |", flush=True)
    finally:
        shutil.rmtree(folder)


main()
