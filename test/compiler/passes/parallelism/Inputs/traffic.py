"""Prints what `dtc-plan explain --json` says that moves, a line for each tensor, in the order of the plan."""

import json
import re
import sys


def layer(text):
    """Without the place in the file."""
    return re.sub(r" \([^ ]*:\d+:\d+\)", "", text)


explained = json.load(sys.stdin)
tasks = {"prepare": 0, "step": 1, "microbatch": 1, "update": 2}
for collective in sorted(
    explained["collectives"], key=lambda c: (tasks[c["task"]], c["instruction"])
):
    for tensor in collective["tensors"]:
        print(
            collective["kind"],
            "+".join(collective["axes"]),
            tensor["type"],
            f"{tensor['value']} at {layer(tensor['producer'])} for {layer(tensor['consumer'])}:",
            f"{tensor['from']} to {tensor['to']};",
            f"sends {tensor['call_sent_bytes']}",
        )
print("total", explained["totals"]["all"]["sent_bytes"])
