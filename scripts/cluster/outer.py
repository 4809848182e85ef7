"""How fast two replicas train over a slow link, by what they exchange: beside the same run over a link that is not shaped."""

import dataclasses
import json
import pathlib
import re
import time

from checks import calibrated, cluster_file, expect
from hosts import Hosts
from runs import TREE, Run, make_data, make_model, tool

WIDTH = 448


@dataclasses.dataclass
class Method:
    flags: list
    every: int = 0  # steps from one outer step to the next, or none

    def steps(self):
        """The steps whose ends are timed: all outer steps come as often between them as they do in a long run."""
        return (self.every + 1, self.every + 81) if self.every else (1, 9)

    def outer_every(self):
        return ["--outer-every", self.every] if self.every else []


def fragments(delay, *further):
    return ["--outer", "dp", "--outer-fragments", 4, "--outer-delay", delay, "--outer-blend", 0.5, *further]


METHODS = {
    "gradients": Method([]),
    "gradients, int8": Method(["--compress", "dp=int8"]),
    "gradients, int4": Method(["--compress", "dp=int4"]),
    "outer steps, H=20": Method(["--outer", "dp"], 20),
    "4 fragments, H=20, delay 4": Method(fragments(4), 20),
    "4 fragments, int8, H=20, delay 4": Method(fragments(4, "--compress", "dp=int8"), 20),
    "4 fragments, int8, H=40, delay 9": Method(fragments(9, "--compress", "dp=int8"), 40),
    "4 fragments, int8, H=80, delay 15": Method(fragments(15, "--compress", "dp=int8"), 80),
}


def seconds_of(cluster, method):
    """The seconds of a step, with its share of the outer steps; and what the run says of fragments."""
    first, last = METHODS[method].steps()
    metrics = pathlib.Path("metrics.jsonl")
    metrics.unlink(missing_ok=True)
    started = Run(cluster, "variables", 1, [f"{method}.plan", "--data", "text.txt", "--steps", last, "--threads", 1, "--profile",
                                            "--log-every", 10**6, "--metrics", metrics, *METHODS[method].outer_every()])
    begin, end = (time_of_step(started, metrics, step) for step in (first, last))
    text = started.succeeds(1200)
    said = re.search(r"sending fragments took.*", text)
    return (end - begin) / (last - first), "; " + said[0] if said else ""


def time_of_step(started, metrics, step):
    """When the run writes the metrics of the step; of a run that ends before, when it ends."""
    while any(process.poll() is None for process in started.processes):
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= step:
            break
        time.sleep(0.002)
    return time.monotonic()


def predicted(method):
    """The seconds of a step that dtc-plan simulate says, with a part of the outer steps."""
    every = METHODS[method].every
    simulated = json.loads(tool("dtc-plan", "simulate", f"{method}.plan", "--cluster", "hosts.textproto", "--json",
                                *METHODS[method].outer_every()))
    return simulated["outer_round"]["seconds"] / every if every else simulated["step_seconds"]


def check_outer(options, folder):
    """Fragments that are sent beside steps hide what they send. Prints a table of tokens a second."""
    config = json.loads((TREE / "examples/gpt2-tiny/config.json").read_text())
    config.update(n_layer=4, n_embd=WIDTH)
    pathlib.Path("config.json").write_text(json.dumps(config))
    make_model("m.mlir", options.batch, 64, "config.json")
    make_data("text.txt", 40000, 64)
    methods = options.method or list(METHODS)
    for method in methods:
        tool("dtc-compile", "m.mlir", "--mesh", "dp=2", *METHODS[method].flags, "-o", f"{method}.plan")
    pathlib.Path("hosts.textproto").write_text(cluster_file(calibrated(options, 2), options.rate, options.latency, 2))
    found = {}
    for link in ("free", "shaped"):
        shape = {"rate": options.rate, "latency": options.latency} if link == "shaped" else {}
        with Hosts(2, folder, **shape) as cluster:
            for method in methods:
                found[method, link] = seconds_of(cluster, method)
    tokens = options.batch * 64
    print(f"2 hosts, {options.rate:g} B/s and {options.latency:g} s; GPT-2 of 4 layers of {WIDTH}, {options.batch} samples "
          "of 64 tokens")
    shares = {}
    for method in methods:
        free, shaped = (tokens / found[method, link][0] for link in ("free", "shaped"))
        shares[method] = shaped / free
        simulated = tokens / predicted(method)
        print(f"{method}: {free:.0f} tokens/s over a free link, {shaped:.0f} over a shaped one: {shares[method]:.2f}; "
              f"simulated {simulated:.0f} ({simulated / shaped - 1:+.1%})"
              f"{found[method, 'shaped'][1]}", flush=True)
    order = ["gradients", "outer steps, H=20", "4 fragments, H=20, delay 4"]
    return all([expect(shares[less] > shares[more], f"{less}: less slowed down than {more}")
                for more, less in zip(order, order[1:]) if {more, less} <= set(shares)])
