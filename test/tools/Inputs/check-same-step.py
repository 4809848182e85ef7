"""Compares what all say of a step: dtc-plan simulate --json, dtc-plan show --schedule --json, the page of
--report, and what dtc-compile printed.

Usage: check-same-step.py simulation.json show.json page.html printed.txt"""

import json
import re
import sys

UNITS = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1}
simulation, show = (json.load(open(path)) for path in sys.argv[1:3])
page, printed = (open(path).read() for path in sys.argv[3:])
seconds = simulation["step_seconds"]
if show["timeline"]["seconds"] != seconds:
    sys.exit(f"simulate says {seconds} s, show --schedule {show['timeline']['seconds']} s")
figures = {"the page": re.findall(r">Step</span><span [^>]*>([0-9.]+) (\w+)<", page)}
figures["dtc-compile"] = re.findall(r"([0-9.]+) (ns|us|ms|s) a step\b", printed)
for what, found in figures.items():
    if not found:
        sys.exit(f"{what} says no step")
    for number, unit in found:
        places = len(number.partition(".")[2])
        if abs(seconds * UNITS[unit] - float(number)) > 0.51 * 10**-places:
            sys.exit(f"simulate says {seconds} s, {what} {number} {unit}")
print(f"the same step, said {2 + sum(map(len, figures.values()))} times")
