"""Compares the memory that pages show with what plans say: check-memory.py CLUSTER SHARE PLAN...

The most bytes of each stage's curve are at most the lower bound of its arena, and at least that share of it.
"""

import json
import re
import subprocess
import sys

cluster, share = sys.argv[1], float(sys.argv[2])
failed = False
for plan in sys.argv[3:]:
    subprocess.run(["dtc-plan", "simulate", plan, "--cluster", cluster, "--report", plan + ".report"], check=True,
                   stdout=subprocess.DEVNULL)
    page = open(plan + ".report/index.html", encoding="utf-8").read()
    peaks = [int(peak) for peak in re.findall(r'data-bytes="([0-9]+)"', page)]
    shown = json.loads(subprocess.run(["dtc-plan", "verify", plan, "--json"], check=True, capture_output=True).stdout)
    bounds = [program["arena_lower_bound"] for program in shown["programs"]]
    fits = len(peaks) == len(bounds) and all(share * b <= p <= b for p, b in zip(peaks, bounds))
    print(f"{plan}: {peaks}, lower bounds {bounds}: {'fits' if fits else 'does not fit'}")
    failed |= not fits
sys.exit(failed)
