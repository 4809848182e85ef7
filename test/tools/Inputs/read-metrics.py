"""Runs a command that offers metrics to Prometheus, reads them while it runs, and stops it.

Usage: read-metrics.py metrics.jsonl command... Prints the metrics of a step, each with the value that the file has, then
what the command printed and its exit status."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request

path, command = sys.argv[1], sys.argv[2:]
process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
try:
    notes, address = "", None
    while not address:
        line = process.stderr.readline()
        if not line:
            sys.exit(f"no address in: {notes}")
        notes += line
        address = re.search(r"http://\S+", line)
    values = {}
    while values.get("dtc_step", 0) < 3:
        time.sleep(0.01)
        text = urllib.request.urlopen(address.group(), timeout=60).read().decode()
        values = {name: float(value) for name, value in re.findall(r'^(\w+)\{model="m"\} (\S+)$', text, re.M)}
    process.send_signal(signal.SIGINT)
    printed, rest = process.communicate()
finally:
    process.kill()
lines = {line["step"]: line for line in map(json.loads, open(path))}
for name, value in sorted(lines[int(values["dtc_step"])].items()):
    is_same = abs(values["dtc_" + name] - value) <= 1e-12 * abs(value)
    print(name, "as in the file" if is_same else (values["dtc_" + name], value))
print(notes + rest + printed + f"exit status {process.returncode}")
