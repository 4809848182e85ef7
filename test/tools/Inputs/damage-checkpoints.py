#!/usr/bin/env python3
"""Damages the newest checkpoint of a run and resumes it: damage-checkpoints.py FOLDER WEIGHTS EXPECTED PROGRAM ARGUMENT...

FOLDER has two checkpoints or more. PROGRAM resumes from it and writes WEIGHTS. Whatever is done to the newest one, the
program must refuse it with a note that names it, go on from the one before, and come to the weights EXPECTED, and to as
many complete checkpoints. DTC_RANDOM_SEED=n sets the seed, "new" draws one; it is printed.
"""

import os
import random
import shutil
import subprocess
import sys

folder, weights, expected, *command = sys.argv[1:]
seed = os.environ.get("DTC_RANDOM_SEED", "1")
seed = random.SystemRandom().randrange(1 << 32) if seed == "new" else int(seed)
print(f"DTC_RANDOM_SEED={seed}")
choice = random.Random(seed)
steps = sorted(name for name in os.listdir(folder) if name.startswith("step-"))
before, newest = steps[-2:]
files = sorted(os.listdir(os.path.join(folder, newest)))
kept = folder + ".kept"
shutil.copytree(folder, kept)


def flip(path):
    """Changes one bit."""
    with open(path, "r+b") as file:
        at = choice.randrange(os.path.getsize(path))
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << choice.randrange(8)]))


def blank(path):
    """Makes zeros of a block, as a disk does that has lost it."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(min(choice.randrange(0, size, 512), size - 64))
        file.write(b"\0" * 64)


def truncate(path):
    os.truncate(path, choice.randrange(os.path.getsize(path)))


def grow(path):
    with open(path, "ab") as file:
        file.write(b"\0")


def swap(path):
    """The file of the checkpoint before, of the same size or not."""
    shutil.copy(os.path.join(kept, before, os.path.basename(path)), path)


def remove(path):
    os.remove(path)


trials = [(action, file) for action in (flip, blank, truncate, grow, swap, remove) for file in files]
trials += [(flip, choice.choice(files)) for _ in range(10)]
for action, file in trials:
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    if os.path.exists(weights):
        os.remove(weights)
    action(os.path.join(folder, newest, file))
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    where = f"{action.__name__} {file}: status {run.returncode}, {run.stderr}"
    assert run.returncode == 0, where
    refused = [line for line in run.stderr.splitlines() if "a checkpoint is not used" in line]
    assert len(refused) == 1 and f"{folder}/{newest}" in refused[0], where
    assert f"from {folder}/{before}" in run.stderr, where
    with open(weights, "rb") as one, open(expected, "rb") as other:
        assert one.read() == other.read(), where + "the weights are others"
    listed = subprocess.run(["dtc-plan", "checkpoint", folder], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "refused" not in listed and newest.lstrip("step-0") in listed, where + listed
print(f"{len(trials)} damaged checkpoints refused")
