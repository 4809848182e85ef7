#!/usr/bin/env python3
"""Damages a compiled plan in many ways and gives the results to dtc-plan and dtc-run.

    fuzz-plan.py PLAN [--data FILE] [--count N] [--seed S] [--timeout SECONDS]

Each must end by itself, within the timeout, with exit status 0, or with 1 and an error; never by a signal. Prints the
seed, and keeps the plan that failed beside the original. Thousands of plans are tried in one process by
test/runtime/executor/PlanFuzzTest.cpp; this tries what programs do with them.
"""

import argparse
import random
import subprocess
import sys


def damage(plan, generator):
    """A copy of the plan with some bytes changed, inserted, removed, repeated, or cut off at the end."""
    plan = bytearray(plan)
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        place = generator.randrange(len(plan))
        kind = generator.randrange(8)
        if kind < 3:
            plan[place] = generator.randrange(256)
        elif kind < 5:
            plan[place] ^= 1 << generator.randrange(8)
        elif kind == 5:
            plan[place:place] = generator.randbytes(generator.randrange(1, 5))
        elif kind == 6:
            del plan[place:place + generator.randrange(1, 5)]
        else:
            length = generator.randrange(1, 64)
            plan[place:place] = plan[place:place + length]
        plan = plan or bytearray(1)
    if generator.random() < 0.05:
        del plan[generator.randrange(len(plan)):]
    return bytes(plan)


def problem_of(command, timeout):
    """What is wrong with how a command ends; empty if nothing is."""
    try:
        ended = subprocess.run(command, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return f"runs for more than {timeout} seconds"
    if ended.returncode < 0:
        return f"ends by signal {-ended.returncode}"
    if ended.returncode not in (0, 1):
        return f"ends with exit status {ended.returncode}"
    if ended.returncode == 1 and not ended.stderr.startswith(b"error: "):
        return "fails without an error"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan")
    parser.add_argument("--data", help="run the plans, for one step, on these data as well")
    parser.add_argument("--count", type=int, default=150, help="plans to try (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="default: another one each time")
    parser.add_argument("--timeout", type=float, default=30)
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if arguments.seed is None else arguments.seed
    print("seed", seed, flush=True)
    generator = random.Random(seed)
    with open(arguments.plan, "rb") as file:
        original = file.read()

    path = arguments.plan + ".damaged.plan"
    commands = [["dtc-plan", "show", path], ["dtc-plan", "show", "--json", path],
                ["dtc-plan", "explain", path], ["dtc-plan", "explain", "--json", path]]
    if arguments.data:
        commands.append(["dtc-run", path, "--data", arguments.data, "--steps", "1"])
    for number in range(arguments.count):
        with open(path, "wb") as file:
            file.write(damage(original, generator))
        for command in commands:
            problem = problem_of(command, arguments.timeout)
            if problem:
                sys.exit(f"plan {number} of seed {seed}: {' '.join(command)} {problem}")
    print(arguments.count, "plans, no problem")


if __name__ == "__main__":
    main()
