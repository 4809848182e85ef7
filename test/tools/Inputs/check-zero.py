"""Checks what dtc-plan show says of plans of examples/mlp.mlir for dp=2 without ZeRO and with its stages."""

import json

plans = [json.load(open(f"{stage}.json")) for stage in range(4)]
weights = [16 * 64, 64 * 64, 64 * 4]
total = 4 * (sum(weights) + 64 + 64 + 4)  # bytes of all parameters, and of their gradients


def sent(plan):
    return {entry["kind"]: entry["sent_bytes"] for entry in plan["collectives"]}


# Of two devices, each sends half of what is scattered or gathered, and twice that for a sum that both need. Beside the
# gradients there are the loss, the norm of gradients that are split, and the agreement on the norm.
assert sent(plans[0]) == {"all_reduce": total + 2 * 4}, sent(plans[0])
for plan in plans[1:3]:
    expected = {"reduce_scatter": total // 2, "all_gather": total // 2, "all_reduce": 3 * 4}
    assert sent(plan) == expected, (sent(plan), expected)
# Stage 3 gathers all parameters forward and the second layer's weight, which is read in between by nobody, once more
# backward: the last layer turns around with its own, and nobody asks for the gradient of the features.
expected = {"reduce_scatter": total // 2, "all_gather": (total + 4 * weights[1]) // 2, "all_reduce": 3 * 4}
assert sent(plans[3]) == expected, (sent(plans[3]), expected)


def peak(plan, kind):
    return plan["memory"]["peak_bytes"][kind]


# Buffers are multiples of 64 bytes, which each of the 12 moments and 6 parameters may be rounded up to.
for plan in plans[1:]:
    half = peak(plans[0], "optimizer_state") / 2
    assert half <= peak(plan, "optimizer_state") <= half + 12 * 64
for plan in plans[:3]:
    assert total <= peak(plan, "parameters") <= total + 6 * 64
assert total / 2 <= peak(plans[3], "parameters") <= total / 2 + 6 * 64
assert peak(plans[3], "gradients") < peak(plans[0], "gradients") / 2
