#!/usr/bin/env python3
"""Compares the bytes that the devices of a run of one step have sent with those that the plan says: compare-traffic.py
EXPLAINED PROFILE, the outputs of `dtc-plan explain --json` and `dtc-run --profile`. Exits with 1 where they differ. Kinds of
collectives that send 1 KiB or more are compared as precisely as the profile prints them."""

import collections
import json
import re
import sys

explained = json.load(open(sys.argv[1]))
expected = collections.Counter()
for collective in explained["collectives"]:
    expected[collective["kind"]] += collective["sent_bytes"] * explained["devices"]

found = {}
for kind, number, unit in re.findall(r"^(\w+) sent ([0-9.]+) (B|KiB|MiB) in all$", open(sys.argv[2]).read(), re.M):
    found[kind] = (float(number), 1024 ** ["B", "KiB", "MiB"].index(unit))
assert found and found.keys() == {kind for kind, sent in expected.items() if sent}, (found, expected)
for kind, (number, unit) in found.items():
    print(f"{kind}: {number} of {unit} bytes, expected {expected[kind]}")
    assert abs(number * unit - expected[kind]) <= (0 if unit == 1 else 0.05 * unit), kind
