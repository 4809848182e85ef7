"""scripts/check-pass-examples: which examples it accepts, and what it reports of others.

DTC_BUILD in the environment is a build of the tree, whose dtc-opt runs the passes."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = "scripts/check-pass-examples"
FOLDED = """// Before
func.func @f(%w: tensor<8x6xf32> {dtc.param = "w"}) -> tensor<48xf32> {
  %0 = dtc.reshape %w : (tensor<8x6xf32>) -> tensor<48xf32>
  return %0 : tensor<48xf32>
}
// After
func.func @f(%parameter: tensor<48xf32> {dtc.param = "w", dtc.file_shape = array<i64: 8, 6>}) -> tensor<48xf32> {
  // After this comment, which is no marker, the module goes on.
  return %parameter : tensor<48xf32>
}
"""
SPLIT = """// dtc-opt --dtc-split-mesh-axes="shard=heads=tp"
// Before
dist.mesh @mesh <"tp"=4>
func.func @f(%w: tensor<2xf32> {dtc.param = "w", dtc.axes = ["heads"]},
             %x: tensor<4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp"} ]>}) {
  return
}
// After
dist.mesh @mesh <"tp.0"=2 of "tp", "tp.1"=2 of "tp">
func.func @f(%w: tensor<2xf32> {dtc.param = "w", dtc.axes = ["heads"]},
             %x: tensor<4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp.0", "tp.1"} ]>}) {
  return
}
"""
NARROW = """// Before
func.func @f(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = dtc.exp %x : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
// Error: 'dtc.exp' op computes on 16-bit floats, in which it loses too much;
//   convert its operand to f32 first
"""
PRINTED = """// Before
dist.mesh @mesh <"tp"=2>
func.func @f(%w: tensor<4xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{"tp"} ]>}) {
  return
}
// Prints
// @f on mesh tp=2: 2 devices
//
//   parameter  shape  sharding  local shape  bytes  padding
//   w          4xf32  [{"tp"} ]  2xf32        8
// parameters: 1 tensor, 4 elements, 8 bytes on each device
"""


def declaration(name, *examples):
    blocks = "".join(f"\n```mlir\n{example}```\n" for example in examples)
    text = "".join(f"    {line}".rstrip() + "\n" for line in f"What it does.\n{blocks}".splitlines())
    return f'def TestPass : Pass<"{name}", "::mlir::ModuleOp"> {{\n  let description = [{{\n{text}  }}];\n}}\n'


class CheckPassExamples(unittest.TestCase):
    def setUp(self):
        build = os.environ.get("DTC_BUILD")
        if not build:
            self.skipTest("DTC_BUILD is not set: no pass is run")
        self.bin = pathlib.Path(build) / "bin"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def run_script(self, *arguments):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def check(self, text):
        (self.root / "Passes.td").write_text(text)
        return self.run_script(ROOT / SCRIPT, self.bin, self.root / "Passes.td")

    def accepts(self, name, *examples):
        count = f"{len(examples)} examples of 1 passes are what the passes do\n"
        self.assertEqual(self.check(declaration(name, *examples)), (0, count))

    def refuses(self, name, example, *messages):
        code, text = self.check(declaration(name, example))
        self.assertEqual(code, 1, text)
        for message in messages:
            self.assertIn(message, text)

    def test_accepts_what_passes_do(self):
        # Whatever values are called and however attributes are ordered.
        self.accepts("dtc-fold-parameter-reshapes", FOLDED)
        self.accepts("dtc-split-mesh-axes", SPLIT, SPLIT)
        self.accepts("dtc-verify-precision", NARROW)
        self.accepts("dtc-print-shardings", PRINTED)

    def test_another_result(self):
        self.refuses("dtc-fold-parameter-reshapes", FOLDED.replace("8, 6", "6, 8"),
                     "Passes.td:6: dtc-fold-parameter-reshapes: the result of the pass and the description differ:\n",
                     "\n-  func.func @f(%arg0: tensor<48xf32> {dtc.file_shape = array<i64: 6, 8>",
                     "\n+  func.func @f(%arg0: tensor<48xf32> {dtc.file_shape = array<i64: 8, 6>")

    def test_every_example_is_checked(self):
        code, text = self.check(declaration("dtc-fold-parameter-reshapes", FOLDED, FOLDED.replace("8, 6", "6, 8")))
        self.assertEqual((code, text.count("differ:")), (1, 1), text)

    def test_a_description_without_an_example(self):
        self.refuses("dtc-canonicalize", "", "Passes.td:6: dtc-canonicalize: found no `// Before`")
        code, text = self.check(declaration("dtc-cse"))
        self.assertEqual(code, 1)
        self.assertIn("Passes.td:1: dtc-cse: the description has no example", text)
        code, text = self.check('def TestPass : Pass<"dtc-cse"> {\n  let summary = "Something";\n}\n')
        self.assertEqual(code, 1)
        self.assertIn("the description has no example", text)
        self.assertEqual(self.check("")[0], 1)

    def test_modules_that_are_not_valid(self):
        # Diagnostics name the lines of the file.
        self.refuses("dtc-fold-parameter-reshapes", FOLDED.replace("dtc.reshape", "dtc.reshap"),
                     "the module after `// Before` is not valid:\n", "Passes.td:8:12: error: ", "dtc.reshap")
        self.refuses("dtc-fold-parameter-reshapes", FOLDED.replace("return %parameter", "return %p"),
                     "the module after `// After` is not valid:\n", "use of undeclared SSA value name")

    def test_options(self):
        self.refuses("dtc-split-mesh-axes", SPLIT.partition("\n")[2], "-  dist.mesh @mesh <\"tp.0\"=2")
        self.refuses("dtc-split-mesh-axes", SPLIT.replace("split-mesh", "name-mesh"),
                     "expected dtc-opt with --dtc-split-mesh-axes")
        self.refuses("dtc-split-mesh-axes", SPLIT.replace("shard=heads", "size=heads"),
                     "dtc-opt --dtc-split-mesh-axes=size=heads=tp failed:\n", "no such option size")

    def test_an_example_that_shows_nothing(self):
        before = FOLDED.partition("// After\n")[0]
        self.refuses("cse", before + before.replace("Before", "After"), "dtc-opt --cse changes nothing here")

    def test_errors(self):
        self.refuses("dtc-verify-precision", NARROW.replace("first", "before"), "the errors of the pass and",
                     "\n-'dtc.exp' op computes", "convert its operand to f32 before\n+'dtc.exp'")
        wide = NARROW.replace("bf16", "f32")
        self.refuses("dtc-verify-precision", wide, "\n-'dtc.exp' op computes")
        self.refuses("dtc-verify-precision", NARROW + "// Error: another\n", "\n-another")
        self.refuses("dtc-verify-precision", NARROW.partition("// Error")[0] + "// After\nmodule {}\n",
                     "dtc-opt --dtc-verify-precision failed:\n", "Passes.td:8:12: error: 'dtc.exp' op computes")

    def test_printed_lines(self):
        self.refuses("dtc-print-shardings", PRINTED.replace("8 bytes", "9 bytes"), "the printed lines of the pass and",
                     "\n-parameters: 1 tensor, 4 elements, 9 bytes", "\n+parameters: 1 tensor, 4 elements, 8 bytes")

    def test_another_form(self):
        name = "dtc-fold-parameter-reshapes"
        self.refuses(name, "func.func private @f()\n" + FOLDED,
                     "Passes.td:6: ", "found no `// Before` in front of this")
        self.refuses(name, FOLDED.partition("// After")[0], "expected one of `// After`, `// Error:` and `// Prints`")
        self.refuses(name, FOLDED + "// Error: none\n", "expected one of `// After`, `// Error:` and `// Prints`")
        self.refuses(name, FOLDED + FOLDED, "Passes.td:16: ", "did not expect `// Before` here")
        self.refuses(name, FOLDED.replace("Before", "Error: none"), "did not expect `// Error:` here")
        self.refuses("dtc-verify-precision", NARROW + "func.func private @f()\n",
                     "expected a comment after `// Error:`")
        self.refuses("dtc-split-mesh-axes", SPLIT.replace("} ]", "}]"), "Passes.td:10: ", "write `} ]` in examples")

    def test_passes_without_a_declaration(self):
        # A copy of the script in a tree whose declarations have one pass.
        for folder in ("scripts", "compiler/passes/train", "compiler/passes/sharding"):
            (self.root / folder).mkdir(parents=True)
        shutil.copy(ROOT / SCRIPT, self.root / SCRIPT)
        path = self.root / "compiler/passes"
        (path / "Passes.td").write_text('include "compiler/passes/train/Passes.td"\n')
        (path / "train/Passes.td").write_text(declaration("dtc-fold-parameter-reshapes", FOLDED))
        (path / "sharding/Passes.td").write_text(declaration("dtc-split-mesh-axes", SPLIT))
        code, text = self.run_script(self.root / SCRIPT, self.bin)
        self.assertEqual(code, 1)
        self.assertIn("compiler/passes: declares no dtc-plan-memory, which dtc-opt has\n", text)
        self.assertNotIn("dtc-fold-parameter-reshapes", text)
        self.assertNotIn("dtc-split-mesh-axes", text)

    def test_needs_a_built_dtc_opt(self):
        done = subprocess.run([sys.executable, ROOT / SCRIPT, self.root], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"error: {self.root} has no dtc-opt; give the folder of the built tools\n")


if __name__ == "__main__":
    unittest.main()
