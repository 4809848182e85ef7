#!/usr/bin/env python3
"""Runs a program, and does something when it has written to a file: during-run.py ACTION FILE PROGRAM ARGUMENT...

ACTION is one of
  signal=INT          sends it that signal
  truncate=PATH       makes that file empty
  spoil=PATH          overwrites that file with bytes of 255
  close-output        reads its output no longer
  signal-rank=KILL,2  sends that signal to the process of that rank; KILL,2,5 to several at once
  hangup              closes the terminal that it was started from
Prints what the program printed, how it ended, and whether it has left processes.
"""

import os
import signal
import subprocess
import sys
import time

action, _, argument = sys.argv[1].partition("=")
path, command = sys.argv[2], sys.argv[3:]


def processesOfRun():
    """By number, those that this program has started, or that these have: the environment of each."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = dict(each.split(b"=", 1) for each in file.read().split(b"\0") if b"=" in each)
        except OSError:
            continue
        if variables.get(b"DTC_DURING_RUN") == mark.encode():
            found[int(entry)] = variables
    return found


def processOfRank(rank):
    for process, variables in processesOfRun().items():
        if rank.encode() in (variables.get(b"OMPI_COMM_WORLD_RANK"), variables.get(b"RANK")):
            return process
    sys.exit(f"there is no process of rank {rank}")


def act(process):
    if action == "signal":
        process.send_signal(getattr(signal, "SIG" + argument))
    elif action == "truncate":
        os.truncate(argument, 0)
    elif action == "spoil":
        with open(argument, "r+b") as file:
            file.write(b"\xff" * os.path.getsize(argument))
    elif action == "signal-rank":
        name, *ranks = argument.split(",")
        for process in [processOfRank(rank) for rank in ranks]:
            os.kill(process, getattr(signal, "SIG" + name))
    elif action == "hangup":
        os.close(terminal)
    elif action == "close-output":
        process.stdout.close()
        process.stdout = None
    else:
        sys.exit(f"there is no action '{action}'")


mark = f"{os.getpid()}.{time.time()}"
os.environ["DTC_DURING_RUN"] = mark
# Where a shell's background jobs ignore signals, the program would too.
for each in (signal.SIGINT, signal.SIGHUP):
    if "nohup" not in command:
        signal.signal(each, signal.SIG_DFL)
if action == "hangup":
    terminal, own = os.openpty()
    # The first terminal that the leader of a new session opens is the one that controls it.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=own, stderr=subprocess.PIPE, text=True,
                               start_new_session=True,
                               preexec_fn=lambda: os.close(os.open(os.ttyname(own), os.O_RDWR)))
    os.close(own)
else:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.PIPE if action == "close-output" else subprocess.STDOUT)
deadline = time.monotonic() + 240
while process.poll() is None and time.monotonic() < deadline:
    if os.path.exists(path) and os.path.getsize(path) > 0:
        act(process)
        break
    time.sleep(0.01)
try:
    for text in process.communicate(timeout=240):
        if text:
            print(text)
    print("exit status", process.returncode)
    # A process that was killed is there until its parent has seen it.
    while processesOfRun() and time.monotonic() < deadline:
        time.sleep(0.1)
    if left := len(processesOfRun()):
        print("processes left:", left)
except subprocess.TimeoutExpired:
    process.kill()
    print("did not end")
