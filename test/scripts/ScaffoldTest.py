"""Tests of scripts/new-pass and scripts/new-op, each in a copy of what they read and change.

With DTC_BUILD, a build of the tree, and LLVM_TOOLS, the folder of mlir-tblgen and FileCheck, in the
environment, what they make is compiled, and the tests of the new pass are run."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import compile_database  # noqa: E402
from scaffold import passes  # noqa: E402
from scaffold.changes import Changes, ScaffoldError  # noqa: E402

PASS_TESTS = passes.TESTS

class Skeleton(unittest.TestCase):
    copied = []  # what the script reads and changes, as far as it exists

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tree = self.folder / "tree"
        self.tree.mkdir()
        shutil.copy(ROOT / ".clang-format", self.tree)
        for name in self.copied:
            if (ROOT / name).exists():
                shutil.copytree(ROOT / name, self.tree / name, ignore=shutil.ignore_patterns("data", "images", "Inputs"))

    def texts(self):
        return {str(path.relative_to(self.tree)): path.read_bytes() for path in self.tree.rglob("*") if path.is_file()}

    def run_script(self, *arguments):
        command = [sys.executable, ROOT / "scripts" / arguments[0], *arguments[1:], "--root", self.tree]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def makes(self, *arguments):
        """Runs a script that has to succeed. Returns what is new and what has changed, by path."""
        before = self.texts()
        result = self.run_script(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        after = self.texts()
        changed = {path: text.decode() for path, text in after.items() if before.get(path) != text}
        for path in changed:  # it says what it did
            kind = "changed" if path in before else "new"
            self.assertRegex(result.stdout, rf"(?m)^  {kind} +{re.escape(path)}$")
        self.assertEqual(len(re.findall(r"(?m)^  (?:changed|new) ", result.stdout)), len(changed))
        return changed

    def refuses(self, error, *arguments):
        """Runs a script that has to end with this error, in one line, and to leave everything as it is."""
        before = self.texts()
        result = self.run_script(*arguments)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, rf"\Aerror: [^\n]*{error}[^\n]*\n\Z")
        self.assertEqual(self.texts(), before)

    # Compiling

    def tools(self):
        build, tools = os.environ.get("DTC_BUILD"), os.environ.get("LLVM_TOOLS")
        if not build or not tools:
            self.skipTest("DTC_BUILD and LLVM_TOOLS are not set: nothing is compiled")
        return pathlib.Path(build), pathlib.Path(tools)

    def tablegen(self, path, out, *flags):
        """Generates `out`, the path of an include, from a .td file of the changed tree."""
        build, tools = self.tools()
        target = self.folder / "generated" / out
        target.parent.mkdir(parents=True, exist_ok=True)
        includes = [f"-I{self.tree}", f"-I{ROOT}", f"-I{tools.parent / 'include'}"]
        # It looks into the folder in which it runs before all others.
        self.succeeds([tools / "mlir-tblgen", *flags, *includes, self.tree / path, "-o", target], cwd=self.tree)

    def compile(self, neighbour, source, *flags):
        """Compiles a source as the build compiles its neighbour, before whose includes those of the changed tree go."""
        build, _ = self.tools()
        entry = compile_database.read_entries(build).get(str(ROOT / neighbour))
        self.assertIsNotNone(entry, f"the build does not compile {neighbour}")
        words = shlex.split(entry["command"])
        compiler = next(i for i, word in enumerate(words) if not word.endswith("ccache"))
        command = [words[compiler], f"-I{self.folder / 'generated'}", f"-I{self.tree}"]
        skipped = False
        for word, following in zip(words[compiler + 1 :], words[compiler + 2 :] + [""]):
            if skipped:
                skipped = False
            elif word in ("-o", "-MF", "-MT", "-MQ") or (word == "-include" and "cmake_pch" in following):
                skipped = True  # precompiled headers have the definitions of before
            elif word not in ("-c", "-MD", "-MMD", "-Winvalid-pch", entry["file"]):
                command.append(word)
        self.succeeds([*command, *flags, source], cwd=entry["directory"])

    def succeeds(self, command, **settings):
        result = subprocess.run(command, capture_output=True, text=True, **settings)
        self.assertEqual(result.returncode, 0, f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")


class NewPass(Skeleton):
    copied = ["compiler/passes", PASS_TESTS]
    FILES = ["compiler/passes/precision/FoldCasts.cpp", f"{PASS_TESTS}/precision/fold-casts-invalid.mlir",
             f"{PASS_TESTS}/precision/fold-casts.mlir"]

    def test_makes_a_pass(self):
        changed = self.makes("new-pass", "fold-casts", "precision")
        declarations = changed.pop("compiler/passes/precision/Passes.td")
        self.assertIn('def FoldCastsPass : Pass<"dtc-fold-casts", "::mlir::ModuleOp"> {\n', declarations)
        self.assertRegex(declarations,
                         r"TODO: what the pass does(?s:.)* {4}```mlir\n {4}// Before\n(?s:.)* {4}// After\n")
        self.assertTrue(declarations.rstrip().endswith("// DTC_COMPILER_PASSES_PRECISION_PASSES_TD"))
        lists = [path for path in changed if path.endswith("CMakeLists.txt")]
        self.assertEqual(len(lists), 1)
        sources = re.findall(r"(?m)^ +(?:precision/)?(\w+\.cpp)$", changed.pop(lists[0]))
        position = sources.index("FoldCasts.cpp")
        self.assertEqual(sources[position + 1], "MixedPrecision.cpp")
        self.assertEqual(sorted(changed), self.FILES)
        source, invalid, test = (changed[path] for path in self.FILES)
        self.assertEqual(len(source.splitlines()[0]), 80)
        for text in ("//===- FoldCasts.cpp - ", "struct FoldCastsPass ",
                     "#define GEN_PASS_DEF_FOLDCASTSPASS\n"):
            self.assertIn(text, source)
        self.assertIn("--dtc-fold-casts | FileCheck %s\n", test)
        self.assertIn("--verify-diagnostics --dtc-fold-casts\n", invalid)

    def test_without_a_folder(self):
        changed = self.makes("new-pass", "fold-casts")
        self.assertIn("compiler/passes/FoldCasts.cpp", changed)
        self.assertIn("def FoldCastsPass : ", changed["compiler/passes/Passes.td"])
        self.assertIn(f"{PASS_TESTS}/fold-casts.mlir", changed)
        self.assertRegex(changed["compiler/passes/CMakeLists.txt"], r"(?m)^ +DeadOps\.cpp\n +FoldCasts\.cpp\n")

    def test_headers_are_those_of_the_folder(self):
        definition = re.compile(r'#define GEN_PASS_DEF_\w+\n#include "(\S+)"')
        for folder in passes.folders(self.tree):
            beside = {found[1] for path in (self.tree / "compiler/passes" / folder).glob("*.cpp")
                      if (found := definition.search(path.read_text()))}
            self.assertEqual(len(beside), 1, folder)
            (self.tree / PASS_TESTS / folder).mkdir(exist_ok=True)
            source = self.makes("new-pass", f"fold-{folder}", folder)[
                f"compiler/passes/{folder}/Fold{folder.capitalize()}.cpp"]
            self.assertEqual(definition.search(source)[1], beside.pop())
            declared = self.tree / re.search(r'#include "(compiler/passes/\S+)"', source)[1]
            self.assertIn(definition.search(source)[1], declared.read_text())

    def test_lists_of_single_folders(self):
        # A folder with a list of its own has its sources there.
        path = "compiler/passes/precision/CMakeLists.txt"
        (self.tree / path).write_text("add(none)\n")
        self.refuses("lists no source", "new-pass", "fold-casts", "precision")
        (self.tree / path).write_text("add(\n  A.cpp\n  Z.cpp)\n")
        changed = self.makes("new-pass", "fold-casts", "precision")
        self.assertEqual(changed[path], "add(\n  A.cpp\n  FoldCasts.cpp\n  Z.cpp)\n")
        self.assertNotIn("compiler/passes/CMakeLists.txt", changed)
        self.assertEqual(self.makes("new-pass", "zip-casts", "precision")[path],
                         "add(\n  A.cpp\n  FoldCasts.cpp\n  Z.cpp\n  ZipCasts.cpp)\n")

    def test_refuses_names(self):
        for name in ("FoldCasts", "fold_casts", "fold-", "2fold", "fold--casts", "fold casts", "fold/casts", "../fold"):
            self.refuses("is not lower-case words", "new-pass", name, "precision")
        self.refuses('leave out "dtc-"', "new-pass", "dtc-fold-casts", "precision")
        self.refuses('has no folder "speed"; it has collectives, ', "new-pass", "fold-casts", "speed")
        # Also where another folder declares it.
        for folder in ("exec", "precision"):
            self.refuses("exec/Passes.td has dtc-plan-memory or PlanMemoryPass already", "new-pass", "plan-memory", folder)
        self.refuses("sharding/Propagation.cpp exists", "new-pass", "propagation", "sharding")

    def test_never_overwrites(self):
        for path in self.FILES:
            (self.tree / path).write_text("mine\n")
            self.refuses(f"{path} exists", "new-pass", "fold-casts", "precision")
            (self.tree / path).unlink()
        self.makes("new-pass", "fold-casts", "precision")
        self.refuses("has dtc-fold-casts or FoldCastsPass already", "new-pass", "fold-casts", "precision")

    def test_takes_back_what_cannot_be_finished(self):
        before = self.texts()
        changes = Changes(self.tree)
        changes.create("compiler/passes/New.cpp", "new\n")
        changes.replace("compiler/passes/Passes.td", "changed\n")
        changes.create("nowhere/new.md", "new\n")
        with self.assertRaisesRegex(ScaffoldError, "nowhere/new.md: .*; nothing was changed"):
            changes.write()
        self.assertEqual(self.texts(), before)

    def test_compiles_and_passes_its_tests(self):
        build, tools = self.tools()
        self.makes("new-pass", "fold-casts", "precision")
        self.tablegen("compiler/passes/Passes.td", "compiler/passes/Passes.h.inc", "-gen-pass-decls", "-name=Dtc")
        # The pass as a plugin of dtc-opt, which was built without it.
        plugin = self.folder / "Plugin.cpp"
        plugin.write_text(f'#include "{self.FILES[0]}"\n'
                          '#include "mlir/Tools/Plugins/PassPlugin.h"\n'
                          'extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {\n'
                          '  return {MLIR_PLUGIN_API_VERSION, "FoldCasts", "", [] {\n'
                          '    mlir::PassRegistration<FoldCastsPass>();\n  }};\n}\n')
        library = self.folder / "plugin.so"
        self.compile("compiler/passes/precision/MixedPrecision.cpp", plugin, "-O0", "-fPIC", "-shared", "-Werror=all",
                     "-o", library)
        path = f"{build / 'bin'}:{tools}:{os.environ['PATH']}"
        for test in self.FILES[1:]:
            command = re.search(r"(?m)^// RUN: (.*)$", (self.tree / test).read_text())[1]
            command = command.replace("dtc-opt ", f"dtc-opt --load-pass-plugin={library} ").replace(
                " --dtc-fold-casts", " --pass-pipeline='builtin.module(dtc-fold-casts)'").replace(
                "%s", str(self.tree / test))
            self.succeeds(["bash", "-o", "pipefail", "-c", command], env={**os.environ, "PATH": path})
        # The example of its description.
        tool = self.folder / "dtc-opt"
        tool.write_text(f'#!/bin/bash\nexec {build}/bin/dtc-opt --load-pass-plugin={library} '
                        '"${@/#--dtc-fold-casts/--pass-pipeline=builtin.module(dtc-fold-casts)}"\n')
        tool.chmod(0o755)
        declaration = self.folder / "FoldCasts.td"
        declaration.write_text(re.search(r"(?ms)^def FoldCastsPass .*?^\}\n",
                                         (self.tree / "compiler/passes/precision/Passes.td").read_text())[0])
        self.succeeds([sys.executable, ROOT / "scripts/check-pass-examples", self.folder, declaration])


class NewOp(Skeleton):
    copied = ["dialects", "support", "plan", "simulator", "runtime", "docs", "test"]

    def test_makes_an_op(self):
        changed = self.makes("new-op", "soft_sign")
        self.assertIn('def Dtc_SoftSignOp : Dtc_UnaryOp<"soft_sign"> {\n', changed["dialects/dtc/DtcElementwiseOps.td"])
        self.assertIn("LogicalResult SoftSignOp::buildVjp(", changed["dialects/dtc/DtcElementwiseOps.cpp"])
        kernels = changed["runtime/backends/cpu/ElementwiseUnary.cpp"]
        self.assertIn("struct SoftSign {\n", kernels)
        self.assertIn('{"soft_sign", prepareUnary<SoftSign>}', kernels)
        kernels = changed["runtime/backends/cuda/ElementwiseUnary.cu"]
        self.assertRegex(kernels, r"struct SoftSign \{\n  // TODO: the function\.\n +template .* __device__ ")
        self.assertIn('{"soft_sign", prepareUnary<SoftSign>}', kernels)
        for path in ("kernels.mlir", "elementwise-ops.mlir", "sharding-rules.mlir"):
            self.assertEqual(changed[f"test/dialects/dtc/{path}"].count(" %soft_sign = dtc.soft_sign %x"), 1)
        gradients = changed["test/dialects/dtc/gradients.mlir"]
        self.assertIn("func.func @soft_sign_vjp(", gradients)
        self.assertIn("func.func @relu_vjp(", gradients)
        invalid = changed["test/dialects/dtc/elementwise-ops-invalid.mlir"]
        self.assertEqual(invalid.count("'dtc.soft_sign' op "), 3)
        self.assertEqual(1, sum("    UNARY(soft_sign),\n" in text for text in changed.values()))
        self.assertIn("`relu` `soft_sign` ", changed["docs/model-ir.md"])

    def test_its_constraint_is_complete(self):
        def check():
            done = subprocess.run([sys.executable, ROOT / "scripts/check-constraints", self.tree], capture_output=True,
                                  text=True)
            return done.returncode, re.findall(r"\d+ constraints|\[soft_sign-c1\]: .*", done.stdout)

        code, before = check()
        changed = self.makes("new-op", "soft_sign")
        self.assertEqual((code, check()), (0, (0, [f"{int(before[0].split()[0]) + 1} constraints"])))
        test = "test/dialects/dtc/elementwise-ops-invalid.mlir"
        (self.tree / test).write_text(changed[test].replace(" [soft_sign-c1]", ""))
        self.assertEqual(check(), (1, ["[soft_sign-c1]: no expected-error in test/dialects/ ends with it"]))

    def test_entries_with_names_of_fields(self):
        # Where these are in the order of the alphabet, they stay so.
        relu, new = ('    {.name = "%s", .inPlace = {{0, 0}}},\n' % name for name in ("relu", "soft_sign"))
        abs_, silu, sub = ('    {.name = "%s"},\n' % name for name in ("abs", "silu", "sub"))
        tables = {"Sorted": ([abs_, relu, silu, sub], [abs_, relu, silu, new, sub]),
                  "Last": ([abs_, relu, silu], [abs_, relu, silu, new]),
                  "Unsorted": ([silu, relu, abs_, sub], [silu, relu, new, abs_, sub])}
        text = "Kernel kernels[] = {{\n{}}};\n"
        for table, (before, _) in tables.items():
            (self.tree / f"runtime/{table}.cpp").write_text(text.format("".join(before)))
        changed = self.makes("new-op", "soft_sign")
        for table, (_, after) in tables.items():  # but for spaces, which clang-format chooses
            self.assertEqual(changed[f"runtime/{table}.cpp"].split(), text.format("".join(after)).split())
        after = [abs_, new.replace("soft_sign", "at_first"), relu, silu, new, sub]
        self.assertEqual(self.makes("new-op", "at_first")["runtime/Sorted.cpp"].split(),
                         text.format("".join(after)).split())

    def test_every_list_that_has_the_model_has_the_op(self):
        # But for calls of a function with the model as an argument.
        changed = self.makes("new-op", "soft_sign")
        for path in [*self.tree.rglob("*.cpp"), *self.tree.rglob("*.cu")]:
            text = path.read_text()
            listed = len(re.findall(r'(?<![(\s])\s*"relu"', text))
            self.assertEqual(text.count('"soft_sign"'), listed, path)
            self.assertEqual('"soft_sign"' in text, bool(listed) and str(path.relative_to(self.tree)) in changed)

    def test_nothing_else_changes(self):
        before = self.texts()
        for path, text in self.makes("new-op", "soft_sign").items():
            # The text without the new words and without spaces is the old text.
            def words(value):
                return re.findall(r"\w+", value)

            left = iter(words(text))
            for word in words(before[path].decode()):
                self.assertIn(word, left, path)

    def test_refuses_names(self):
        for name in ("SoftSign", "soft-sign", "_soft", "soft_", "2d", "soft__sign", "a b", "a/b"):
            self.refuses("is not lower-case words", "new-op", name)
        self.refuses("has dtc.relu or ReluOp already", "new-op", "relu")
        self.refuses("has dtc.einsum or EinsumOp already", "new-op", "einsum")
        self.refuses("has a kernel fill already", "new-op", "fill")
        self.refuses("has a type Kernel already", "new-op", "kernel")
        self.makes("new-op", "soft_sign")
        self.refuses("has dtc.soft_sign or SoftSignOp already", "new-op", "soft_sign")

    def test_needs_its_model(self):
        for file, old, new, missing in (
                ("dialects/dtc/DtcElementwiseOps.cpp", "ReluOp::buildVjp", "ReluOp::buildGradient", "ReluOp::buildVjp"),
                ("runtime/backends/cuda/ElementwiseUnary.cu", "struct Relu ", "struct Ramp ", "cuda kernel of relu"),
                ("runtime/backends/cpu/ElementwiseUnary.cpp", "struct Relu ", "struct Ramp ", "cpu kernel of relu")):
            path = self.tree / file
            text = path.read_text()
            path.write_text(text.replace(old, new))
            self.refuses(f"found no {missing}, from which the skeleton is copied", "new-op", "soft_sign")
            path.write_text(text)

    def test_both_backends_list_the_kernel(self):
        # The test CudaKernelList compares the list of the plans with that of the GPU's kernels.
        for path in ("plan/KernelTable.cpp", "runtime/backends/cpu/ElementwiseUnary.cpp",
                     "runtime/backends/cuda/ElementwiseUnary.cu"):
            self.assertNotIn('"soft_sign"', (self.tree / path).read_text())
        changed = self.makes("new-op", "soft_sign")
        for path in ("plan/KernelTable.cpp", "runtime/backends/cpu/ElementwiseUnary.cpp",
                     "runtime/backends/cuda/ElementwiseUnary.cu"):
            self.assertEqual(changed[path].count('"soft_sign"'), 1, path)

    def test_compiles(self):
        self.tools()
        changed = self.makes("new-op", "soft_sign")
        for kind in ("decls", "defs"):
            out = f"dialects/dtc/DtcOps.{'h' if kind == 'decls' else 'cpp'}.inc"
            self.tablegen("dialects/dtc/DtcOps.td", out, f"-gen-op-{kind}", "-dialect=dtc")
            self.assertTrue("SoftSignOp" in (self.folder / "generated" / out).read_text(), out)
        sources = [path for path in changed
                   if path.endswith((".cpp", ".cu")) and path.startswith(("dialects/", "plan/", "simulator/", "runtime/"))]
        self.assertGreaterEqual(len(sources), 2)
        self.assertIn("runtime/backends/cuda/ElementwiseUnary.cu", sources)
        for path in sources:  # .cu files as the stand-in of CUDA compiles them
            self.compile(path, self.tree / path, "-fsyntax-only", *(["-x", "c++"] if path.endswith(".cu") else []))


if __name__ == "__main__":
    unittest.main()
