"""How lit finds and runs the tests of dtc."""

import os

import lit.formats

config.name = "dtc"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["CMakeLists.txt", "Inputs", "data", "lib"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.dtc_build_root, "test")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.dtc_build_root, "bin"), config.llvm_tools_dir, os.environ["PATH"]]
)
# Many small programs run at once: none of them may take all cores.
config.environment["OMP_NUM_THREADS"] = "1"
config.substitutions.append(("%examples", os.path.join(config.dtc_source_root, "examples")))
