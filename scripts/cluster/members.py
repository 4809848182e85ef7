"""Replicas are lost and return at random, and the run goes on with those that are there."""

import os
import pathlib
import random
import re
import signal
import subprocess
import time

import hosts
from checks import expect
from runs import TREE, make_model, tool

STEPS, EVERY = 200, 10


def process_of(run, draw):
    """One of the processes that dtc-run --processes has started."""
    found = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and hosts.program_of(int(entry)) == "dtc-run"
             and hosts.variables_of(int(entry)).get("DTC_RUN_PARENT") == str(run.pid)]
    return draw.choice(sorted(found)) if found else None


def lines_of(path):
    return pathlib.Path(path).read_text().count("\n") if os.path.exists(path) else 0


def wait_for_steps(run, count):
    """Until the metrics have that many lines. False if the run ends before."""
    while lines_of("steps.jsonl") < count:
        if run.poll() is not None:
            return False
        time.sleep(0.01)
    return True


def start(arguments, output):
    return subprocess.Popen(["dtc-run", "four.plan", *arguments, "--metrics", "steps.jsonl", "--checkpoint", "ck", "--resume",
                             "--checkpoint-every", str(EVERY), "--processes", "4", "--max-restarts", "1", "--elastic",
                             "four.plans"], stdout=output, stderr=subprocess.STDOUT)


def disturb(arguments, draw, output):
    """A process is killed, the others go on, and are stopped later, so that all can start again."""
    run = start(arguments, output)
    killed_after = lines_of("steps.jsonl") + draw.randint(3, 40)
    if not wait_for_steps(run, killed_after):
        return run.wait()
    process = process_of(run, draw)
    if process:
        os.kill(process, signal.SIGKILL)
    # Steps after the last checkpoint are taken once more.
    if wait_for_steps(run, killed_after + draw.randint(EVERY + 1, 40)):
        run.send_signal(signal.SIGTERM)
    return run.wait(timeout=300)


def one(options, number, arguments, undisturbed):
    draw = random.Random(f"{options.seed} members {number}")
    for path in ("steps.jsonl", "ck", "output.txt"):
        subprocess.run(["rm", "-rf", path], check=True)
    with open("output.txt", "a") as output:
        for _ in range(draw.randint(1, 2)):
            disturb(arguments, draw, output)
        status = start(arguments, output).wait(timeout=300)
    text = pathlib.Path("output.txt").read_text()
    losses = re.findall(r"eval loss ([\d.]+)", text)
    # Also one that is lost before the first checkpoint.
    lost = len(re.findall(r"goes on with \S+ for 3 devices, in 3 processes instead of 4", text))
    returned = len(re.findall(r"has 3 replicas and the plan 4", text))
    if status != 0 or not losses:
        return expect(False, f"run {number} ended with status {status}:\n{text}")
    apart = float(losses[-1]) / undisturbed - 1
    return expect(abs(apart) <= 0.02 and lost > 0 and returned > 0,
                  f"run {number}: lost {lost}, returned {returned}, loss {losses[-1]}, {100 * apart:+.2f} %")


def check_members(options, folder):
    """gpt2-tiny with four replicas in four processes."""
    pathlib.Path("text.txt").write_bytes(b"".join(path.read_bytes() for path in sorted((TREE / "docs").glob("*.md"))))
    make_model("m.mlir", batch=12, seq=32, config=TREE / "examples/gpt2-tiny/config.json")
    tool("dtc-compile", "m.mlir", "--mesh", "dp=4", "--outer", "dp", "--also-for", "devices=3", "-o", "four.plan")
    arguments = ["--data", "text.txt", "--eval-data", "text.txt", "--eval-batches", "8", "--eval-every", str(STEPS), "--steps",
                 str(STEPS), "--outer-every", str(EVERY), "--threads", "1"]
    text = tool("dtc-run", "four.plan", *arguments)
    undisturbed = float(re.findall(r"eval loss ([\d.]+)", text)[-1])
    print(f"seed {options.seed}; undisturbed: loss {undisturbed}", flush=True)
    return all([one(options, number, arguments, undisturbed) for number in range(options.times)])
