"""Checks the trace of a pipeline of two devices: usage: check-pipeline-trace.py TRACE MICROBATCHES STEPS

Each device is a process with a row of work, in which each task of the plan is seen, and a row of transfers; the transfer of
a message is an arrow from the sender to the receiver.
"""

import json
import sys
from collections import Counter

path, microbatches, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path) as file:
    events = json.load(file)["traceEvents"]

names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
assert names == {0: "device 0 (pp=0)", 1: "device 1 (pp=1)"}, names
# Transfers that overlap have a row each, all of one name.
rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
for device in (0, 1):
    assert {"compute", "transfers"} <= {row for (at, _), row in rows.items() if at == device}, rows
    tasks = Counter(
        (e["name"], e["args"]["microbatch"])
        for e in events
        if e["ph"] == "X" and e.get("cat") == "task" and e["pid"] == device
    )
    for kind in ("forward", "backward"):
        for microbatch in range(microbatches):
            assert tasks[f"{kind}.{device}", microbatch] == steps, (device, kind, tasks)
    assert tasks["update", 0] == steps, tasks
    # Transfers are in their row. Each names its peer.
    for e in events:
        if e["ph"] == "X" and e["pid"] == device and e["name"] in ("send", "receive"):
            assert e["args"]["peer"] == 1 - device and e["args"]["bytes"] > 0, e
            if e["cat"] == "work":
                assert rows[device, e["tid"]] == "transfers", e

begins = {e["id"]: e for e in events if e["ph"] == "s"}
ends = {e["id"]: e for e in events if e["ph"] == "f"}
assert begins.keys() == ends.keys() and len(begins) >= 2 * microbatches * steps, (begins, ends)
for number, begin in begins.items():
    assert {begin["pid"], ends[number]["pid"]} == {0, 1}, begin
for e in events:
    if e["ph"] == "X":
        assert e["dur"] >= 0 and e["ts"] >= 0, e
print("the trace is fine")
