#!/usr/bin/env python3
"""What scripts/package.sh packs runs in another folder, with nothing else but glibc: where the system allows it, in a root
of its own that has no other files. The dtc-run of the test is the one with the stand-in of CUDA, which has no MPI."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ["DTC_BUILD"]
GLIBC = ["libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0"]
# In $1 as root, with the /proc by which programs find their own folder.
IN_ROOT = 'mount --rbind /proc "$1/proc" && exec chroot "$@"'


def package(*arguments):
    return subprocess.run([os.path.join(ROOT, "scripts", "package.sh"), *arguments], capture_output=True, text=True)


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="package-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.build = os.path.join(cls.folder, "build")
        os.makedirs(os.path.join(cls.build, "bin"))
        for name, program in [("dtc-run", "dtc-run-on-standin"), ("dtc-plan", "dtc-plan")]:
            shutil.copy(os.path.join(BUILD, "bin", program), os.path.join(cls.build, "bin", name))
        archive = os.path.join(cls.folder, "package.tar.gz")
        cls.result = package("--build", cls.build, "--compiler", os.path.join(BUILD, "bin"), "--no-gpu-check",
                             "--output", archive)
        assert cls.result.returncode == 0, cls.result.stderr
        cls.root = os.path.join(cls.folder, "root")
        cls.unpacked = os.path.join(cls.root, "some folder")
        os.makedirs(cls.unpacked)
        subprocess.run(["tar", "xzf", archive, "-C", cls.unpacked, "--strip-components=1"], check=True)

    def run_unpacked(self, program, *arguments):
        """Runs it with an empty environment, in a root of its own where that is allowed."""
        unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c", IN_ROOT, "sh"]
        path = {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        os.makedirs(os.path.join(self.root, "proc"), exist_ok=True)
        libraries = os.path.join(self.root, "lib", "x86_64-linux-gnu")
        if not os.path.exists(libraries):
            os.makedirs(libraries)
            for name in GLIBC:
                shutil.copy(os.path.join("/lib/x86_64-linux-gnu", name), libraries)
            os.makedirs(os.path.join(self.root, "lib64"))
            shutil.copy("/lib64/ld-linux-x86-64.so.2", os.path.join(self.root, "lib64"))
        allowed = subprocess.run(unshare + ["/", "true"], env=path, capture_output=True).returncode == 0
        if allowed:
            command = unshare + [self.root, f"/some folder/bin/{program}"]
            arguments = [argument.replace(self.root, "") for argument in arguments]
        else:
            print("no root of its own is allowed here", file=sys.stderr)
            command, path = [os.path.join(self.unpacked, "bin", program)], {}
        return subprocess.run(command + list(arguments), env=path, capture_output=True, text=True)

    def test_trains(self):
        models = os.path.join(self.unpacked, "models")
        result = self.run_unpacked("dtc-run", f"{models}/mlp.plan", "--data", f"{models}/mlp.data.safetensors",
                                   "--steps", "100", "--lr", "1e-2", "--log-every", "100")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"step 100/100  loss 0\.[0-3]")

    def test_shows_plans(self):
        result = self.run_unpacked("dtc-plan", "show", os.path.join(self.unpacked, "models", "mlp.plan"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("model       mlp", result.stdout)

    def test_takes_its_own_libraries(self):
        for program in ["dtc-run", "dtc-plan"]:
            path = os.path.join(self.unpacked, "bin", program)
            for name, target in re.findall(r"(\S+) => (.+) \(0x", subprocess.check_output(["ldd", path], text=True)):
                if name not in GLIBC:
                    self.assertTrue(os.path.realpath(target).startswith(os.path.realpath(self.unpacked)), (name, target))

    def test_has_no_other_files(self):
        self.assertEqual(sorted(os.listdir(self.unpacked)), ["README.md", "bin", "lib", "licences", "models"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.unpacked, "bin"))), ["dtc-plan", "dtc-run"])
        self.assertFalse(glob.glob(os.path.join(self.unpacked, "lib", "libc.so*")))

    def test_says_which_glibc_it_needs(self):
        with open(os.path.join(self.unpacked, "README.md")) as file:
            self.assertRegex(file.read(), r"This needs glibc 2\.\d+ or newer")

    def test_has_licences(self):
        licences = os.listdir(os.path.join(self.unpacked, "licences"))
        for name in ["dtc", "libprotobuf32", "libdnnl2", "libstdc++6", "nlohmann-json3-dev", "GPL-3"]:
            self.assertIn(name, licences)

    def test_errors(self):
        cases = [
            (["--pack"], "'--pack' is none of --output"),
            (["--output"], "--output needs a value"),
            (["--output", "a", "--folder", "b"], "--output and --folder exclude each other"),
            (["--output", "a.zip"], "--output: 'a.zip' ends with neither .tar.gz nor .tar.xz"),
            (["--folder", self.folder], f"--folder: {self.folder} exists"),
            (["--build", self.root], f"--build: no {self.root}/bin/dtc-run"),
        ]
        for arguments, message in cases:
            result = package(*arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn("error: package.sh: " + message, result.stderr)

    def test_programs_with_mpi_are_refused(self):
        if "libmpi" not in subprocess.check_output(["ldd", os.path.join(BUILD, "bin", "dtc-run")], text=True):
            self.skipTest("built without MPI")
        result = package("--build", BUILD, "--no-gpu-check", "--output", os.path.join(self.folder, "mpi.tar.gz"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("-DDTC_MPI=OFF", result.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "mpi.tar.gz")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
