"""Tests of scripts/run-docs: a page that shows what its commands print passes, any other one fails."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

GOOD = """# A page

```sh
value=7
printf 'one\\ntwo\\n' > file
```

Text between blocks, and a list:

- an item

  ```console
  $ cat file \\
      file
  one
  two
  ...
  two
  $ echo value $value
  value 7
  ```
"""


class RunDocs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # Files that make a folder one of dtc's programs.
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "dtc-compile").write_text("#!/bin/sh\necho compiled\n")
        (self.folder / "bin" / "dtc-compile").chmod(0o755)

    def run_docs(self, page, *flags):
        path = self.folder / "page.md"
        path.write_text(page)
        command = [sys.executable, ROOT / "scripts" / "run-docs", "--bin", self.folder / "bin", *flags, path]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return result.returncode, result.stdout + result.stderr

    def passes(self, page, count, *flags):
        status, printed = self.run_docs(page, *flags)
        self.assertEqual((status, printed), (0, f"{count} commands, 0 wrong\n"))

    def fails(self, page, *expected, flags=()):
        status, printed = self.run_docs(page, *flags)
        self.assertEqual(status, 1, printed)
        for text in expected:
            self.assertIn(text, printed)

    def test_right_page(self):
        self.passes(GOOD, 4)

    def test_wrong_output(self):
        # Each change of the document alone makes it fail, and the line and the difference are named.
        self.fails(GOOD.replace("value 7", "value 8"), "page.md:19: echo value $value", "-value 8", "+value 7")
        self.fails(GOOD.replace("  one\n", ""), "page.md:13: cat file", "+one")
        self.fails(GOOD.replace("  ...\n  two\n", "  ...\n  three\n"), "-three")
        self.fails(GOOD.replace("  ...\n", ""), "page.md:13")
        self.fails(GOOD.replace("value 7", "value 7\n  more"), "-more")
        self.fails(GOOD.replace("value=7", "value=8"), "+value 8")

    def test_every_wrong_command_is_reported(self):
        self.fails("```console\n$ echo a\nb\n$ echo c\nc\n$ echo d\ne\n```\n", "page.md:2", "page.md:6", "3 commands, 2 wrong")

    def test_exit_status(self):
        self.fails("```sh\nfalse\n```\n", "page.md:2: false", "exit status 1, expected 0")
        self.fails("```console\n$ echo x; false\nx\n```\n", "exit status 1, expected 0")
        self.passes("```console\n$ echo 'error: no'; false\nerror: no\n```\n", 1)
        self.fails("```console\n$ echo 'error: no'\nerror: no\n```\n", "expected a number other than 0")
        self.fails("```sh\nif\n```\n", "page.md:2: if")

    def test_rest_of_line(self):
        self.passes("```console\n$ echo one two three\none two ...\n```\n", 1)
        self.fails("```console\n$ echo one two three\none three ...\n```\n", "-one three ...")
        self.fails("```console\n$ echo one twothree\none two ...\n```\n", "-one two ...")
        self.passes("```console about=loss\n$ echo loss 2.50 three\nloss 2.46 ...\n```\n", 1)
        self.fails("```console about=loss\n$ echo loss 2.50 three\nloss 2.44 ...\n```\n", "-loss 2.44 ...")

    def test_varying_numbers(self):
        page = "```console varies=tokens/s,eta\n$ echo 'step 1  17.6k tokens/s  lr 2.0  eta 14s'\n{}\n```\n"
        self.passes(page.format("step 1  3 tokens/s  lr 2.0  eta 1,000s"), 1)
        self.fails(page.format("step 2  17.6k tokens/s  lr 2.0  eta 14s"), "-step 2")
        self.fails(page.format("step 1  17.6k tokens/s  lr 2.1  eta 14s"), "lr 2.1")
        self.fails(page.format("step 1  17.6k token/s  lr 2.0  eta 14s"), "token/s")

    def test_numbers_that_agree_about(self):
        page = "```console about=loss\n$ echo 'step 1  loss 2.50'\nstep 1  loss {}\n```\n"
        self.passes(page.format("2.46"), 1)
        self.fails(page.format("2.44"), "-step 1  loss 2.44")
        self.fails(page.format("-2.5"), "-step 1  loss -2.5")
        self.fails(page.format("none"), "-step 1  loss none")

    def test_blocks_that_do_not_run(self):
        page = "```sh no-run\nfalse\n```\n\n```sh slow\nfalse\n```\n\n```text\nfalse\n```\n"
        self.passes(page, 0, "--quick")
        self.fails(page, "page.md:6: false", "1 commands, 1 wrong")
        status, printed = self.run_docs(page, "--list")
        self.assertEqual((status, printed), (0, f"{self.folder / 'page.md'}:1: not run: false\n"))

    def test_blocks_that_need_modules(self):
        page = "```sh needs=json\necho a > file\n```\n\n```sh needs=json,no_such_module\nfalse\n```\n\n```console\n$ cat file\na\n```\n"
        status, printed = self.run_docs(page)
        self.assertEqual(status, 0, printed)
        self.assertEqual(printed, "left out for lack of the Python module no_such_module: blocks of "
                         f"{self.folder / 'page.md'}\n2 commands, 0 wrong\n")
        self.fails(page.replace(",no_such_module", ""), "page.md:6: false")

    def test_output_block(self):
        page = "```sh\ndtc-compile model.mlir\n```\n\nIt prints\n\n```output\n{}\n```\n"
        self.passes(page.format("compiled"), 1)
        self.fails(page.format("done"), "page.md:2: dtc-compile", "-done", "+compiled")
        self.fails("```output\nx\n```\n", "line 1: output takes no further words, and comes after a command")

    def test_comments_run(self):
        page = "<!-- run: echo hidden > file\necho more >> file -->\n\n```console\n$ cat file\nhidden\nmore\n```\n"
        self.passes(page, 3)
        self.fails(page.replace("more >>", "less >>"), "+less")

    def test_pages_that_cannot_be_understood(self):
        self.fails("```\n$ echo x\n```\n", "line 1: a block of commands that is not marked")
        self.fails("```\ndtc-compile model.mlir -o x\n```\n", "line 1: a block of commands that is not marked")
        self.fails("```sh fast\ntrue\n```\n", 'line 1: unknown "fast" in the info string')
        self.fails("```console\nx\n$ echo x\n```\n", "line 2: output before any command")
        self.fails("```console\n$ echo \\\n```\n", "line 2: the command ends with a backslash")
        self.fails("```sh\n```\n", "line 1: a sh block without a command")
        self.fails("```sh\ntrue\n", "line 1: the block has no end")
        self.fails("<!-- run: true\n", "line 1: the comment has no end")

    def test_commands_that_do_not_end(self):
        self.fails("```sh\nsleep 50\n```\n", "sleep 50", "no end after 1 seconds", flags=["--timeout", "1"])
        self.fails("```sh\nexit 0\n```\n", "exit 0", "it ended the shell")

    def test_missing_programs(self):
        self.fails(GOOD, "has no dtc-compile; build the tools", flags=["--bin", "/nowhere"])


if __name__ == "__main__":
    unittest.main()
