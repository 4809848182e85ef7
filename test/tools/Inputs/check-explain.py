"""Checks that every collective in the JSON of dtc-plan explain has an origin, and that sums agree: check-explain.py FILE"""

import json
import sys

explanation = json.load(open(sys.argv[1]))
collectives = explanation["collectives"]
assert collectives
for collective in collectives:
    assert collective["sent_bytes"] == collective["calls"] * collective["call_sent_bytes"], collective
    assert collective["call_sent_bytes"] == sum(t["call_sent_bytes"] for t in collective["tensors"]), collective
    assert collective["location"] and collective["axes"] and collective["members"] > 1, collective
    for tensor in collective["tensors"]:
        assert tensor["value"] and tensor["from"] and tensor["to"] and tensor["from"] != tensor["to"], tensor
for total in ("by_axes", "by_kind"):
    rows = explanation["totals"][total]
    assert sum(row["sent_bytes"] for row in rows) == explanation["totals"]["all"]["sent_bytes"], rows
    assert sum(row["instructions"] for row in rows) == len(collectives), rows
