"""The skeleton of an op of the dtc dialect: an op of one float tensor, element by element.

It is a copy of `relu` under another name, in every place that speaks of `relu`: the op, its gradient,
the kernel of each backend, the tables of kernels, the tests and the documentation; and it has a constraint, with its
label. So it follows today's conventions, builds, and passes its tests from the start; what is to be
changed is marked TODO."""

import pathlib
import re

from scaffold.changes import Changes, ScaffoldError
from scaffold.names import check_name, pascal_case

MODEL = "relu"
DIALECT = "dialects/dtc"
TESTS = "test/dialects/dtc"
# Where kernels are listed, by name; below them are the tests that list kernels.
SOURCES = ("support", "plan", "simulator", "runtime", "test")
BACKENDS = "runtime/backends"  # a folder for each backend that has kernels

DEFINITION = """
def Dtc_{pascal}Op : Dtc_UnaryOp<"{name}"> {{
  let summary = "TODO: the formula";
  let description = [{{
    `F[s] -> F[s]`. TODO: the exact meaning, the gradient where it is not obvious, and the source of
    the formula. This skeleton computes max(x, 0), as `relu` does.

    ```mlir
    %y = dtc.{name} %x : tensor<4x8xf32>
    ```

    Constraints:

    - [{name}-c1] The operand has at most 16 dimensions. TODO: what must hold of the op, or nothing.
  }}];
  let hasVerifier = 1;
}}
"""

VERIFIER = """
// TODO: the constraints that the definition lists. Without any, leave this and `hasVerifier` out.
LogicalResult {pascal}Op::verify() {{
  if (getType().getRank() > 16)
    return violates(*this, "{name}-c1")
           << "operand has type " << getType() << ", expected at most 16 dimensions";
  return success();
}}
"""

INVALID_TEST = """
// -----

func.func @{name}_integers(%x: tensor<4xi32>) {{
  // expected-error@+1 {{{{'dtc.{name}' op operand #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got 'tensor<4xi32>'}}}}
  %0 = dtc.{name} %x : tensor<4xi32>
  return
}}

// -----

func.func @{name}_types(%x: tensor<4x8xf32>) {{
  // expected-error@+1 {{{{'dtc.{name}' op requires the same type for all operands and results}}}}
  %0 = "dtc.{name}"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf64>
  return
}}

// -----

func.func @{name}_rank(%x: tensor<{sizes}xf32>) {{
  // expected-error@+1 {{{{'dtc.{name}' op operand has type 'tensor<{sizes}xf32>', expected at most 16 dimensions [{name}-c1]}}}}
  %0 = dtc.{name} %x : tensor<{sizes}xf32>
  return
}}
"""

NEXT_STEPS = """\
The op computes what relu computes until you change what is marked TODO: the definition, the gradient, the constraint
and the kernels of the CPU and of GPUs. Then
  change the expected function in the test of the kernel, and the gradient in gradients.mlir;
  list the operands in which the op is linear, if there are any, in its definition.
"""


def renamed(text, name):
    """What speaks of the model op, of another one."""
    text = re.sub(rf"\b{pascal_case(MODEL)}(?=Op\b|\b)", pascal_case(name), text)
    return re.sub(rf"\b{MODEL}(?=_|\b)", name, text)


def files_below(root, folders, suffixes):
    """The files of folders that have one of the suffixes, in order, by their paths from the root."""
    return [str(path.relative_to(root)) for folder in folders for path in sorted((root / folder).rglob("*"))
            if path.suffix in suffixes]


def find_file(changes, paths, pattern, what):
    """The one file whose text has the pattern, and the match."""
    for path in paths:
        if match := re.search(pattern, changes.read(path), re.MULTILINE | re.DOTALL):
            return path, match
    raise ScaffoldError(f"found no {what}, from which the skeleton is copied")


