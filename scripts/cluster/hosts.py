"""Hosts on one machine: network namespaces with addresses and host names of their own, and links of a given speed.

All of it lives in namespaces of processes and mounts that alone() makes, and ends with the script, however that ends."""

import ctypes
import fcntl
import os
import pathlib
import signal
import struct
import subprocess
import sys

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, PR_SET_PDEATHSIG = 0x00020000, 0x20000000, 0x40000000, 1
MTU = 9000


def alone():
    """Goes on in a child, in namespaces in which all processes end when this one or the child does, and whose mounts
    nobody else sees."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) != 0:
        sys.exit(f"error: cannot make namespaces, which takes root: {os.strerror(ctypes.get_errno())}")
    if child := os.fork():
        await_child(child)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if child := os.fork():  # whose parent has ended comes to the first process, which has to wait for it
        await_child(child)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    command_here("mount", "--make-rprivate", "/")
    command_here("mount", "-t", "proc", "proc", "/proc")
    for folder in ("/run/netns", "/etc/netns"):
        os.makedirs(folder, exist_ok=True)
        command_here("mount", "-t", "tmpfs", "tmpfs", folder)
    command_here("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
    command_here("ip", "link", "set", "lo", "up")


def await_child(child):
    """Ends as it does, and passes SIGTERM on to it; Ctrl-C comes to both."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def command_here(*words):
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"error: {' '.join(words)}: {result.stderr.strip()}")


def why_not():
    """Why hosts cannot be made here; empty if they can."""
    for words in (["ip", "-V"], ["tc", "-V"]):
        try:
            subprocess.run(words, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return f"there is no '{words[0]}' (Debian's iproute2)"
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--net", "--uts", "--fork", "--mount-proc", "true"],
                           capture_output=True, text=True)
    return tried.stderr.strip()


LOGIN = "login"  # the host on which mpirun is started, which has no processes of the run


def name(host):
    return f"node{host}"


def address(host):
    return f"10.77.0.{host + 1}"


class Hosts:
    """`rate`: bytes a second out of each host; `latency`: seconds of a frame from one to another; `slow`: rates that hold
    between two hosts instead, {(0, 2): 5e6}, in both directions."""

    def __init__(self, count, folder, rate=None, latency=0.0, slow=None):
        self.count, self.folder = count, pathlib.Path(folder)
        self.names = [*map(name, range(count)), LOGIN]
        for host in range(count + 1):
            self._add(host)
        files = [self._open_device(host) for host in range(count + 1)]
        for host in range(count):
            self._shape(host, rate, slow or {})
        self.wire = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__).parent / "delay.py"), str(latency), ",".join(map(str, files))],
            stdin=subprocess.PIPE, pass_fds=files)
        for file in files:
            os.close(file)
        self._write_files()

    def _add(self, host):
        command_here("ip", "netns", "add", self.names[host])
        table = pathlib.Path("/etc/netns") / self.names[host]
        table.mkdir()
        # As on Debian: a host's own name is the loopback address.
        lines = ["127.0.0.1 localhost", f"127.0.1.1 {self.names[host]}"]
        lines += [f"{address(each)} {other}" for each, other in enumerate(self.names) if each != host]
        (table / "hosts").write_text("\n".join(lines) + "\n")
        (table / "hostname").write_text(self.names[host] + "\n")

    def _open_device(self, host):
        file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        device = f"dtctap{host}"
        fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
        command_here("ip", "link", "set", device, "netns", self.names[host], "name", "eth0", "address",
                     f"02:00:00:00:00:{host + 1:02x}", "mtu", str(MTU))
        command_here("ip", "-n", self.names[host], "address", "add", f"{address(host)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            command_here("ip", "-n", self.names[host], "link", "set", device, "up")
        return file

    def _shape(self, host, rate, slow):
        if not rate:
            return
        def tc(*words):
            command_here("tc", "-n", self.names[host], *words)
        tc("qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "1")
        def add(number, parent, bytes_a_second):
            tc("class", "add", "dev", "eth0", "parent", parent, "classid", f"1:{number}", "htb", "rate",
               f"{int(bytes_a_second * 8)}bit", "burst", str(4 * MTU), "cburst", str(4 * MTU), "quantum", str(2 * MTU))
        add(100, "1:", rate)
        add(1, "1:100", rate)
        for other in range(self.count):
            between = slow.get((min(host, other), max(host, other)))
            if other == host or not between:
                continue
            add(10 + other, "1:100", between)
            tc("filter", "add", "dev", "eth0", "parent", "1:", "protocol", "ip", "u32", "match", "ip", "dst",
               f"{address(other)}/32", "flowid", f"1:{10 + other}")

    def _write_files(self):
        self.hostfile = self.folder / "hosts"
        self.hostfile.write_text("".join(f"{host} slots=64\n" for host in self.names[:-1]))
        self.agent = self.folder / "agent"
        self.agent.write_text("#!/bin/sh\n# For mpirun, instead of ssh: a command on a host.\nhost=$1\nshift\n"
                              "exec ip netns exec \"$host\" unshare --uts sh -c "
                              "\"hostname $host; exec sh -c '$*'\"\n")
        self.agent.chmod(0o755)

    def on(self, host, command):
        """The command, on a host."""
        return ["ip", "netns", "exec", self.names[host], "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', self.names[host],
                *map(str, command)]

    def mpirun(self, per_host, command, options=()):
        """The command by mpirun, in `per_host` processes on each host."""
        return self.on(self.count, ["mpirun", "--allow-run-as-root", "--hostfile", self.hostfile, "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
                           self.agent, "--mca", "btl", "tcp,self,vader", "--bind-to", "none", "--map-by",
                           f"ppr:{per_host}:node", "-n", per_host * self.count, *options, *command])

    def by_variables(self, per_host, command, port=29500, leave_out=()):
        """By rank: the command and its environment, as a launcher without MPI would start it."""
        found = []
        count = per_host * self.count
        for rank in range(count):
            host = rank // per_host
            variables = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank % per_host, "LOCAL_WORLD_SIZE": per_host,
                         "MASTER_ADDR": name(0), "MASTER_PORT": port, "DTC_RUN_KEY": "cluster-check"}
            if rank not in leave_out:
                found.append((self.on(host, command), {key: str(value) for key, value in variables.items()}))
        return found

    def cut(self, host):
        self._tell(f"cut {host}")

    def mend(self, host):
        self._tell(f"mend {host}")

    def _tell(self, line):
        self.wire.stdin.write(line.encode() + b"\n")
        self.wire.stdin.flush()

    def processes(self, host):
        """Those that run on a host."""
        text = subprocess.run(["ip", "netns", "pids", self.names[host]], capture_output=True, text=True).stdout
        return [int(each) for each in text.split() if is_running(int(each))]

    def close(self):
        self.wire.stdin.close()
        self.wire.wait()
        for host in range(self.count + 1):
            for process in self.processes(host):
                os.kill(process, signal.SIGKILL)
            command_here("ip", "netns", "delete", self.names[host])
            table = pathlib.Path("/etc/netns") / self.names[host]
            for file in table.iterdir():
                file.unlink()
            table.rmdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def variables_of(process):
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return dict(each.split("=", 1) for each in file.read().decode(errors="replace").split("\0") if "=" in each)
    except OSError:
        return {}


def program_of(process):
    try:
        return os.path.basename(os.readlink(f"/proc/{process}/exe"))
    except OSError:
        return ""
