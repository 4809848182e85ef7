"""Compares what dtc-plan simulate --json says of a plan with what the search that chose it said."""

import json
import re
import sys

simulation = json.load(open(sys.argv[1]))
text = open(sys.argv[2]).read()
said, unit = re.search(r"^  ([0-9.]+) (us|ms|s) a step", text, re.M).groups()
seconds = simulation["step_seconds"] * {"us": 1e6, "ms": 1e3, "s": 1}[unit]
if abs(seconds - float(said)) > 0.0501:
    sys.exit(f"the simulation says {seconds} {unit}, the search {said} {unit}")
print(f"{simulation['devices']} devices, the step that was said")
