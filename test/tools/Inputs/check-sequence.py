"""Checks what dtc-plan show says of plans of gpt2.json for tp=2, with sequences split between the blocks and without."""

import json

kinds = {}
for name in ("sequence", "tensor"):
    plan = json.load(open(f"{name}.json"))
    kinds[name] = {entry["kind"]: entry for entry in plan["collectives"]}
    kinds[name]["activations"] = plan["memory"]["peak_bytes"]["activations"]
assert set(kinds["tensor"]) == {"all_reduce", "activations"}, kinds["tensor"]
# One layer: after attention and MLP, forward and backward, a sum of [4, 8, 16] becomes a scattered one.
assert kinds["sequence"]["reduce_scatter"]["calls"] >= 4, kinds["sequence"]
assert kinds["sequence"]["all_gather"]["calls"] >= 4, kinds["sequence"]
assert kinds["sequence"]["activations"] < kinds["tensor"]["activations"], kinds
