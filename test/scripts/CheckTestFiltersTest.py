"""scripts/check-test-filters: what it accepts and what it reports."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# The output of --gtest_list_tests for plain, parameterized and typed tests.
PROGRAM = """#!/bin/sh
cat <<'END'
Running main() from gtest_main.cc
Sums.
  Zero
  One
Ways/Equal.
  Same/dp2  # GetParam() = "dp=2"
Kinds/0.  # TypeParam = float
  Reads
END
"""


class CheckTestFiltersTest(unittest.TestCase):
    def check(self, *filters):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program")
            program.write_text(PROGRAM)
            program.chmod(0o755)
            lines = []
            for index, text in enumerate(filters):
                argument = f' "--gtest_filter={text}"' if text is not None else ""
                lines.append(f'add_test(test{index} "{program}"{argument})\n')
            lines.append('add_test(absent "/nowhere/program" "--gtest_filter=None.*")\n')
            pathlib.Path(folder, "CTestTestfile.cmake").write_text("".join(lines))
            return subprocess.run([sys.executable, ROOT / "scripts/check-test-filters", folder],
                                  capture_output=True, text=True)

    def test_all_are_selected(self):
        result = self.check("Sums.*", "Ways/*:Kinds*")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("1 programs with filters, 0 tests that never run", result.stdout)

    def test_names_what_is_not(self):
        result = self.check("Sums.Zero", "Ways/*")
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: program: Sums.One: no --gtest_filter of ctest selects this test", result.stdout)
        self.assertIn("error: program: Kinds/0.Reads: ", result.stdout)
        self.assertNotIn("Sums.Zero", result.stdout)
        self.assertNotIn("Same/dp2", result.stdout)

    def test_negative_patterns(self):
        result = self.check("*-Sums.O?e:Kinds*")
        self.assertIn("program: Sums.One: ", result.stdout)
        self.assertIn("program: Kinds/0.Reads: ", result.stdout)
        self.assertIn("1 programs with filters, 2 tests that never run", result.stdout)
        self.assertIn("0 tests", self.check("*-Sums.One:Kinds*", "Sums.O*", "Kinds/0.Reads").stdout)

    def test_one_test_runs_the_whole_program(self):
        self.assertEqual(self.check("Sums.Zero", None).returncode, 0)


if __name__ == "__main__":
    unittest.main()
