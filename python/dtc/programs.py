"""The programs of dtc that a wheel has: console scripts of their names, which become the program. dtc-import takes a
function FILE.py:FUNCTION, too, whose model it captures."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile


FUNCTION = re.compile(r".*\.py:[^:/]+")


def import_function(program, arguments):
    """Runs dtc-import on the capture of a function FILE.py:FUNCTION among the arguments; the exit status."""
    from dtc import command
    from dtc.errors import Error
    place = next(i for i, each in enumerate(arguments) if FUNCTION.fullmatch(each))
    stem = pathlib.Path(arguments[place].rpartition(":")[0]).stem
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{stem}.mlir")
        try:
            command.write(command.capture_any(command.function_of(arguments[place])), path)
        except (Error, ValueError) as error:
            sys.exit(f"error: {error}")
        return subprocess.run([program, *arguments[:place], path, *arguments[place + 1:]], check=False).returncode


def main():
    name = pathlib.Path(sys.argv[0]).name
    program = pathlib.Path(__file__).parent / "bin" / name
    if not program.exists():
        sys.exit(f"error: {program} is missing; install a wheel of scripts/package-python.sh")
    if name == "dtc-data":  # an archive of Python, which runs in the environment of the wheel
        os.execv(sys.executable, [sys.executable, program, *sys.argv[1:]])
    if name == "dtc-import" and any(FUNCTION.fullmatch(each) for each in sys.argv[1:]):
        sys.exit(import_function(program, sys.argv[1:]))
    os.execv(program, [name, *sys.argv[1:]])
