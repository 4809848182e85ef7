#!/usr/bin/env python3
"""Runs a program again and again, with a fault one call later each time, until it runs to its end:
sweep-faults.py LIBRARY FAULT CALLS CHECK PROGRAM ARGUMENT...

FAULT is the name of an error, or "kill" (see FaultInjection.cpp). With an error the program must fail, with a status of
1 and one line on the standard error. Whatever happens, the command CHECK must succeed afterwards. A program that
goes on after a fault must do without what failed: then its status is 0.
"""

import errno
import os
import subprocess
import sys

library, fault, calls, check, *command = sys.argv[1:]
mark = os.path.abspath("fault-mark")
environment = dict(os.environ, LD_PRELOAD=library, FAULT_CALLS=calls, FAULT_MARK=mark,
                   FAULT_ERRNO=fault if fault == "kill" else str(getattr(errno, fault)))
environment["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + environment.get("ASAN_OPTIONS", "")
faults, endured = 0, 0
messages = set()
while True:
    if os.path.exists(mark):
        os.remove(mark)
    environment["FAULT_FROM"] = str(faults + 1)
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         timeout=240)
    where = f"{fault} from call {faults + 1} on: status {run.returncode}, {run.stderr}"
    hit = os.path.exists(mark)
    if fault == "kill" and hit:
        assert run.returncode == -9, where
    elif run.returncode != 0:
        assert hit and run.returncode == 1, where
        lines = run.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("error: "), where
        messages.add(lines[0])
    else:
        endured += hit
    checked = subprocess.run(check, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert checked.returncode == 0, where + checked.stdout
    if not hit:
        break
    faults += 1
print(f"{faults} faults, {endured} of them endured")
for message in sorted(messages):
    print(message)
