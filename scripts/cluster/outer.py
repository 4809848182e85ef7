"""How fast two replicas train over a slow link, by what they exchange: beside the same run over a link that is not shaped."""

import json
import pathlib
import re
import time

from checks import calibrated, cluster_file, expect
from hosts import Hosts
from runs import TREE, Run, make_data, make_model, tool

WIDTH, EVERY, DELAY, STEPS = 448, 20, 4, 41
METHODS = {
    "gradients": [],
    "gradients, int8": ["--compress", "dp=int8"],
    "gradients, int4": ["--compress", "dp=int4"],
    "outer steps": ["--outer", "dp"],
    "4 fragments": ["--outer", "dp", "--outer-fragments", 4, "--outer-delay", DELAY, "--outer-blend", 0.5],
}


def run(cluster, method, steps):
    """The seconds of a run, and what it prints."""
    outer = ["--outer-every", EVERY] if "--outer" in METHODS[method] else []
    begin = time.monotonic()
    text = Run(cluster, "variables", 1, [f"{method}.plan", "--data", "text.txt", "--steps", steps, "--threads", 1, "--profile",
                                         "--log-every", 10**6, *outer]).succeeds(1200)
    return time.monotonic() - begin, text


def seconds_of(cluster, method):
    """The seconds of all steps but the first, with the outer steps between them; and what the run says of fragments."""
    first, _ = run(cluster, method, 1)
    all_steps, text = run(cluster, method, STEPS)
    said = re.search(r"sending fragments took.*", text)
    return all_steps - first, "; " + said[0] if said else ""


def predicted(method):
    """The seconds of a step that dtc-plan simulate says, with a part of the outer steps."""
    outer = ["--outer-every", EVERY] if "--outer" in METHODS[method] else []
    simulated = json.loads(tool("dtc-plan", "simulate", f"{method}.plan", "--cluster", "hosts.textproto", "--json", *outer))
    return simulated["outer_round"]["seconds"] / EVERY if outer else simulated["step_seconds"]


def check_outer(options, folder):
    """Fragments that are sent beside steps hide what they send. Prints a table of tokens a second."""
    config = json.loads((TREE / "examples/gpt2-tiny/config.json").read_text())
    config.update(n_layer=4, n_embd=WIDTH)
    pathlib.Path("config.json").write_text(json.dumps(config))
    make_model("m.mlir", options.batch, 64, "config.json")
    make_data("text.txt", 40000, 64)
    for method, flags in METHODS.items():
        tool("dtc-compile", "m.mlir", "--mesh", "dp=2", *flags, "-o", f"{method}.plan")
    pathlib.Path("hosts.textproto").write_text(cluster_file(calibrated(options, 2), options.rate, options.latency, 2))
    found = {}
    for link in ("free", "shaped"):
        shape = {"rate": options.rate, "latency": options.latency} if link == "shaped" else {}
        with Hosts(2, folder, **shape) as cluster:
            for method in METHODS:
                found[method, link] = seconds_of(cluster, method)
    tokens = (STEPS - 1) * options.batch * 64
    print(f"2 hosts, {options.rate:g} B/s and {options.latency:g} s; GPT-2 of 4 layers of {WIDTH}, {options.batch} samples "
          f"of 64 tokens; outer steps every {EVERY} steps, {DELAY} later with fragments")
    shares = {}
    for method in METHODS:
        free, shaped = (tokens / found[method, link][0] for link in ("free", "shaped"))
        shares[method] = shaped / free
        simulated = options.batch * 64 / predicted(method)
        print(f"{method}: {free:.0f} tokens/s over a free link, {shaped:.0f} over a shaped one: {shares[method]:.2f}; "
              f"simulated {simulated:.0f} ({simulated / shaped - 1:+.1%})"
              f"{found[method, 'shaped'][1]}", flush=True)
    good = expect(shares["outer steps"] > shares["gradients"], "outer steps are less slowed down than gradients")
    return good & expect(shares["4 fragments"] > shares["outer steps"], "fragments hide a part of what outer steps send")
