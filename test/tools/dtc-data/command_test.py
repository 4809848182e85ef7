"""What the tests of dtc-data share: they run the programs of a folder, the first argument of the test."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else ROOT / "build" / "release" / "bin"


class CommandTest(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *arguments, program="dtc-data"):
        command = [PROGRAMS / program, *map(str, arguments)]
        if program == "dtc-data":
            command = [sys.executable, *command]
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_program(self, *arguments, program="dtc-data", status=0):
        process = self.start(*arguments, program=program)
        out, error = process.communicate(timeout=280)
        self.assertEqual(process.returncode, status, out + error)
        return out if status == 0 else error

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
