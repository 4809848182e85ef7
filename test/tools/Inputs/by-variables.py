#!/usr/bin/env python3
"""Runs a program in PROCESSES processes with the variables that torchrun sets: by-variables.py PROCESSES PROGRAM ARGUMENT...

The last process is started first. Prints what they have printed and their exit statuses."""

import os
import socket
import subprocess
import sys
import time

count, command = int(sys.argv[1]), sys.argv[2:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
processes = []
for rank in reversed(range(count)):
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count,
                 "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    environment = dict(os.environ, **{name: str(value) for name, value in variables.items()})
    processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT))
    time.sleep(0.1)
print("statuses", *[process.wait() for process in reversed(processes)])