def closing_brace(text, opening):
    """The position after the brace that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
    raise ScaffoldError("a brace is not closed")


def add_to_lists(text, name):
    """Adds the op to lists in C++ that have the model op: as a string among strings, with a copy of an
    entry {"relu", ...} or {.name = "relu", ...}, or after UNARY(relu)."""
    copies = []  # positions in the text with what comes there
    for match in re.finditer(rf'"{MODEL}"|\bUNARY\({MODEL}\)', text):
        begin, end = match.span()
        before = text[:begin].rstrip()
        field = re.search(r"{\s*\.name =$", before)
        if field or before.endswith("{") and not re.match(r'\s*(,\s*"|})', text[end:]):
            begin = field.start() if field else len(before) - 1
            end = closing_brace(text, begin)
        elif not before.endswith(("{", ",")):  # an argument of a call
            continue
        line_begin = text.rfind("\n", 0, begin) + 1
        alone = not text[line_begin:begin].strip() and text[end : end + 2] == ",\n"
        separator = ",\n" + text[line_begin:begin] if alone else ", "
        copy = renamed(text[begin:end], name)
        entries = list(re.finditer(r'{\s*\.name = "(\w+)"', text)) if field else []
        names = [entry[1] for entry in entries]
        if names == sorted(names):  # the order of the alphabet stays
            end = closing_brace(text, entries[-1].start()) if entries else end
            if later := next((entry for entry in entries if entry[1] > name), None):
                copies.append((later.start(), copy + separator))
                continue
        copies.append((end, separator + copy))
    for position, copy in reversed(sorted(copies)):
        text = text[:position] + copy + text[position:]
    return text


def add_kernels(changes, name, sources):
    """A kernel in each backend: a struct that computes one element."""
    for backend, task in (("cpu", "the function, and its cost"), ("cuda", "the function")):
        path, match = find_file(changes, [path for path in sources if path.startswith(f"{BACKENDS}/{backend}/")],
                                rf"^struct {pascal_case(MODEL)} {{\n.*?^}};\n", f"{backend} kernel of {MODEL}")
        copy = re.sub(r"\n *//[^\n]*", "", renamed(match[0], name))  # what is said of the model alone
        changes.insert(path, match, copy.replace("{\n", f"{{\n  // TODO: {task}.\n", 1))


def add_to_tests(changes, root, name):
    """Copies what the tests of the dialect say of the model op."""
    line = re.compile(rf"^ *//[^\n]*\n *%\w+ = (dtc\.{MODEL} [^\n]*\n)", re.MULTILINE)
    function = re.compile(rf"^// CHECK-LABEL: func\.func @{MODEL}_vjp\(.*?^}}\n", re.MULTILINE | re.DOTALL)
    for path in files_below(root, [TESTS], {".mlir"}):
        text = changes.read(path)
        if match := function.search(text):
            changes.insert(path, match, "\n" + renamed(match[0], name))
        elif path.endswith("-invalid.mlir"):
            if f"'dtc.{MODEL}'" in text:
                negative = INVALID_TEST.format(name=name, sizes="x".join("1" * 17))
                changes.replace(path, text.rstrip("\n") + "\n" + negative)
        elif match := line.search(text):
            copy = re.sub(rf"%\w+ = dtc\.{MODEL} ", f"%{name} = dtc.{name} ", match[0])
            changes.insert(path, match, renamed(copy, name))


def check_is_new(changes, root, name, sources):
    pascal = pascal_case(name)
    for path in files_below(root, [DIALECT], {".td"}):
        if re.search(rf'<"{name}"|\bdef Dtc_{pascal}Op\b', changes.read(path)):
            raise ScaffoldError(f"{path} has dtc.{name} or {pascal}Op already; choose another name")
    for path in sources:
        text = changes.read(path)
        if re.search(rf'{{"{name}",\s*prepare', text):
            raise ScaffoldError(f"{path} has a kernel {name} already; choose another name")
        if path.startswith("runtime/") and re.search(rf"\b(struct|class|using|enum class) {pascal}\b", text):
            raise ScaffoldError(f"{path} has a type {pascal} already, the name of the kernel; choose another name")


def new_op(root, name):
    """The changes that make an op."""
    check_name(name, "_", "soft_sign")
    root = pathlib.Path(root)
    changes = Changes(root)
    sources = files_below(root, SOURCES, {".cpp", ".h", ".cu"})
    check_is_new(changes, root, name, sources)
    pascal, model = pascal_case(name), pascal_case(MODEL)

    path, match = find_file(changes, files_below(root, [DIALECT], {".td"}), rf"^def Dtc_{model}Op\b.*?^}}\n", f"{model}Op")
    changes.insert(path, match, DEFINITION.format(name=name, pascal=pascal))
    path, match = find_file(changes, files_below(root, [DIALECT], {".cpp"}),
                            rf"^LogicalResult {model}Op::buildVjp\(.*?^}}\n", f"{model}Op::buildVjp")
    gradient = "\n// TODO: the gradient.\n" + renamed(match[0], name)
    changes.insert(path, match, gradient + VERIFIER.format(name=name, pascal=pascal))
    for path in sources:
        changes.replace(path, add_to_lists(changes.read(path), name))
    add_kernels(changes, name, sources)
    add_to_tests(changes, root, name)
    for path in files_below(root, ["docs"], {".md"}):  # rows of tables that list ops or kernels
        changes.replace(path, re.sub(rf"^(\|[^|\n]*`{MODEL}`)", rf"\1 `{name}`", changes.read(path), flags=re.MULTILINE))
    changes.format()
    return changes
