"""scripts/check-constraints: what it accepts and what it reports."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

DIALECT = """def Toy_Dialect : Dialect {
  let name = "toy";
  let description = [{
    Constraints:

    - [toy-c1] A name is a string.
  }];
}

def Toy_SideAttr : Toy_Attr<"Side", "side"> {
  let description = [{
    Constraints:

    - [side-c1] A side has a length.
  }];
}
"""
OPS = """def Toy_FoldOp : Toy_Op<"fold", [Pure]> {
  let description = [{
    Folds [fold-c9] nothing.

    Constraints:

    - [fold-c1] The operand is a tensor.
    - [fold-c2] The operand has
      at least one dimension.
  }];
}
"""
SOURCE = """// Not "fold-c7".
LogicalResult FoldOp::verify() {
  if (!isTensor())
    return violates(*this, "fold-c1") << "is no tensor";
  return check({"fold-c2", "side-c1"}, "toy-c1");
}
"""
HEADER = "/// emitOpError() of the helper itself.\ninline void violates() { op->emitOpError(); }\n"
TESTS = """// expected-error@+1 {{is no tensor [fold-c1]}}
toy.fold 1
// expected-error {{has no dimension [fold-c2]}}
// expected-error@-2 {{[side-c1]}}
// expected-error@+1 {{expected a string [toy-c1]}}
"""
FILES = {"dialects/toy/Toy.td": DIALECT, "dialects/toy/ToyOps.td": OPS, "dialects/toy/Toy.cpp": SOURCE,
         "dialects/dtc/Constraint.h": HEADER, "test/dialects/toy/invalid.mlir": TESTS}


class CheckConstraints(unittest.TestCase):
    def run_on(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, ROOT / "scripts/check-constraints", folder], capture_output=True,
                                  text=True)
            return done.returncode, done.stdout + done.stderr

    def expect(self, name, before, after, *problems):
        """With one replacement in a file, these lines are reported, and no others."""
        self.assertEqual(FILES[name].count(before), 1, before)
        code, text = self.run_on({**FILES, name: FILES[name].replace(before, after)})
        self.assertEqual((code, text.splitlines()), (1, list(problems)))

    def test_accepts_what_is_complete(self):
        self.assertEqual(self.run_on(FILES), (0, "4 constraints are documented, enforced and tested\n"))

    def test_the_tree(self):
        done = subprocess.run([sys.executable, ROOT / "scripts/check-constraints"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"^[1-9]\d\d constraints are")

    def test_no_description(self):
        self.expect("dialects/toy/ToyOps.td", "    - [fold-c2] The operand has\n      at least one dimension.\n", "",
                    "dialects/toy/Toy.cpp:5: [fold-c2]: no description in dialects/ has it")

    def test_no_verifier(self):
        self.expect("dialects/toy/Toy.cpp", '"fold-c2", ', "",
                    "dialects/toy/ToyOps.td:8: [fold-c2]: no verifier in dialects/ has it")
        # Code that is commented out enforces nothing.
        self.expect("dialects/toy/Toy.cpp", "  return check", "  // return check",
                    *(f"dialects/toy/{place}: [{label}]: no verifier in dialects/ has it" for place, label in (
                        ("ToyOps.td:8", "fold-c2"), ("Toy.td:14", "side-c1"), ("Toy.td:6", "toy-c1"))))

    def test_no_test(self):
        self.expect("test/dialects/toy/invalid.mlir", "dimension [fold-c2]", "dimension",
                    "dialects/toy/ToyOps.td:8: [fold-c2]: no expected-error in test/dialects/ ends with it")
        self.expect("test/dialects/toy/invalid.mlir", "expected-error {{has", "expected-note {{has",
                    "dialects/toy/ToyOps.td:8: [fold-c2]: no expected-error in test/dialects/ ends with it")

    def test_a_test_alone(self):
        self.expect("test/dialects/toy/invalid.mlir", "{{[side-c1]}}", "{{[side-c1]}}\n// expected-error {{[fold-c3]}}",
                    "test/dialects/toy/invalid.mlir:5: [fold-c3]: no description in dialects/ has it",
                    "test/dialects/toy/invalid.mlir:5: [fold-c3]: no verifier in dialects/ has it")

    def test_a_number_that_is_left_out(self):
        files = {name: text.replace("fold-c2", "fold-c4") for name, text in FILES.items()}
        self.assertEqual(self.run_on(files), (1, "[fold-c2] is left out, expected the numbers from 1 to 4\n"
                                                 "[fold-c3] is left out, expected the numbers from 1 to 4\n"))

    def test_a_label_that_is_there_twice(self):
        self.expect("dialects/toy/ToyOps.td", "- [fold-c2]", "- [fold-c1] Again.\n    - [fold-c2]",
                    "dialects/toy/ToyOps.td:8: [fold-c1] stands at dialects/toy/ToyOps.td:7 already")

    def test_a_label_of_another_op(self):
        files = {name: text.replace("fold-c2", "bend-c1") for name, text in FILES.items()}
        self.assertEqual(self.run_on(files), (1, "dialects/toy/ToyOps.td:8: [bend-c1] stands in Toy_FoldOp, expected a "
                                                 "label that begins with its mnemonic\n"))

    def test_an_error_without_a_label(self):
        message = ('dialects/toy/Toy.cpp:{}: an error without a label, expected violates(...) or inferenceError(...), or '
                   'before it "// No constraint:" and what it is about')
        for error in ('emitOpError("is bad")', 'op->emitOpError() << "is bad"', "emitOptionalError(location)",
                      'emitError() << "is bad"'):
            self.expect("dialects/toy/Toy.cpp", "  return check", f"  return {error};\n  return check", message.format(5))
            allowed = SOURCE.replace("  return check", f"  // No constraint: a trait.\n  return {error};\n  return check")
            self.assertEqual(self.run_on({**FILES, "dialects/toy/Toy.cpp": allowed})[0], 0, error)
        # A comment before a function is about all of it, and about no other.
        functions = "/// No constraint: a look-up.\nint f() {\n  emitError();\n  op->emitOpError();\n}\n"
        self.assertEqual(self.run_on({**FILES, "dialects/toy/More.cpp": functions})[0], 0)
        code, text = self.run_on({**FILES, "dialects/toy/More.cpp": functions + "int g() {\n  op->emitOpError();\n}\n"})
        self.assertEqual((code, text), (1, message.replace("Toy.cpp", "More.cpp").format(7) + "\n"))
        # The text of an attribute is no matter of constraints.
        parser = SOURCE.replace("  return check", "  return parser.emitError(location);\n  return check")
        self.assertEqual(self.run_on({**FILES, "dialects/toy/Toy.cpp": parser})[0], 0)

    def test_nothing(self):
        code, text = self.run_on({"dialects/toy/Toy.td": "", "test/dialects/toy/invalid.mlir": ""})
        self.assertEqual(code, 1)
        self.assertRegex(text, r"^found no label of a constraint below .*/dialects\n$")


if __name__ == "__main__":
    unittest.main()
