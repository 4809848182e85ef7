"""Two of eight processes are killed, and the run goes on with fewer."""

import os
import pathlib
import random
import re
import signal
import subprocess
import time

import hosts
from checks import expect, losses_of
from runs import TREE, make_data, make_model, tool

STEPS = 60


def kill_two(run, draw):
    """Two processes of dtc-run --processes, at once."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and hosts.program_of(int(entry)) == "dtc-run":
            variables = hosts.variables_of(int(entry))
            if variables.get("DTC_RUN_PARENT") == str(run.pid):
                found[int(variables["RANK"])] = int(entry)
    two = draw.sample(sorted(found), 2)
    for rank in two:
        os.kill(found[rank], signal.SIGKILL)
    return two


def one(options, number, model, arguments):
    draw = random.Random(f"{options.seed} elastic {number}")
    for path in ("steps.jsonl", "ck"):
        subprocess.run(["rm", "-rf", path], check=True)
    with open("output.txt", "w") as output:
        run = subprocess.Popen(["dtc-run", f"{model}.plan", *arguments, "--metrics", "steps.jsonl", "--checkpoint", "ck",
                                "--checkpoint-every", "5", "--processes", "8", "--max-restarts", "1", "--elastic",
                                f"{model}.plans"], stdout=output, stderr=subprocess.STDOUT)
        while not os.path.exists("steps.jsonl") or os.path.getsize("steps.jsonl") == 0:
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 2))
        two = kill_two(run, draw)
        status = run.wait(timeout=300)
    text = pathlib.Path("output.txt").read_text()
    again = re.search(r"note: goes on with .* for (\d+) devices", text)
    took = re.search(r"note: step (\d+) was done ([\d.]+) s after a process was lost", text)
    if status != 0 or not again or not took:
        return expect(False, f"processes {two} were killed, status {status}:\n{text}")
    worst = max(abs(a - b) / a for a, b in zip(losses_of("one.jsonl"), losses_of("steps.jsonl"), strict=True))
    good = expect(worst <= 1e-4, f"processes {two} were killed, went on with {again[1]} devices: losses differ by {worst:.1e}")
    return expect(float(took[2]) < 10, f"step {took[1]} was done {took[2]} s after that, at most 10 s") and good


def check_elastic(options, folder):
    """gpt2-tiny in eight processes."""
    model = "gpt2-tiny"
    make_data("text.txt", 40000, 64)
    make_model(f"{model}.mlir", batch=24, seq=32, config=TREE / "examples/gpt2-tiny/config.json")
    tool("dtc-compile", f"{model}.mlir", "-o", "one.plan")
    tool("dtc-compile", f"{model}.mlir", "--mesh", "dp=8", "--zero", "1", "--also-for", "devices=6,4", "-o", f"{model}.plan")
    arguments = ["--data", "text.txt", "--steps", str(STEPS), "--threads", "1"]
    tool("dtc-run", "one.plan", *arguments, "--metrics", "one.jsonl")
    print(f"seed {options.seed}", flush=True)
    return all([one(options, number, model, arguments) for number in range(min(options.times, 5))])
