"""Checks what `dtc-plan simulate --json` says of a plan against itself and `dtc-plan show --json`.

check-simulation.py SIMULATION SHOW
"""

import json
import sys

simulation, show = (json.load(open(path)) for path in sys.argv[1:])
step = simulation["step_seconds"]
assert step > 0


def check_equal(what, found, expected):
    if abs(found - expected) > 1e-9 * abs(step):
        sys.exit(f"{what}: {found}, expected {expected}")


def sum_of_parts(part):
    exposed = sum(entry["seconds"] for entry in part["exposed_collectives"])
    return (
        part["computing_seconds"]
        + exposed
        + part["exposed_transfer_seconds"]
        + part["exposed_host_seconds"]
        + part["idle_seconds"]
    )


check_equal("the sum of all parts", sum_of_parts(simulation), step)
kernels = sum(simulation["kernel_seconds"].values()) + simulation["slowed_down_seconds"]
check_equal("the sum of the kernels", kernels, simulation["computing_seconds"])
programs = show["pipeline"]["programs"] if show.get("pipeline") else [show]
stages = simulation["stages"]
assert len(stages) == len(programs), (len(stages), len(programs))
flops = 0
for number, (stage, program) in enumerate(zip(stages, programs)):
    check_equal(f"the parts of stage {number}", sum_of_parts(stage), step)
    memory, peak = stage["memory"], program["memory"]["peak_bytes"]
    assert memory["arena_bytes"] == program["memory"]["arena_bytes"]
    for kind in ("parameters", "gradients", "optimizer_state", "activations", "master_weights"):
        assert memory[kind] == peak[kind], kind
    flops += stage["flops"] * simulation["devices"] / len(stages)
assert abs(flops - simulation["executed_flops"]) <= 1e-9 * flops
# A causal mask is counted by the kernels and not by the model's FLOPs of full attention.
assert 0 < simulation["mfu_causal"] <= simulation["mfu"] < 1
assert simulation["mfu_causal"] <= simulation["hfu"] * 1.05 < 1
print("agrees")
