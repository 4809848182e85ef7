"""Tests of scripts/check-docs, check-format, check-tidy and check-words in a small repository."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

GLOSSARY = """# Glossary

| word | meaning | where |
| --- | --- | --- |
| axis map | Which axes split what, as a page says it. Code such as `behind` is no prose. | `map.h` |

## Words to replace

### Words with several meanings

| found | meaning there, and where | kind | use instead |
| --- | --- | --- | --- |
| cut | of stages | P | stage cut |

### Coined words

| found | where | kind | use instead |
| --- | --- | --- | --- |
| behind | everywhere | P O | after |
| wish, come to rest | `a.h` | N P | request, reach a fixpoint |
| cards | `b.h` | P N | network cards; `Figures` |
| page | HTML | P | HTML report |
| regatherer | a class | N | gatherer |
| remedy | | P | stays |
| kept (for later) | | P | saved |

## More

| found | where | use instead |
| --- | --- | --- |
| after | here | behind |
"""


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "scripts").mkdir()
        for script in ("changed_files.py", "compile_database.py", "check-docs", "check-format", "check-tidy", "check-words"):
            shutil.copy(ROOT / "scripts" / script, self.root / "scripts")
        for file in (".clang-format", ".clang-tidy"):
            shutil.copy(ROOT / file, self.root)
        self.git("init", "-q")
        self.commit()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test@example.invalid", *arguments], cwd=self.root,
                       check=True, capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "test")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def run_script(self, script, *arguments):
        result = subprocess.run([sys.executable, self.root / "scripts" / script, *arguments], cwd=self.root,
                                capture_output=True, text=True, timeout=120)
        return result.returncode, result.stdout + result.stderr

    def needs(self, program):
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed")

    # Words

    def words(self, *arguments):
        status, printed = self.run_script("check-words", *arguments)
        return status, [tuple(line.split(";")[0].replace('"', "").rsplit(": ", 1)) for line in printed.splitlines()]

    def test_no_glossary(self):
        status, printed = self.run_script("check-words", "--all")
        self.assertEqual(status, 0)
        self.assertIn("no words are checked", printed)
        self.write("docs/glossary.md", "# Glossary\n")
        status, printed = self.run_script("check-words", "--all")
        self.assertEqual((status, "no words are checked" in printed), (0, True))

    def test_which_words(self):
        self.write("docs/glossary.md", GLOSSARY)
        self.assertEqual(self.run_script("check-words", "--list"), (
            0, "behind: after\nwish: request, reach a fixpoint\ncome to rest: request, reach a fixpoint\n"
            "cards: network cards; `Figures`\n"))
        self.write("docs/glossary.md", "# Glossary\n\n## Words to replace\n\n| found word | where | replacement |\n"
                   "| --- | --- | --- |\n| behind | text | after |\n")
        self.assertEqual(self.run_script("check-words", "--list"), (0, "behind: after\n"))

    def test_prose_alone(self):
        self.write("docs/glossary.md", GLOSSARY)
        self.write("a.md", "One behind another.\n`behind` is code.\n\n```\nbehind\n```\nWishes: they come\nto rest.\nBehind\n")
        self.write("a.cpp", '#include "behind.h"\nint behind = 1; // what is behind\n/// Two wishes.\nconst char *s = "behind";\n'
                   'const char *t = "a wish"; // "behind"\n')
        self.write("a.td", 'def Behind : Op<"behind"> {\n  let summary = "behind";\n  let description = [{\n    It comes to '
                   'rest behind `behind`.\n  }];\n  let arguments = behind;\n  // behind\n}\n')
        self.write("a.py", "behind = 1  # behind\n")
        self.commit()
        self.assertEqual(self.words("--all"), (1, [
            ("a.cpp:2", "behind"), ("a.cpp:3", "wishes"), ("a.cpp:5", "behind"), ("a.cpp:4", "behind"),
            ("a.md:1", "behind"), ("a.md:7", "Wishes"), ("a.md:9", "Behind"),
            ("a.py:1", "behind"),
            ("a.td:2", "behind"), ("a.td:4", "behind"), ("a.td:7", "behind")]))

    def test_comments_of_tests(self):
        self.write("docs/glossary.md", GLOSSARY)
        self.write("a.mlir", "// RUN: behind\n// CHECK-NEXT: behind\n// Behind it:\n// expected-error@+1 {{behind}}\n"
                   "func.func @behind(%x: i1) // behind\n  // behind\n")
        self.write("a.test", "# RUN: behind\n# NONE: behind\n# What is behind.\nbehind\n")
        self.commit()
        self.assertEqual(self.words("--all"), (1, [("a.mlir:3", "Behind"), ("a.mlir:6", "behind"), ("a.test:3", "behind")]))

    def test_blocks_of_code(self):
        self.write("docs/glossary.md", GLOSSARY)
        self.write("a.td", 'def Op {\n  let description = [{\n    ```mlir\n    // behind\n    ```\n    behind\n  }];\n  // behind\n}\n')
        self.commit()
        self.assertEqual(self.words("--all"), (1, [("a.td:6", "behind"), ("a.td:8", "behind")]))

    def test_phrase_to_write(self):
        self.write("docs/glossary.md", GLOSSARY)
        self.write("a.md", "Network cards.\nCards.\nThe cards of the network cards.\nA network of cards.\n")
        self.commit()
        self.assertEqual(self.words("--all"), (1, [("a.md:2", "Cards"), ("a.md:3", "cards"), ("a.md:4", "cards")]))

    def test_changes_alone(self):
        self.write("docs/glossary.md", GLOSSARY)
        self.write("a.md", "One behind another.\n\nTwo.\n")
        self.write("b.md", "One behind another.\n")
        self.commit()
        self.assertEqual(self.words(), (0, []))
        self.write("a.md", "One behind another.\n\nTwo behind.\n")
        self.write("c.md", "Three behind.\n")
        self.assertEqual(self.words(), (1, [("a.md:3", "behind"), ("c.md:1", "behind")]))
        self.assertEqual(self.words("a.md"), (1, [("a.md:3", "behind")]))
        self.git("add", "-A")
        self.assertEqual(self.words("b.md", "c.md"), (1, [("c.md:1", "behind")]))

    # Documents

    def documents(self):
        """What check-docs finds, as (place, text)."""
        status, printed = self.run_script("check-docs")
        lines = [tuple(line.split(": ", 1)) for line in printed.splitlines()]
        self.assertEqual(status, 0 if lines == [("every name and link of the documents is right",)] else 1)
        return lines if status else []

    def write_tree(self):
        self.write("compiler/passes/sharding/Passes.td", 'def FoldCastsPass : Pass<"dtc-fold-casts", "ModuleOp"> {}\n')
        self.write("compiler/passes/sharding/FoldCasts.cpp", "void dtc::foldCasts(int max_casts); // reads manifest.json\n")
        self.write("dialects/dtc/DtcOps.td", 'def Dtc_ReluOp : Dtc_Op<"relu"> {} // - [relu-c1] and `dtc.param`\n')
        self.write("tools/dtc-run/main.cpp", "int main() {}\n")
        self.write("docs/reference.md", "# The flags\n\n## `dtc-run`\n\n| `--steps UINT` | steps; `--stale` |\n")

    def test_names_that_exist(self):
        self.write_tree()
        self.write("docs/other.md", "# Other\n\n## A `name`, twice\n\n## A name, twice\n")
        self.write("docs/page.md", """# Page

