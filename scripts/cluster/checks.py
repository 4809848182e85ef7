"""What several hosts have to show: links as they are, the losses of one device, and the step that was predicted."""

import json
import pathlib
import re
import statistics

from hosts import Hosts, name
from runs import STARTS, Run, make_data, make_model, tool

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def median_of_links(text):
    found = re.search(r"median: ([\d.]+) us, ([\d.]+) (\w+)/s", text)
    return float(found[1]) * 1e-6, float(found[2]) * UNITS[found[3]]


def expect(holds, what):
    print(("ok      " if holds else "FAILED  ") + what, flush=True)
    return holds


def near(found, expected, share, what, unit):
    return expect(abs(found - expected) <= share * expected,
                  f"{what}: {found:.4g} {unit}, expected {expected:.4g} within {share:.0%} ({found / expected - 1:+.1%})")


def check_links(options, folder):
    """dtc-run links finds the figures of the links, and a link of a tenth of their bandwidth."""
    good = True
    with Hosts(4, folder, rate=options.rate, latency=options.latency, slow={(1, 3): options.rate / 10}) as cluster:
        for start in STARTS:
            text = Run(cluster, start, 1, ["links"]).succeeds()
            print(text, end="")
            latency, bandwidth = median_of_links(text)
            good &= near(latency, options.latency, 0.1, f"{start}: latency", "s")
            good &= near(bandwidth, options.rate, 0.1, f"{start}: bandwidth", "B/s")
            slow = re.findall(r"slow: process (\d) on (\w+) and process (\d) on (\w+): [\d.]+ us, ([\d.]+) (\w+)/s", text)
            good &= expect([each[:4] for each in slow] == [("1", name(1), "3", name(3))],
                           f"{start}: the slow link is named, and no other")
            for each in slow:
                good &= near(float(each[4]) * UNITS[each[5]], options.rate / 10, 0.1, f"{start}: its bandwidth", "B/s")
    return good


def losses_of(metrics):
    return [json.loads(line)["loss"] for line in pathlib.Path(metrics).read_text().splitlines()]


def check_training(options, folder):
    """Four hosts have the losses of one device, and the placement names them."""
    make_model("m.mlir")
    make_data("text.txt", 4000, 64)
    tool("dtc-compile", "m.mlir", "-o", "one.plan")
    tool("dtc-compile", "m.mlir", "--mesh", "dp=4,tp=2", "--zero", "1", "-o", "m.plan")
    arguments = ["--data", "text.txt", "--steps", 10]
    tool("dtc-run", "one.plan", *arguments, "--metrics", "one.jsonl")
    good = True
    with Hosts(4, folder, rate=options.rate, latency=options.latency) as cluster:
        for start in STARTS:
            run = ["m.plan", *arguments, "--metrics", "several.jsonl", "--threads", 1]
            text = Run(cluster, start, 1, run).succeeds()
            worst = max(abs(a - b) / a for a, b in zip(losses_of("one.jsonl"), losses_of("several.jsonl"), strict=True))
            good &= expect(worst <= 1e-4, f"{start}: losses differ from those of one device by {worst:.1e}, at most 1e-4")
            good &= expect("4 processes, 1 on this machine" in text, f"{start}: four hosts")
            text = Run(cluster, start, 2, ["placement", "m.plan"]).succeeds()
            good &= expect(all(f"host {name(host)}:" in text for host in range(4)) and "dp=4: between hosts" in text and
                           "tp=2: in a host, between processes" in text, f"{start}: placement")
    return good


def without_block(text, field):
    """A text proto without a field at its outermost level."""
    begin = text.index(f"\n{field} {{\n") + 1
    end = text.index("\n}\n", begin) + 3
    return text[:begin] + text[end:]


def calibrated(options, devices):
    """The path of what --calibrated names, or of what is measured now, with as many devices at work."""
    if not options.calibrated:
        print("calibrating", flush=True)
        tool("dtc-run", "calibrate", "measured.textproto", "--devices", devices, "--threads", 1)
    return options.calibrated or "measured.textproto"


def cluster_file(calibrated, rate, latency, hosts=4):
    """The cluster of hosts with such links, whose devices are those that dtc-run calibrate has measured."""
    text = "\n" + pathlib.Path(calibrated).read_text()
    device = re.search(r"\ndevices \{\s+name: (\"[^\"]*\")", text)[1]
    text = without_block(without_block(text, "node_kinds"), "nodes")
    return text + (f'node_kinds {{\n  name: "host"\n  device: {device}\n  devices: 1\n'
                   f"  device_network_bandwidth: {rate:g}\n}}\nnodes {{\n  node: \"host\"\n  count: {hosts}\n}}\n"
                   f"network {{\n  latency: {latency:g}\n}}\n")


def check_prediction(options, folder):
    """dtc-plan simulate, given the links, predicts the step."""
    pathlib.Path("config.json").write_text(json.dumps(
        {"model_type": "gpt2", "vocab_size": 4096, "n_positions": 64, "n_embd": 256, "n_layer": 4, "n_head": 4,
         "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0}))
    make_model("m.mlir", batch=4, seq=32, config="config.json")
    make_data("text.txt", 4000, 64)
    measured = calibrated(options, 4)
    pathlib.Path("hosts.textproto").write_text(cluster_file(measured, options.rate, options.latency))
    good = True
    for mesh, zero in (("dp=4", 0), ("dp=4", 1), ("dp=2,tp=2", 0), ("pp=2,dp=2", 0)):
        words = ["--microbatches", 2] if "pp" in mesh else []
        tool("dtc-compile", "m.mlir", "--mesh", mesh, "--zero", zero, *words, "-o", "m.plan")
        simulated = json.loads(tool("dtc-plan", "simulate", "m.plan", "--cluster", "hosts.textproto", "--json"))
        with Hosts(4, folder, rate=options.rate, latency=options.latency) as cluster:
            for start in STARTS:
                Run(cluster, start, 1, ["m.plan", "--data", "text.txt", "--steps", 6, "--threads", 1, "--metrics",
                                        "steps.jsonl"]).succeeds()
                seconds = statistics.median(
                    json.loads(line)["step_seconds"] for line in pathlib.Path("steps.jsonl").read_text().splitlines()[2:])
                good &= near(simulated["step_seconds"], seconds, 0.15, f"{start}, {mesh}, ZeRO {zero}: predicted step", "s")
    return good
