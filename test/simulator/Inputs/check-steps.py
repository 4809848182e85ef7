"""Compares simulated steps with measured ones.

    check-steps.py TABLE EXAMPLES BOUND CLUSTER...

Compiles each model of the table for one device, with the flags that its plan was measured with, simulates it on each cluster,
and prints the error of each prediction, in percent. Fails where one is larger than the bound.
"""

import csv
import json
import subprocess
import sys

table, examples, bound, *clusters = sys.argv[1:]


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


with open(table) as lines:
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
if not rows or not clusters:
    sys.exit("expected at least one row and one cluster")
too_large = 0
for row in rows:
    with open(f"{examples}/{row['config']}/config.json") as file:
        config = json.load(file)
    for size in row["sizes"].split():
        name, value = size.split("=")
        assert name in config, f"{row['config']} has no field {name}"
        config[name] = int(value)
    with open("config.json", "w") as file:
        json.dump(config, file)
    run("dtc-import", "config.json", "--batch", row["batch"], "--seq", row["seq"], "-o", "m.mlir")
    run("dtc-compile", "m.mlir", "--dtype", "bf16", *(row["flags"] or "").split(), "-o", "m.plan")
    for cluster in clusters:
        step = 1e3 * json.loads(run("dtc-plan", "simulate", "m.plan", "--json", "--cluster", cluster))["step_seconds"]
        error = 100 * (step / float(row["milliseconds"]) - 1)
        name = cluster.rpartition("/")[2].partition(".")[0]
        print(f"{name}: {row['model']} {row['batch']} x {row['seq']}: {step:.1f} ms of {row['milliseconds']} ms, {error:+.1f} %")
        too_large += abs(error) > float(bound)
sys.exit(f"{too_large} of {len(rows) * len(clusters)} errors are more than {bound} %" if too_large else 0)
