"""Faults at random moments: what becomes of a run on several hosts, and of the same run when it is started again."""

import os
import pathlib
import random
import re
import shutil
import signal
import time

from hosts import Hosts, command_here, name
from runs import STARTS, Run, make_data, make_model, tool

HOSTS = 4
STEPS = 240
LAST_STEPS = (150, 60, 10)  # the last step at which a fault may come, at the first, second and third try
QUICK, SILENT = 15, 30  # seconds until all processes have gone
START_TIMEOUT = 5
MPIRUN_LOST = "ORTE has lost communication with a remote daemon."


class Fault:
    """`during`: something that happens to a run. `expected`: what the message is, of a rank or a host."""

    limit, per_host, messages = QUICK, 1, 1

    def __init__(self, draw):
        self.host = draw.randrange(HOSTS)
        self.rank = self.host * self.per_host

    def instead(self):
        return {}

    def during(self, run):
        raise NotImplementedError

    def after(self, run):
        pass

    def lost(self):
        return rf"error: process {self.rank} on {name(self.host)} was lost: "


class KillRank(Fault):
    """SIGKILL of a process."""

    def during(self, run):
        os.kill(run.ranks()[self.rank][0], signal.SIGKILL)

    expected = Fault.lost


class KillFirst(KillRank):
    """SIGKILL of the first process."""

    def __init__(self, draw):
        super().__init__(draw)
        self.host = self.rank = 0


class KillHost(Fault):
    """SIGKILL of all processes of a host."""

    per_host = 2

    def during(self, run):
        for process in run.cluster.processes(self.host):
            os.kill(process, signal.SIGKILL)

    def expected(self):
        # Either of both may be the first.
        numbers = f"(?:{self.rank}|{self.rank + 1})"
        return rf"error: process {numbers} on {name(self.host)} was lost: .*\n  process {numbers} on {name(self.host)} was lost: "


class Stop(Fault):
    """SIGSTOP of a process."""

    limit = SILENT

    def during(self, run):
        os.kill(run.ranks()[self.rank][0], signal.SIGSTOP)

    expected = Fault.lost


class Cut(Fault):
    """All packets to and from a host are dropped."""

    limit = SILENT
    messages = 2  # one on each side; mpirun shows that of its own side

    def during(self, run):
        run.cluster.cut(self.host)

    def after(self, run):
        run.cluster.mend(self.host)

    def expected(self):
        return rf"{self.lost()}|{MPIRUN_LOST}\s+HNP daemon.*\s+Remote daemon.* on node {name(self.host)}\n"


