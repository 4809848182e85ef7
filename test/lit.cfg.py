"""How lit finds and runs the tests of dtc."""

import os
import shutil
import subprocess
import sys

import lit.formats

config.name = "dtc"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["CMakeLists.txt", "Inputs", "captures", "data", "lib"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.dtc_build_root, "test")

folders = [os.path.join(config.dtc_build_root, "bin"), config.llvm_tools_dir]
# A python3 that a version manager provides starts several programs before the interpreter, whose own start costs less than
# these.
python = subprocess.run(["python3", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True).stdout.strip()
if python and python != shutil.which("python3"):
    folders.append(os.path.dirname(python))
config.environment["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
# Many small programs run at once: none of them may take all cores.
config.environment["OMP_NUM_THREADS"] = "1"
# A note of dtc-run tells of the GPUs of the machine: tests print the same on all.
config.environment["CUDA_VISIBLE_DEVICES"] = ""
# Pages are opened in a browser where there is one.
browsers = ["chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"]
browser = next((path for path in map(shutil.which, browsers) if path), None)
if browser:
    config.available_features.add("browser")
    config.substitutions.append(("%browser", browser))
else:
    lit_config.note("no browser is installed (Debian's package is chromium): pages are not opened in one")
if shutil.which("valgrind"):
    config.available_features.add("valgrind")
else:
    lit_config.note("valgrind is not installed: uses of memory that was freed are not looked for")
if config.dtc_has_benchmarks:
    config.available_features.add("benchmarks")
if config.dtc_has_mpi:
    config.available_features.add("mpi")
# Hosts are made of network namespaces, where that is allowed.
tried = subprocess.run([sys.executable, os.path.join(config.dtc_source_root, "scripts", "cluster-check"), "possible"],
                       capture_output=True, text=True)
if tried.returncode == 0:
    config.available_features.add("hosts")
else:
    lit_config.note("several hosts are not tested: " + (tried.stdout + tried.stderr).strip())
# In containers tests run as root, which mpirun wants to be told, and without ssh.
config.environment["OMPI_MCA_plm"] = "isolated"
config.environment["OMPI_ALLOW_RUN_AS_ROOT"] = config.environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
config.substitutions.append(("%clusters", os.path.join(config.dtc_source_root, "examples", "clusters")))
config.substitutions.append(("%faults", os.path.join(config.test_exec_root, "FaultInjection.so")))
config.substitutions.append(("%scripts", os.path.join(config.dtc_source_root, "scripts")))
config.substitutions.append(("%bin", os.path.join(config.dtc_build_root, "bin")))
config.substitutions.append(("%examples", os.path.join(config.dtc_source_root, "examples")))
