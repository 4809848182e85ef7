#!/usr/bin/env python3
"""Checks what a plan sends of what another one does: sent-share.py MOST WHOLE PART, the outputs of `dtc-plan explain --json`.
Exits with 1 where PART sends more than that share of WHOLE, or less than half of it."""

import json
import sys

whole, part = (sum(entry["sent_bytes"] for entry in json.load(open(path))["collectives"]) for path in sys.argv[2:4])
most = float(sys.argv[1])
print(f"{part} of {whole} bytes: {part / whole:.4f}")
sys.exit(not most / 2 <= part / whole <= most)
