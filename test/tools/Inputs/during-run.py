#!/usr/bin/env python3
"""Runs a program, and does something when it has written to a file: during-run.py ACTION FILE PROGRAM ARGUMENT...

ACTION is one of
  signal=INT        sends it that signal
  truncate=PATH     makes that file empty
  spoil=PATH        overwrites that file with bytes of 255
  close-output      reads its output no longer
  hangup            closes the terminal that it was started from
Prints what the program printed and how it ended.
"""

import os
import signal
import subprocess
import sys
import time

action, _, argument = sys.argv[1].partition("=")
path, command = sys.argv[2], sys.argv[3:]


def act(process):
    if action == "signal":
        process.send_signal(getattr(signal, "SIG" + argument))
    elif action == "truncate":
        os.truncate(argument, 0)
    elif action == "spoil":
        with open(argument, "r+b") as file:
            file.write(b"\xff" * os.path.getsize(argument))
    elif action == "hangup":
        os.close(terminal)
    elif action == "close-output":
        process.stdout.close()
        process.stdout = None
    else:
        sys.exit(f"there is no action '{action}'")


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
except subprocess.TimeoutExpired:
    process.kill()
    print("did not end")
