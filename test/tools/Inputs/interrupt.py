#!/usr/bin/env python3
"""Runs a program and sends it SIGINT when it has written to a file: interrupt.py FILE PROGRAM ARGUMENT...

Prints what the program printed and how it ended.
"""

import os
import signal
import subprocess
import sys
import time

path, command = sys.argv[1], sys.argv[2:]
# A shell's background jobs ignore SIGINT, and so would the program.
signal.signal(signal.SIGINT, signal.default_int_handler)
process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
deadline = time.monotonic() + 60
while process.poll() is None and time.monotonic() < deadline:
    if os.path.exists(path) and os.path.getsize(path) > 0:
        process.send_signal(signal.SIGINT)
        break
    time.sleep(0.01)
try:
    print(process.communicate(timeout=60)[0])
    print("exit status", process.returncode)
except subprocess.TimeoutExpired:
    process.kill()
    print("did not end")
