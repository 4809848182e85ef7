"""The wire between the hosts of a cluster: passes frames on between TAP devices, each after a time.

Run by hosts.py as a process of its own, which gets the devices' files and one for commands. Commands are lines:
"cut HOST" drops all that this host sends or is sent, "mend HOST" no longer. Bandwidth is not its business: tc shapes what
comes out of a host."""

import heapq
import os
import select
import sys
import time

MOST_FRAME = 65536 + 32
BROADCAST = b"\xff" * 6


def run(files, latency, commands):
    """`files`: of each host; its address is that of hosts.address(host)."""
    hosts = {bytes([2, 0, 0, 0, 0, host + 1]): host for host in range(len(files))}
    cut, late, order = set(), [], 0  # late: (due, order, file, frame)
    text = b""
    while True:
        now = time.monotonic()
        while late and late[0][0] <= now:
            _, _, file, frame = heapq.heappop(late)
            try:
                os.write(file, frame)
            except OSError:
                pass  # its queue is full, or its host is down
        wait = max(0.0, late[0][0] - time.monotonic()) if late else None
        ready, _, _ = select.select([*files, commands], [], [], wait)
        for file in ready:
            if file == commands:
                if not (more := os.read(commands, 4096)):
                    return
                *lines, text = (text + more).split(b"\n")
                for line in lines:
                    verb, host = line.decode().split()
                    (cut.add if verb == "cut" else cut.discard)(int(host))
                continue
            source = files.index(file)
            for _ in range(64):
                try:
                    frame = os.read(file, MOST_FRAME)
                except OSError:
                    break
                due, destination = time.monotonic() + latency, frame[:6]
                to = [hosts[destination]] if destination in hosts else range(len(files)) if frame[0] & 1 else []
                for host in to:
                    if host != source and host not in cut and source not in cut:
                        order += 1
                        heapq.heappush(late, (due, order, files[host], frame))


if __name__ == "__main__":
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))  # a wire does not wait for a core
    except OSError:
        os.nice(-10)
    run([int(each) for each in sys.argv[2].split(",")], float(sys.argv[1]), sys.stdin.fileno())
