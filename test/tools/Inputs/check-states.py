#!/usr/bin/env python3
"""Reads exec IR; fails unless all programs of a coordinate have the same states at the same offsets, from 0 on."""

import re
import sys

programs, entries = [], {}
for line in sys.stdin:
    if match := re.search(r'exec\.program @\S+ on @\S+( entry "(.*?)")?', line):
        offsets, states = {}, []
        entries.setdefault(match.group(2), []).append(states)
    elif match := re.search(r"(%\S+) = exec\.buffer \S+ .*?at (\d+) :", line):
        offsets[match.group(1)] = int(match.group(2))
    elif match := re.search(r'exec\.state ("\S+").* = (%\S+) (.*)', line):
        states.append((match.group(1), offsets.get(match.group(2)), re.sub(r" loc.*", "", match.group(3))))
assert len(entries) > 1 and None in entries, list(entries)
for name, others in entries.items():
    assert others == entries[None] and all(others), name
for states in entries[None]:
    assert states[0][1] == 0 or states[0][1] is None, states[0]
    known = [offset for _, offset, _ in states if offset is not None]
    assert known == sorted(known), known
print(f"{len(entries)} entry points")