`compiler/passes/sharding/FoldCasts.cpp`, `sharding/FoldCasts.cpp`, `FoldCasts.cpp`, `compiler/{passes,passes/sharding}/`,
`compiler/passes/*/Passes.td`, `other.md`, `.td` files, `manifest.json`, `build/release/bin`.
`dtc-run model.plan --steps=5`, `--dtc-fold-casts`, `--filter`, `--help`, `tokens/s`, `tools/NAME`.
`FoldCastsPass`, `dtc::foldCasts`, `foldCasts()`, `max_casts`, `FoldCastsP*`, `dtc-fold-casts`, `relu-c1`,
`dtc.relu`, `dtc.param`, `dtc-NAME`.
[one](other.md), [two](other.md#a-name-twice-1), [three](#page), [folder](../compiler/passes), [web](https://example.invalid/x).

```sh
dtc-run model.plan --steps 5 > out/steps.csv  # `Stale.cpp` in a block
```

The command writes `out/steps.csv`.
""")
        self.write("docs/glossary.md", "# Glossary\n\n## Words to replace\n\n`StaleName` is a word of before.\n")
        self.assertEqual(self.documents(), [])

    def test_names_that_do_not_exist(self):
        self.write_tree()
        self.write("README.md", "# Tool\n\n`compiler/passes/FoldCasts.cpp`\n`compiler/{passes,driver}/`, `Fold.cpp`\n`--no-such`, "
                   "`dtc-run --step 5`\n`UnfoldCastsPass`, `dtc::unfoldCasts`,\n`unfoldCasts()`, `min_casts`\n`dtc-unfold-casts`\n"
                   "`dtc.gelu`, `DTC_NO_SUCH`\n[a](docs/gone.md) [b](docs/reference.md#dtc-gone)\n[c](#gone)\n"
                   "`data.csv`\n`UnfoldCasts*`, a span that\ngoes `compiler/\ngone.h`\n\n```sh no-run\ndtc-run --no-steps\n```\n")
        self.write("examples/a/README.md", "`Gone.cpp`\n")
        self.write("test/README.md", "`Gone.cpp` of a page that is no document\n")
        found = self.documents()
        self.assertEqual([(place, re.search(r"(\S+) (?:is no|has no|, which)|leads to (\S+),", text)[0]) for place, text in found], [
            ("README.md:3", "compiler/passes/FoldCasts.cpp is no"),
            ("README.md:4", "compiler/driver/ is no"), ("README.md:4", "Fold.cpp is no"),
            ("README.md:5", "--no-such is no"), ("README.md:5", "--step is no"),
            ("README.md:6", "UnfoldCastsPass is no"), ("README.md:6", "unfoldCasts is no"),
            ("README.md:7", "unfoldCasts is no"), ("README.md:7", "min_casts is no"),
            ("README.md:8", "dtc-unfold-casts is no"),
            ("README.md:9", "dtc.gelu is no"), ("README.md:9", "DTC_NO_SUCH is no"),
            ("README.md:12", "data.csv is no"),
            ("README.md:13", "UnfoldCasts* is no"),
            ("README.md:14", "gone.h is no"),
            ("README.md:18", "--no-steps is no"),
            ("README.md:10", "leads to docs/gone.md,"), ("README.md:10", "docs/reference.md has no"), ("README.md:11", "README.md has no"),
            ("examples/a/README.md:1", "Gone.cpp is no")])

    # Format

    def test_newest(self):
        self.write("docs/glossary.md", GLOSSARY)
        self.write("old.md", "Behind the first.\n")
        self.commit()
        self.write("new.md", "After the first.\n")
        self.commit()
        self.assertEqual(self.run_script("check-words", "--newest", "1"), (0, ""))
        status, printed = self.run_script("check-words", "--newest", "3")
        self.assertEqual(status, 1)
        self.assertIn("old.md:1", printed)
        self.assertNotIn("new.md", printed)

    def test_format(self):
        self.needs("clang-format")
        self.write("good.cpp", "int f() { return 1; }\n")
        self.write("old.cpp", "int  f() { return 1; }\n")
        self.commit()
        self.assertEqual(self.run_script("check-format"), (0, ""))
        self.assertEqual(self.run_script("check-format", "--all")[0], 1)
        self.write("bad.cpp", "int  g() { return 1; }\n")
        self.write("bad.txt", "int  g() { return 1; }\n")
        status, printed = self.run_script("check-format")
        self.assertEqual(status, 1)
        self.assertIn("bad.cpp:1:", printed)
        self.assertNotIn("old.cpp", printed)
        self.assertEqual(self.run_script("check-format", "--fix"), (0, ""))
        self.assertEqual((self.root / "bad.cpp").read_text(), "int g() { return 1; }\n")
        self.assertEqual((self.root / "old.cpp").read_text(), "int  f() { return 1; }\n")
        self.assertEqual(self.run_script("check-format"), (0, ""))

    # clang-tidy

    def test_tidy_without_a_build(self):
        self.write("a.cpp", "int Bad_name = 1;\n")
        status, printed = self.run_script("check-tidy")
        self.assertEqual(status, 0)
        self.assertIn("clang-tidy is skipped; configure a build", printed)

    def test_tidy(self):
        self.needs("clang-tidy-22")
        # As g++ compiles with precompiled headers, which clang-tidy cannot read.
        self.write("build/release/cmake_pch.hxx", "#error \"precompiled\"\n")
        pch = f"-Winvalid-pch -include {self.root}/build/release/cmake_pch.hxx"
        self.write("build/release/compile_commands.json", json.dumps([
            {"directory": str(self.root), "file": str(self.root / file),
             "command": f"/usr/bin/c++ -std=c++20 -Wno-restrict {pch} -o x.o -c {self.root / file}"}
            for file in ("bad.cpp", "good.cpp", "twin.cpp")]))
        self.write(".gitignore", "build\n")
        self.write("good.cpp", "int goodName() { return 1; }\n")
        self.assertEqual(self.run_script("check-tidy"), (0, ""))
        self.write("bad.cpp", "int Bad_name() { return 1; }\n")
        self.write("other.cpp", "int Bad_name() { return 1; }\n")
        status, printed = self.run_script("check-tidy")
        self.assertEqual(status, 1)
        self.assertRegex(printed, r"bad\.cpp:1:5: error: invalid case style for function 'Bad_name'")
        self.assertIn("other.cpp: the build does not compile it; skipped", printed)
        self.assertEqual(self.run_script("check-tidy", "good.cpp"), (0, ""))
        # Files that cannot be one file, as two functions have the same name, are checked each for itself.
        self.write("twin.cpp", "int goodName() { return 2; }\nint *Worse_name = 0;\n")
        status, printed = self.run_script("check-tidy", "good.cpp", "twin.cpp")
        self.assertEqual(status, 1)
        self.assertNotIn("redefinition", printed)
        self.assertRegex(printed, r"twin\.cpp:2:6: error: invalid case style for variable 'Worse_name'")
        self.assertRegex(printed, r"twin\.cpp:2:19: error: use nullptr")
        # Files that a build compiles together, as CMake does it.
        together = self.root / "build/release/x.dir/Unity/unity_0_cxx.cxx"
        self.write(str(together.relative_to(self.root)), "".join(f'#include "{self.root / file}"\n' for file in ("bad.cpp", "good.cpp")))
        self.write("build/release/compile_commands.json", json.dumps([
            {"directory": str(self.root), "file": str(together),
             "command": f"/usr/bin/c++ -std=c++20 -Wno-restrict {pch} -o x.o -c {together}"}]))
        self.assertEqual(self.run_script("check-tidy", "good.cpp"), (0, ""))
        status, printed = self.run_script("check-tidy", "good.cpp", "bad.cpp")
        self.assertEqual(status, 1)
        self.assertRegex(printed, r"bad\.cpp:1:5: error: invalid case style for function 'Bad_name'")


if __name__ == "__main__":
    unittest.main()
