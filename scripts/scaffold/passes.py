"""The skeleton of a pass."""

import os
import pathlib
import re

from scaffold.changes import Changes, ScaffoldError
from scaffold.names import check_name, file_header, pascal_case

PASSES = "compiler/passes"
TESTS = "test/compiler/passes"

DECLARATION = '''\
def {pascal}Pass : Pass<"dtc-{name}", "::mlir::ModuleOp"> {{
  let summary = "TODO: what the pass does, as an order";
  let description = [{{
    TODO: what a user has to know: what the pass changes, what it asks of its input and which pass provides it, and what
    holds after it. This skeleton erases ops without effects whose results nobody uses.

    ```mlir
    // Before
    func.func @loss(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %unused = dtc.neg %x : tensor<4xf32>
      %y = dtc.exp %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }}
    // After
    func.func @loss(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %y = dtc.exp %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }}
    ```
  }}];
}}

'''

SOURCE = '''\
{header}
#include "{declared}"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dtc {{
#define GEN_PASS_DEF_{upper}PASS
#include "{generated}"
}} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {{
struct {pascal}Pass : dtc::impl::{pascal}PassBase<{pascal}Pass> {{
  using Base::Base;

  void runOnOperation() override {{
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(rewrite(function)))
        return signalPassFailure();
  }}

private:
  // TODO: the work of the pass.
  LogicalResult rewrite(func::FuncOp function) {{
    if (function.isExternal())
      return function.emitOpError("has no body; dtc-{name} takes functions that have one");
    // Users come after what they use: backwards, what becomes unused is found too.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
    return success();
  }}
}};
}} // namespace
'''

TEST = '''\
// RUN: dtc-opt %s --dtc-{name} | FileCheck %s

// TODO: a function for each thing that the pass does, and for what it leaves alone.
// CHECK-LABEL: func.func @unused(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[Y:.*]] = dtc.exp %[[X]] : tensor<4xf32>
// CHECK-NEXT: return %[[Y]]
func.func @unused(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = dtc.neg %x : tensor<4xf32>
  %1 = dtc.abs %0 : tensor<4xf32>
  %2 = dtc.exp %x : tensor<4xf32>
  return %2 : tensor<4xf32>
}}
'''

INVALID_TEST = '''\
// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-{name}

// TODO: a case for each diagnostic of the pass.
// expected-error@+1 {{{{'func.func' op has no body; dtc-{name} takes functions that have one}}}}
func.func private @no_body(tensor<4xf32>) -> tensor<4xf32>
'''

NEXT_STEPS = """\
What remains is marked TODO. Then
  add the pass to the pipeline of the compiler, and to docs/architecture.md its line in the list and what holds after it;
  name in dependentDialects (its Passes.td) the dialects of ops that the pass creates.
"""


def folders(root):
    """The folders that passes may be in."""
    path = os.path.join(root, PASSES)
    return sorted(entry.name for entry in os.scandir(path) if entry.is_dir())


def declared_passes(root):
    """The paths of all Passes.td: that of each group, and the one that includes them."""
    return sorted(str(path.relative_to(root)) for path in pathlib.Path(root, PASSES).rglob("Passes.td"))


def headers(root, folder):
    """The header that declares the passes of a folder, and what mlir-tblgen makes for it."""
    own = f"{folder.capitalize()}Passes.h"
    if folder and os.path.exists(os.path.join(root, PASSES, folder, own)):
        return f"{PASSES}/{folder}/{own}", f"{PASSES}/{own}.inc"
    return f"{PASSES}/Passes.h", f"{PASSES}/Passes.h.inc"


def source_list(root, folder):
    """The CMakeLists.txt that lists the sources of a folder, and the folder as its paths name it."""
    if folder and os.path.exists(os.path.join(root, PASSES, folder, "CMakeLists.txt")):
        return f"{PASSES}/{folder}/CMakeLists.txt", ""
    return f"{PASSES}/CMakeLists.txt", f"{folder}/" if folder else ""


def add_source(changes, path, prefix, file):
    """Lists a source among those of its folder, in the order of the alphabet."""
    neighbours = list(re.finditer(rf"^( *){re.escape(prefix)}(\w+\.cpp)\b", changes.read(path), re.MULTILINE))
    if not neighbours:
        raise ScaffoldError(f"{path} lists no source of {prefix or 'its own folder'}; add one by hand first")
    line = f"{neighbours[0][1]}{prefix}{file}"
    later = next((entry for entry in neighbours if entry[2] > file), None)
    if later:
        changes.insert(path, later, line + "\n", after=False)
    else:
        changes.insert(path, neighbours[-1], "\n" + line)


def new_pass(root, name, folder=""):
    """The changes that make a pass; `folder` is that of its stage."""
    check_name(name, "-", "fold-casts")
    if name.startswith("dtc-"):
        raise ScaffoldError(f'leave out "dtc-" of "{name}"; the flag gets it')
    if folder and folder not in folders(root):
        raise ScaffoldError(f'{PASSES} has no folder "{folder}"; it has {", ".join(folders(root))}')
    changes = Changes(root)
    pascal = pascal_case(name)
    for path in declared_passes(root):
        if re.search(rf'"dtc-{name}"|\bdef {pascal}Pass\b', changes.read(path)):
            raise ScaffoldError(f"{path} has dtc-{name} or {pascal}Pass already; choose another name")
    # Names of files differ on every system, also where the same file may be named in other letters.
    for directory, _, files in os.walk(os.path.join(root, PASSES)):
        for file in files:
            if file.lower() == f"{pascal}.cpp".lower():
                raise ScaffoldError(f"{os.path.relpath(directory, root)}/{file} exists; choose another name")

    place = f"{folder}/" if folder else ""
    values = {"name": name, "pascal": pascal, "upper": pascal.upper()}
    values["header"] = file_header(f"{pascal}.cpp", "TODO: what it does")
    values["declared"], values["generated"] = headers(root, folder)
    declarations = f"{PASSES}/{place}Passes.td"
    changes.insert(declarations, re.search(r"^#endif // \w+_PASSES_TD\n", changes.read(declarations), re.MULTILINE),
                   DECLARATION.format(**values), after=False)
    changes.create(f"{PASSES}/{place}{pascal}.cpp", SOURCE.format(**values))
    add_source(changes, *source_list(root, folder), f"{pascal}.cpp")
    tests = f"{TESTS}/{place}"
    if not os.path.isdir(os.path.join(root, tests)):
        raise ScaffoldError(f"{tests} is not a folder; the tests of the pass belong there")
    changes.create(f"{tests}{name}.mlir", TEST.format(**values))
    changes.create(f"{tests}{name}-invalid.mlir", INVALID_TEST.format(**values))
    changes.format()
    return changes
