#!/usr/bin/env python3
"""Measures what checkpoints cost a training run: step times, the rate of writing, and memory.

In one run, a checkpoint is due every ten steps: five steps in which it is copied and written, and five without, so that
both see the same machine. A step's time is that of its line of the metrics, with the copy and the wait. In another run,
of a small batch, each step waits for a checkpoint to be written; after each the run is stopped, and a plain file of as
many bytes is written and flushed to the same disk, so that both find the same memory for the page cache. The peak memory
(VmHWM) of this run is compared with that of a run without checkpoints and with what dtc-run states at its start.
Medians are printed.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

EVERY, WINDOW = 10, 5
PART = 8 << 20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--config", default=os.path.join(root, "examples", "gpt2-124m", "config.json"))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--checkpoints", type=int, default=6, help="checkpoints to measure (default: 6)")
    parser.add_argument("--rounds", type=int, default=5, help="checkpoints and plain files, in turn (default: 5)")
    parser.add_argument("--bin", default=os.path.join(root, "build", "release", "bin"), help="folder of the programs")
    parser.add_argument("--folder", help="a folder on the disk to measure (default: that of temporary files)")
    return parser.parse_args()


def compile_plan(args, name, batch, seq):
    subprocess.run([os.path.join(args.bin, "dtc-import"), args.config, "--batch", str(batch), "--seq", str(seq), "-o",
                    "m.mlir"], check=True)
    subprocess.run([os.path.join(args.bin, "dtc-compile"), "m.mlir", "-o", name], check=True)


def train(args, plan, steps, flags, watch=lambda process: None):
    """Runs dtc-run; returns its lines of metrics, what it printed, and its peak memory in bytes."""
    command = [os.path.join(args.bin, "dtc-run"), plan, "--data", "text.txt", "--steps", str(steps), "--metrics",
               "m.jsonl", "--log-every", "1000000"] + flags
    with open("out.txt", "w") as out:
        process = subprocess.Popen(command, stdout=out)
        try:
            while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
                watch(process)
                time.sleep(0.002)
        except BaseException:
            process.kill()
            raise
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"error: {' '.join(command)} ended with status {process.returncode}")
    with open("m.jsonl") as metrics, open("out.txt") as out:
        return [json.loads(line) for line in metrics], out.read(), usage.ru_maxrss * 1024


class WriteTimes:
    """How long each checkpoint takes from its temporary folder to its final name, in seconds."""

    def __init__(self, written=lambda process: None):
        self.begun, self.seconds, self.bytes, self.written = {}, {}, 0, written

    def __call__(self, process):
        now = time.monotonic()
        for name in os.listdir("ckpt") if os.path.isdir("ckpt") else []:
            if name.startswith(".tmp-step-"):
                self.begun.setdefault(name.removeprefix(".tmp-"), now)
            elif name in self.begun and name not in self.seconds:
                self.seconds[name] = now - self.begun[name]
                path = os.path.join("ckpt", name)
                self.bytes = self.bytes or sum(os.path.getsize(os.path.join(path, file)) for file in os.listdir(path))
                self.written(process)


def plain_write(size):
    """Seconds for a sequential write with fsync of `size` bytes."""
    part = os.urandom(PART)
    start = time.monotonic()
    with open("plain", "wb", buffering=0) as file:
        for offset in range(0, size, PART):
            file.write(part[:size - offset])
        os.fsync(file.fileno())
    seconds = time.monotonic() - start
    os.remove("plain")
    return seconds


def bytes_of(text):
    number, unit = re.search(r"a copy to save from ([0-9.]+) ([KMGT]iB|B) of memory", text).groups()
    return float(number) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)


def main():
    args = parse_arguments()
    args.bin, args.config = os.path.abspath(args.bin), os.path.abspath(args.config)
    folder = tempfile.mkdtemp(prefix="checkpoint-cost-", dir=args.folder)
    os.chdir(folder)
    try:
        compile_plan(args, "m.plan", args.batch, args.seq)
        compile_plan(args, "small.plan", 1, 8)
        with open("text.txt", "wb") as file:
            file.write(os.urandom(1 << 20))
        print(f"load of the machine before: {os.getloadavg()[0]:.2f}")
        flags = ["--checkpoint", "ckpt", "--keep", "1", "--checkpoint-every"]
        times = WriteTimes()
        lines, _, _ = train(args, "m.plan", (args.checkpoints + 1) * EVERY, flags + [str(EVERY)], times)
        seconds = [line["step_seconds"] for line in lines]
        for i, line in enumerate(lines[:-1]):
            # The work after a step delays the next one.
            seconds[i + 1] += line.get("checkpoint_copy_seconds", 0) + line.get("checkpoint_wait_seconds", 0)
        ratios, plain = [], []
        for due in range(EVERY, args.checkpoints * EVERY + 1, EVERY):
            # The steps before and after are those without a checkpoint, so that a drift of the machine cancels out.
            without = seconds[due - WINDOW:due] + seconds[due + WINDOW:due + 2 * WINDOW]
            ratios.append(statistics.mean(seconds[due:due + WINDOW]) / statistics.mean(without))
            plain.append(statistics.mean(without))
        copies = [line["checkpoint_copy_seconds"] for line in lines if "checkpoint_copy_seconds" in line]
        waits = [line["checkpoint_wait_seconds"] for line in lines if "checkpoint_wait_seconds" in line]
        print(f"a step without a checkpoint: {statistics.median(plain):.3f} s")
        print(f"five steps with one, against five without: {statistics.median(ratios):.3f} "
              f"({', '.join(f'{ratio:.3f}' for ratio in ratios)})")
        print(f"copy: {statistics.median(copies):.3f} s; longest wait for the disk: {max(waits):.3f} s; "
              f"written in {statistics.median(times.seconds.values()):.2f} s beside the steps")
        shutil.rmtree("ckpt")
        plains = []

        def write_plain(process):
            process.send_signal(signal.SIGSTOP)
            plains.append(plain_write(times.bytes))
            process.send_signal(signal.SIGCONT)

        times = WriteTimes(write_plain)
        _, printed, peak = train(args, "small.plan", args.rounds + 1, flags + ["1"], times)
        _, _, base = train(args, "small.plan", args.rounds + 1, [])
        # The first one finds memory that nobody has used before.
        written, plains = list(times.seconds.values())[1:], plains[1:]
        rates = [plain / own for own, plain in zip(written, plains)]
        print(f"writing {times.bytes / 1e6:.0f} MB with no step beside it: "
              f"{times.bytes / 1e6 / statistics.median(written):.0f} MB/s; a plain write with fsync after it: "
              f"{times.bytes / 1e6 / statistics.median(plains):.0f} MB/s; {statistics.median(rates):.0%} "
              f"({', '.join(f'{rate:.0%}' for rate in rates)})")
        stated = bytes_of(printed)
        print(f"peak memory: {base / 2**20:.0f} MiB without checkpoints, {(peak - base) / 2**20:.0f} MiB more with them; "
              f"stated: {stated / 2**20:.0f} MiB; {(peak - base) / stated:.3f}")
        print(f"load of the machine after: {os.getloadavg()[0]:.2f}")
    finally:
        shutil.rmtree(folder)


main()
