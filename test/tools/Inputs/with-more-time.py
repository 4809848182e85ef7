#!/usr/bin/env python3
"""Runs commands of a shell until they succeed, at most three times: with-more-time.py NAME=SECONDS COMMANDS

The variable NAME is SECONDS, then 4 times and 16 times as much, so that a test whose subject is a time passes on a slow or busy
machine too; a defect fails with all of them. Prints what the commands of the last time printed."""

import os
import subprocess
import sys

(name, seconds), commands = sys.argv[1].split("="), sys.argv[2]
for factor in (1, 4, 16):
    value = f"{float(seconds) * factor:g}"
    ended = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", commands], env=os.environ | {name: value},
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode == 0:
        break
    print(f"with {name}={value}, exit status {ended.returncode}:", file=sys.stderr)
    print(ended.stdout, file=sys.stderr)
print(ended.stdout, end="")
sys.exit(ended.returncode)