class FullDisk(Fault):
    """The disk of the checkpoints is full."""

    def during(self, run):
        with open("disk/filler", "wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
            except OSError:
                pass

    def after(self, run):
        os.unlink("disk/filler")

    def expected(self):
        return r"error: .*disk/ck\S*: .*No space left on device"


class Another(Fault):
    """A process has another file than the others."""

    def during(self, run):
        pass

    def instead(self):
        # Mounts of a command on a host are its own.
        return {self.rank: ["sh", "-c", f'mount --bind {self.other} {self.file} && exec "$@"', "sh"]}


class OtherPlan(Another):
    """A process has another plan."""

    file, other = "m.plan", "other.plan"

    def __init__(self, draw):
        super().__init__(draw)
        self.host = self.rank = draw.randrange(1, HOSTS)

    def expected(self):
        return rf"error: m.plan: process 0 has another plan than process {self.rank} on {name(self.host)}"


class OtherData(OtherPlan):
    """A process has other data."""

    file, other = "text.txt", "other.txt"

    def expected(self):
        return rf"error: .*process {self.rank} on {name(self.host)}"


class Missing(Fault):
    """A process never starts."""

    def __init__(self, draw):
        super().__init__(draw)
        self.host = self.rank = draw.randrange(1, HOSTS)

    def during(self, run):
        pass

    def instead(self):
        return {self.rank: None}

    def expected(self):
        return (rf"error: (1 of 4 processes have not come to node0 port 29500 within {START_TIMEOUT} s, among them "
                rf"\[{self.rank}\]|the 4 processes have not met within {START_TIMEOUT} s)")


FAULTS = {"kill": KillRank, "kill-first": KillFirst, "kill-host": KillHost, "stop": Stop, "cut": Cut,
          "full-disk": FullDisk, "other-plan": OtherPlan, "other-data": OtherData, "missing": Missing}


def arguments_of(plan, checkpoint):
    return [plan, "--data", "text.txt", "--steps", STEPS, "--threads", 1, "--log-every", 1000000, "--metrics",
            "steps.jsonl", "--checkpoint", checkpoint, "--checkpoint-every", 5, "--resume", "--save",
            "found.safetensors", "--start-timeout", START_TIMEOUT]


def happens_before(fault):
    return isinstance(fault, (Another, Missing))


def problems_of(fault, run, seconds, left):
    text = run.text()
    errors = re.findall(r"^.*error: .*$", text, re.MULTILINE)
    found = []
    if seconds is None:
        found.append(f"{left} processes were left after {fault.limit} s")
    if not re.search(fault.expected(), text):
        found.append(f"no message that matches {fault.expected()}")
    if not (0 if re.search(MPIRUN_LOST, text) else 1) <= len(errors) <= fault.messages:
        found.append(f"{len(errors)} messages instead of {fault.messages}")
    if found:
        found.append(text)
    return found


def clean():
    for path in ("disk/ck", "steps.jsonl", "found.safetensors"):
        shutil.rmtree(path, ignore_errors=True)
        pathlib.Path(path).unlink(missing_ok=True)


class OverBefore(Exception):
    """The run has done all its work before its fault had an effect: the machine takes longer to find and kill a process
    than the run takes for the steps that are left."""


def steps_of(run, count):
    """Waits until the run has written the metrics of `count` steps. Whether it has."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and run.poll():
        try:
            if pathlib.Path("steps.jsonl").read_bytes().count(b"\n") >= count:
                return True
        except FileNotFoundError:
            pass
        time.sleep(0.01)
    return False


def saved_all(run, weights):
    """Whether the run got to its end. A process that is killed after that is not missed by anybody."""
    try:
        return "\nsaved found.safetensors\n" in run.text() and pathlib.Path("found.safetensors").read_bytes() == weights
    except FileNotFoundError:
        return False


def trial(cluster, fault, start, draw, weights_of, last_step):
    """One fault after a step drawn from the first `last_step`, and the run that goes on. The seconds until all have gone,
    and what was wrong. `weights_of`: by processes of a host, the weights of an undisturbed run. Raises OverBefore."""
    plan = f"{HOSTS * fault.per_host}.plan" if fault.per_host > 1 else "m.plan"
    weights = weights_of[fault.per_host]
    clean()
    run = Run(cluster, start, fault.per_host, arguments_of(plan, "disk/ck"), fault.instead())
    during = not happens_before(fault)
    if during and not steps_of(run, draw.randint(1, last_step)):
        left, statuses = run.end(), run.statuses()
        if not left and not any(statuses) and saved_all(run, weights):
            raise OverBefore
        return None, [f"the run failed before its fault, with {statuses}", run.text()]
    begin = time.monotonic()
    try:
        fault.during(run)
    except (KeyError, ProcessLookupError):
        pass  # The process has ended by now: with all its work done, or there is no message of its loss.
    limit = fault.limit + (START_TIMEOUT if isinstance(fault, Missing) else 0)
    gone = run.wait(limit)
    seconds = None if gone is None else time.monotonic() - begin
    left = run.end()
    fault.after(run)
    if during and saved_all(run, weights):
        raise OverBefore
    problems = problems_of(fault, run, seconds, left)
    again = Run(cluster, start, fault.per_host, arguments_of(plan, "disk/ck"))
    if again.wait(120) is None or any(again.statuses()):
        again.end()
        problems += ["the run that goes on has failed", again.text()]
    elif pathlib.Path("found.safetensors").read_bytes() != weights:
        problems.append("the run that goes on has other weights than the undisturbed one")
    return seconds, problems


def undisturbed(cluster, per_host, plan):
    clean()
    Run(cluster, "mpirun", per_host, arguments_of(plan, "disk/ck")).succeeds()
    return pathlib.Path("found.safetensors").read_bytes()


def check_faults(options, folder):
    """Each fault, several times at random moments."""
    make_model("m.mlir")
    make_data("text.txt", 4000, 64)
    make_data("other.txt", 4001, 64)
    tool("dtc-compile", "m.mlir", "--mesh", "dp=2,tp=2", "--zero", "1", "-o", "m.plan")
    tool("dtc-compile", "m.mlir", "--mesh", "dp=4", "-o", "other.plan")
    tool("dtc-compile", "m.mlir", "--mesh", "dp=4,tp=2", "--zero", "1", "-o", "8.plan")
    os.mkdir("disk")
    command_here("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", "disk")
    print(f"seed {options.seed}", flush=True)
    kinds = options.only.split(",") if options.only else list(FAULTS)
    bad = 0
    with Hosts(HOSTS, folder) as cluster:
        weights_of = {per_host: undisturbed(cluster, per_host, plan)
                      for per_host, plan in ((1, "m.plan"), (2, "8.plan"))
                      if any(FAULTS[kind].per_host == per_host for kind in kinds)}
        for kind in kinds:
            times, failures = [], 0
            for number in range(options.times):
                draw = random.Random(f"{options.seed} {kind} {number}")
                start = STARTS[number % len(STARTS)]
                for last_step in LAST_STEPS:
                    try:
                        seconds, problems = trial(cluster, FAULTS[kind](draw), start, draw, weights_of, last_step)
                        break
                    except OverBefore:
                        seconds, problems = None, ["the run was over before"]
                if seconds is not None:
                    times.append(seconds)
                if problems:
                    failures += 1
                    print(f"FAILED  {kind} {number} ({start}): " + "\n  ".join(problems), flush=True)
            bad += failures
            times.sort()
            took = f"gone after {times[len(times) // 2]:.2f} s (median), {times[-1]:.2f} s at most" if times else "never gone"
            print(f"{'FAILED' if failures else 'ok':8}{kind}: {options.times - failures} of {options.times}, {took}",
                  flush=True)
    command_here("umount", "disk")
    return bad == 0
