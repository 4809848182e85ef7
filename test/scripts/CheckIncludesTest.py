"""scripts/check-includes: what it accepts and what it reports."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = """| folder | what is in it | may include | libraries |
| --- | --- | --- | --- |
| `base/` | | nothing else | fmt |
| `base/deep/` | | `base` | none |
| `top/` | | `base` | MLIR, fmt |
| `side/` | | `top` | none |
| `test/` | | all | all |
"""


class CheckIncludes(unittest.TestCase):
    def run_on(self, files, table=TABLE):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("base/deep", "top", "side", "test"):
                (root / name).mkdir(parents=True)
            (root / "CONTRIBUTING.md").write_text(table)
            for name, text in files.items():
                (root / name).write_text(text)
            subprocess.run(["git", "init", "-q", folder], check=True)
            done = subprocess.run([sys.executable, ROOT / "scripts/check-includes", folder], capture_output=True,
                                  text=True)
            return done.returncode, done.stdout + done.stderr

    def test_accepts_what_the_table_allows(self):
        code, text = self.run_on({
            "base/A.h": "#include <vector>\n#include <fmt/format.h>\n",
            "base/deep/B.cpp": '#include "base/A.h"\n#include "base/deep/B.h"\n',
            "top/C.cpp": '#include "base/deep/B.h"\n#include "mlir/IR/Builders.h"\n',
            "test/D.cpp": '#include "side/E.h"\n#include <gtest/gtest.h>\n',
        })
        self.assertEqual((code, text), (0, "every include is allowed\n"))

    def expect(self, files, message, table=TABLE):
        code, text = self.run_on(files, table)
        self.assertEqual(code, 1, text)
        self.assertIn(message, text)

    def test_a_folder_that_is_not_named(self):
        self.expect({"base/A.cpp": '\n#include "top/C.h"\n'}, "base/A.cpp:2: top/C.h is not in base/")
        self.expect({"side/E.cpp": '#include "base/A.h"\n'}, "may include: top")

    def test_a_library_that_is_not_named(self):
        self.expect({"base/A.cpp": '#include "llvm/ADT/StringRef.h"\n'}, "base/A.cpp:1: llvm/ADT/StringRef.h is MLIR's")
        self.expect({"base/deep/B.cpp": "#include <fmt/format.h>\n"}, "base/deep/ may include no library")

    def test_an_include_without_a_path(self):
        self.expect({"base/A.cpp": '#include "A.h"\n'}, "A.h names no path from the root")

    def test_a_cycle(self):
        table = TABLE.replace("| `base/` | | nothing else |", "| `base/` | | `top` |")
        self.expect({"base/A.h": '#include "top/C.h"\n', "top/C.h": '#include "base/A.h"\n'},
                    "folders include each other: base -> top -> base", table)

    def test_tables_that_are_wrong(self):
        self.expect({}, "the table has gone/, which is no folder", TABLE + "| `gone/` | | all | all |\n")
        self.expect({}, "unknown library 'Boost'", TABLE.replace("MLIR, fmt", "Boost"))
        self.expect({}, "found no table", "nothing\n")


if __name__ == "__main__":
    unittest.main()
