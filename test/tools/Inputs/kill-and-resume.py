#!/usr/bin/env python3
"""Kills runs with SIGKILL at random moments and resumes them: kill-and-resume.py FOLDER METRICS EXPECTED PROGRAM ARGUMENT...

FOLDER is where PROGRAM keeps its checkpoints, METRICS the file of its metrics, and EXPECTED the metrics of the
undisturbed run. Half of the moments are any, the others lie in the writing of a checkpoint. After each kill all
checkpoints must be complete, and none may be missing that was there before; the next run must go on from the newest.
When a run comes to its end, its metrics must be those expected, and another one starts anew, until there have been
enough kills: 12, or DTC_KILLS. DTC_RANDOM_SEED=n sets the seed, "new" draws one; it is printed.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

folder, metrics, expected, *command = sys.argv[1:]
kills = int(os.environ.get("DTC_KILLS", "12"))
seed = os.environ.get("DTC_RANDOM_SEED", "1")
seed = random.SystemRandom().randrange(1 << 32) if seed == "new" else int(seed)
print(f"DTC_RANDOM_SEED={seed}")
choice = random.Random(seed)
clocks = {"step_seconds", "tokens_per_second", "checkpoint_wait_seconds", "checkpoint_copy_seconds"}


def numbers(path):
    """The metrics of all steps, without those that depend on the clock."""
    with open(path) as file:
        return [{key: value for key, value in json.loads(line).items() if key not in clocks} for line in file]


def complete():
    """The steps of the checkpoints, all of which must be as they were written."""
    if not os.path.isdir(folder) or not any(name.startswith("step-") for name in os.listdir(folder)):
        return []
    listed = json.loads(subprocess.run(["dtc-plan", "checkpoint", folder, "--json"], check=True,
                                       stdout=subprocess.PIPE, text=True).stdout)["checkpoints"]
    assert all(entry["verified"] for entry in listed), listed
    return [entry["step"] for entry in listed]


def is_writing():
    try:
        return any(name.startswith(".tmp-step-") for name in os.listdir(folder))
    except FileNotFoundError:
        return False


def kill_at_random(process, longest):
    """Kills the process unless it ends before; returns whether it wrote a checkpoint then, or None."""
    if choice.random() < 0.5:
        for _ in range(choice.randrange(1, 6)):
            while is_writing() and process.poll() is None:
                pass
            while not is_writing() and process.poll() is None:
                pass
        # A checkpoint of a small model takes some milliseconds, most of them in fsync(). One that is over before the process
        # stands still is not the one: the next is looked at sooner.
        delay = choice.random() * 0.01
        while process.poll() is None:
            end = time.monotonic() + delay
            while time.monotonic() < end:
                pass
            process.send_signal(signal.SIGSTOP)
            if is_writing():
                break
            process.send_signal(signal.SIGCONT)
            delay /= 2
            while not is_writing() and process.poll() is None:
                pass
    else:
        time.sleep(choice.random() * longest)
    if process.poll() is not None:
        return None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return is_writing()


longest, done, saving, finished, earlier = 0.5, 0, 0, 0, []
while True:
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wrote = kill_at_random(process, longest) if done < kills else None
    notes = process.communicate()[1]
    if earlier and re.search("step", notes):
        assert f"goes on after step {earlier[-1]}, from" in notes, (earlier, notes)
    assert "not used" not in notes, notes
    steps = complete()
    assert not earlier or steps and steps[-1] >= earlier[-1], (earlier, steps)
    earlier = steps
    if process.returncode == -signal.SIGKILL:
        done += 1
        saving += wrote
        continue
    assert process.returncode == 0, notes
    longest = max(longest, time.monotonic() - start)
    assert numbers(metrics) == numbers(expected), f"after {done} kills the metrics are others"
    finished += 1
    if done >= kills:
        break
    shutil.rmtree(folder)
    os.remove(metrics)
    earlier = []
print(f"{done} kills, {saving} of them while a checkpoint was written; {finished} runs came to their end")
# Otherwise the kills were not where they matter.
assert saving > 0, "no kill came while a checkpoint was written"
