#!/usr/bin/env python3
"""Checks the flight record of a run that lost a process: check-flight-record.py FOLDER PROCESS,... LOST

Each of the processes has written what its devices were at. They wait for the lost one, directly or not: each
device that is in a step has begun what it has not ended, which is what the plan has next, and some device waits
for one of the devices of the lost process, which has two of them, as the others."""

import json
import pathlib
import sys

folder, processes, lost = pathlib.Path(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3])
waits = set()
for process in processes:
    record = json.loads((folder / f"process-{process}.json").read_text())
    assert record["process"] == int(process), record["process"]
    assert record["reason"].startswith(f"process {lost} on "), record["reason"]
    assert record["devices"], "no device"
    for device in record["devices"]:
        assert device["place"].startswith(f"device {device['device']} (dp="), device["place"]
        assert 2 <= len(device["last"]) <= 64, len(device["last"])
        if "has finished the step" in device["place"]:
            assert not device["next"] and device["last"][-1]["state"] == "done", device
            continue
        at, following = device["last"][-1], device["next"][0]
        for field in ("operation", "wait", "devices", "bytes", "task", "microbatch", "instruction", "location"):
            assert at[field] == following[field], (at, following)
        assert at["state"] == "begun" and at["bytes"] > 0 and at["location"], at
        assert all(0 < each["predicted_seconds"] < 1 for each in device["last"] + device["next"]), device
        assert all(each["state"] == "done" for each in device["last"][:-1]), device
        assert at["begun_seconds_ago"] <= device["last"][-2]["ended_seconds_ago"], device["last"][-2:]
        waits.update(at["devices"])
assert not waits or waits & {2 * lost, 2 * lost + 1}, waits
