"""The programs of dtc that a wheel has: console scripts of their names, which become the program."""

import os
import pathlib
import sys


def main():
    name = pathlib.Path(sys.argv[0]).name
    program = pathlib.Path(__file__).parent / "bin" / name
    if not program.exists():
        sys.exit(f"error: {program} is missing; install a wheel of scripts/package-python.sh")
    if name == "dtc-data":  # an archive of Python, which runs in the environment of the wheel
        os.execv(sys.executable, [sys.executable, program, *sys.argv[1:]])
    os.execv(program, [name, *sys.argv[1:]])
