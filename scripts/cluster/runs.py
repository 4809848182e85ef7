"""Runs of dtc-run on hosts: what is run, how it is started and how it is watched."""

import os
import pathlib
import shlex
import subprocess
import sys
import time

import hosts

TREE = pathlib.Path(__file__).resolve().parents[2]
STARTS = ("mpirun", "variables")
# A launcher that sees a process end with an error ends the others, if they have not ended by then.
LAUNCHER_PATIENCE = 6


def tool(*words):
    result = subprocess.run([str(each) for each in words], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, words))}: {result.stdout}{result.stderr}")
    return result.stdout


def make_model(name, batch=24, seq=16, config=None):
    config = config or TREE / "test/tools/Inputs/gpt2.json"
    tool("dtc-import", config, "--batch", batch, "--seq", seq, "-o", name)


def make_data(name, tokens, vocabulary):
    tool(sys.executable, TREE / "test/tools/Inputs/make-tokens.py", name, tokens, vocabulary)


class Run:
    """dtc-run with some arguments, in processes on hosts. `instead`: by rank, another command line than that of the
    others, which gets theirs as its arguments; None: this one is not started."""

    def __init__(self, cluster, start, per_host, arguments, instead=None, options=()):
        self.cluster, self.start, self.instead = cluster, start, instead or {}
        self.output = open(cluster.folder / "output.txt", "w+")
        command = ["dtc-run", *map(str, arguments)]
        if start == "mpirun":
            self.commands = [(self._mpirun(per_host, command, options), {})]
        else:
            left_out = [rank for rank, other in self.instead.items() if other is None]
            self.commands = cluster.by_variables(per_host, command, leave_out=left_out)
            for place, (words, variables) in enumerate(self.commands):
                other = self.instead.get(int(variables["RANK"]))
                if other:
                    self.commands[place] = (words[:-len(command)] + list(other) + command, variables)
        self.launched = time.monotonic()
        self.processes = [subprocess.Popen([str(each) for each in words], env=dict(os.environ, **variables),
                                           stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT)
                          for words, variables in self.commands]
        self.failed_at = None

    def _mpirun(self, per_host, command, options):
        if self.instead:
            script = self.cluster.folder / "by-rank.sh"
            lines = ["#!/bin/sh", "case $OMPI_COMM_WORLD_RANK in"]
            for rank, other in self.instead.items():
                words = "exec sleep 300" if other is None else f"exec {shlex.join(other)} \"$@\""
                lines.append(f"{rank}) {words} ;;")
            script.write_text("\n".join([*lines, "esac", 'exec "$@"', ""]))
            script.chmod(0o755)
            command = [script, *command]
        # mpirun itself notices after 9 seconds that a host is not there. Later, when it has told that host to end its
        # processes, it would wait for minutes.
        alive = ["--mca", "oob_tcp_keepalive_time", 5, "--mca", "oob_tcp_keepalive_intvl", 2, "--mca",
                 "oob_tcp_keepalive_probes", 2]
        return self.cluster.mpirun(per_host, command, [*alive, *options])

    def ranks(self):
        """By rank, the number of the process and its host."""
        found = {}
        for host in range(self.cluster.count):
            for process in self.cluster.processes(host):
                variables = hosts.variables_of(process)
                rank = variables.get("OMPI_COMM_WORLD_RANK", variables.get("RANK"))
                if rank is not None and hosts.program_of(process) == "dtc-run":
                    found[int(rank)] = (process, host)
        return found

    def left(self):
        return [process for host in range(self.cluster.count + 1) for process in self.cluster.processes(host)]

    def poll(self):
        """Whether processes are left; does what a launcher does when one has failed."""
        for process in self.processes:
            if process.poll() not in (None, 0) and self.failed_at is None:
                self.failed_at = time.monotonic()
        if self.start == "variables" and self.failed_at and time.monotonic() - self.failed_at > LAUNCHER_PATIENCE:
            for process in self.processes:
                if process.poll() is None:
                    process.kill()
        return bool(self.left()) or any(process.poll() is None for process in self.processes)

    def wait(self, seconds):
        """The seconds until all have gone; None if some have not."""
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            if not self.poll():
                return time.monotonic() - begin
            time.sleep(0.05)
        return None

    def wait_for(self, path, seconds=60):
        """Until something has been written to a file. Whether it has."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.poll():
            if os.path.exists(path) and os.path.getsize(path) > 0:
                return True
            time.sleep(0.02)
        return False

    def end(self):
        """Kills what is left; how many there were."""
        left = self.left()
        for process in left:
            os.kill(process, 9)
        for process in self.processes:
            process.wait()
        return len(left)

    def text(self):
        self.output.flush()
        return pathlib.Path(self.output.name).read_text(errors="replace")

    def statuses(self):
        return [process.returncode for process in self.processes]

    def succeeds(self, seconds=300):
        """Waits for the end, which has to be a good one."""
        gone = self.wait(seconds)
        if gone is None or any(self.statuses()):
            left = self.end()
            sys.exit(f"error: a run that was to succeed has ended with {self.statuses()}, {left} processes left:\n{self.text()}")
        return self.text()
