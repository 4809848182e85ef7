"""Functions that dtc-import of the wheel captures: dtc-import FILE.py:FUNCTION."""

import importlib.util
import os
import pathlib
import tempfile
import unittest

from dtc import programs

PROGRAM = pathlib.Path(os.environ["DTC_BIN"]) / "dtc-import"
MODEL = """
import torch

def make():
    model = torch.nn.Linear(6, 5)
    batch = {"x": torch.zeros(4, 6), "y": torch.zeros(4, dtype=torch.long)}
    return model, lambda model, batch: torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"]), batch
"""


class ImportFunction(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model.py"

    def run_import(self, text, function):
        self.model.write_text(text)
        output = self.folder / "model.mlir"
        status = programs.import_function(PROGRAM, [f"{self.model}:{function}", "-o", str(output)])
        return status, output

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
    def test_imports_what_a_function_returns(self):
        status, output = self.run_import(MODEL, "make")
        self.assertEqual(status, 0)
        self.assertIn('dtc.param = "weight"', output.read_text())

    def test_says_what_is_missing(self):
        for text, function, message in (("x = 1", "make", "has no function 'make'"), ("make = 1", "make", "has no function 'make'")):
            with self.subTest(text), self.assertRaisesRegex(SystemExit, message):
                self.run_import(text, function)
        with self.assertRaisesRegex(SystemExit, "not of the form FILE.py:FUNCTION, or the file does not exist"):
            programs.import_function(PROGRAM, [f"{self.folder / 'other.py'}:make"])

    def test_other_arguments_are_files(self):
        for argument in ("model.py", "captured.mlir", "a.py:b/config.json"):
            self.assertIsNone(programs.FUNCTION.fullmatch(argument))


if __name__ == "__main__":
    unittest.main()
