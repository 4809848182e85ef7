#!/usr/bin/env python3
"""What scripts/gpu-check.sh reports of programs that pass, fail, hang or are missing. The programs are small scripts that
stand in for those of a package."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "gpu-check.sh")
MODELS = ["mlp", "gpt2-tiny", "llama-tiny", "gpt2-tiny-bf16", "llama-tiny-bf16", "gpt2-tiny-devices", "llama-tiny-devices"]

# Lists a GPU, and writes the losses of steps; those of "cuda" are FACTOR times the others, and the norms of steps in graphs
# NORM times those of others. It prints the output of dtc-run for a model, and for a profile.
TRAINER = """#!/bin/sh
[ "$1" = devices ] && printf 'cpu: 2 threads\\ncuda 0: a GPU, 1 MiB\\n' && exit
while [ $# -gt 0 ]; do
  case "$1" in --device) device=$2 ;; --metrics) metrics=$2 ;; --steps) steps=$2 ;; --cuda-graphs) graphs=$2 ;; esac
  shift
done
echo 'gpt2: 1000000 parameters, 1 device, 1.5 GiB and 512.0 MiB of workspace each'
printf 'einsum  20  300.0  75.0%% 1\nadd  20  100.0  25.0%%\n'
norm=1
[ "$graphs" = on ] && norm=NORM
[ "$device" = cuda ] && factor=FACTOR || factor=1
[ -z "$metrics" ] || awk -v steps="$steps" -v factor="$factor" -v norm="$norm" 'BEGIN {
  for (i = 0; i < steps; ++i) printf "{\\"step\\":%d,\\"loss\\":%s,\\"grad_norm\\":%s,\\"step_seconds\\":%s," \
    "\\"tokens_per_second\\":%s}\\n", i, factor == "NaN" ? factor : sprintf("%.7g", (3 - i / 10) * factor), norm, \
    i < 2 ? 5 : 0.025, i < 2 ? 1 : 100000 + i }' >"$metrics"
"""


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gpu-check-")
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ["bin", "models"]:
            os.mkdir(os.path.join(self.folder, name))
        shutil.copy(SCRIPT, self.folder)
        for model in MODELS:
            self.write(f"models/{model}.plan", "")
        for data in ["mlp.data.safetensors", "gpt2-tiny.data.txt", "llama-tiny.data.txt"]:
            self.write(f"models/{data}", "")
        self.program("dtc-run", TRAINER.replace("FACTOR", "1.00001").replace("NORM", "1"))
        self.program("dtc-cuda-kernel-test", "#!/bin/sh\necho passed\n")
        self.program("GpuKernelBenchmark", "#!/bin/sh\necho 1 us\n")
        self.program("GpuProductBenchmark", "#!/bin/sh\necho 1 us for $4\n")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def program(self, name, text):
        self.write(f"bin/{name}", text)
        os.chmod(os.path.join(self.folder, "bin", name), 0o755)

    def start(self, *parts, **environment):
        # Without the toolkit's tools in PATH, whatever this machine has.
        return subprocess.Popen(["./gpu-check.sh", "results", *parts], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True,
                                env=dict(os.environ, **environment))

    def run_check(self, *parts, **environment):
        """The exit status, what was printed, and state and note of each part."""
        process = self.start(*parts, **environment)
        output, _ = process.communicate()
        return process.returncode, output, self.parts()

    def parts(self):
        with open(os.path.join(self.folder, "results", "gpu-check.json")) as file:
            return {part["name"]: (part["state"], part["note"]) for part in json.load(file)["parts"]}

    def test_all_parts_pass(self):
        status, output, parts = self.run_check()
        self.assertEqual(status, 0, output)
        for name in ["devices", "mlp", "gpt2", "llama", "gpt2-bf16", "llama-bf16", "graphs", "gpt2-devices",
                     "llama-devices", "kernels", "times"]:
            self.assertEqual(parts[name][0], "ok", (name, output))
        self.assertIn("20 steps, largest difference of losses 1e-05", parts["mlp"][1])
        self.assertIn("memcheck", parts)

    def test_without_cudnn(self):
        self.assertEqual(self.run_check("cudnn")[2]["cudnn"], ("left-out", "dtc-run finds no cuDNN"))

    def test_with_cudnn(self):
        self.program("dtc-run", TRAINER.replace("FACTOR", "1").replace("NORM", "1").replace(
            "a GPU, 1 MiB\\n", "a GPU, 1 MiB\\ncuDNN 9.19.0 (libcudnn.so.9)\\n"))
        _, output, parts = self.run_check("cudnn")
        self.assertEqual(parts["cudnn"][0], "ok", output)

    def test_layouts_over_nccl(self):
        self.write("models/gpt2-tiny-tp.plan", "")
        self.assertEqual(self.run_check("nccl-tp")[2]["nccl-tp"][0], "left-out")
        trainer = TRAINER.replace("FACTOR", "1").replace("NORM", "1")
        nccl = trainer.replace("a GPU, 1 MiB\\n", "a GPU, 1 MiB\\nNCCL 2.30.7\\n")
        self.assertNotEqual(nccl, trainer)
        self.program("dtc-run", nccl)
        _, output, parts = self.run_check("nccl-tp", "nccl-pp")
        self.assertEqual(parts["nccl-tp"][0], "ok", output)
        self.assertIn("allowed 0", parts["nccl-tp"][1])
        self.assertEqual(parts["nccl-pp"], ("left-out", "the package has no models/gpt2-tiny-pp.plan"))
        self.program("dtc-run", nccl.replace("2.30.7", "2.28.9"))
        self.assertIn("no NCCL 2.30 or newer", self.run_check("nccl-tp")[2]["nccl-tp"][1])
        # Other losses than one device's.
        self.program("dtc-run", nccl.replace("--device) device=$2 ;;",
                                             "--device) device=$2 ;; --share-gpu) metrics=$metrics share=1.01 ;;").replace(
            "factor=1 || factor=1", "factor=${share:-1} || factor=1"))
        _, output, parts = self.run_check("nccl-tp")
        self.assertEqual(parts["nccl-tp"][0], "failed", output)

    def test_other_losses_fail(self):
        self.program("dtc-run", TRAINER.replace("FACTOR", "1.01").replace("NORM", "1"))
        status, output, parts = self.run_check("mlp", "gpt2-bf16", "kernels")
        self.assertEqual(status, 1, output)
        self.assertEqual(parts["mlp"][0], "failed")
        self.assertIn("largest difference of losses 0.01 ", parts["mlp"][1])
        self.assertEqual(parts["gpt2-bf16"][0], "ok") # whose tolerance is larger
        self.assertEqual(parts["kernels"][0], "ok")   # what comes after runs

    def test_losses_that_are_no_numbers_fail(self):
        self.program("dtc-run", TRAINER.replace("FACTOR", "NaN").replace("NORM", "1"))
        self.assertEqual(self.run_check("mlp")[2]["mlp"][0], "failed")

    def test_graphs_with_other_bits_fail(self):
        self.program("dtc-run", TRAINER.replace("FACTOR", "1").replace("NORM", "1.0000001"))
        _, output, parts = self.run_check("graphs")
        self.assertEqual(parts["graphs"][0], "failed", output)
        self.assertIn("20 steps, 20 numbers differ", parts["graphs"][1])

    def test_speed(self):
        for name in ["gpt2-124m.plan", "llama-1b-8.plan", "speed.data.txt"]:
            self.write(f"models/{name}", "")
        self.write("models/llama-1b-8.prediction.txt", "  A step takes 1.0 s: 489,153 tokens/s, 489,153 a device\n")
        _, output, parts = self.run_check("speed-124m", "eager-124m", "outside-124m", "speed-llama-8", "speed-llama-16",
                                          "speed-1558m", DTC_GPU_TFLOPS="1")
        # The slow first steps do not count: 100,045 is the median of steps 30 to 59.
        self.assertIn("100044 tokens/s, MFU 626.5% of 1 TFLOP/s", parts["speed-124m"][1], output)
        self.assertEqual(parts["eager-124m"][0], "ok", output)
        # The median of steps 8 to 15.
        self.assertIn("100011 tokens/s", parts["speed-llama-8"][1], output)
        self.assertIn("(predicted for an H100: 489153 tokens/s)", parts["speed-llama-8"][1], output)
        self.assertEqual(parts["speed-llama-16"], ("left-out", "the package has no models/llama-1b-16.plan"))
        self.assertIn("a step takes 0.0250 s, its kernels 0.0200 s: 20.0% outside", parts["outside-124m"][1])
        self.assertEqual(parts["speed-1558m"], ("left-out", "the package has no models/gpt2-1558m.plan"))

    def test_memory_of_a_speed_run(self):
        for name in ["gpt2-124m.plan", "speed.data.txt"]:
            self.write(f"models/{name}", "")
        # The run takes 2,100 MiB beside the 100 MiB that other programs have, and ends after its memory was seen. It starts
        # before a slow nvidia-smi answers.
        self.program("dtc-run", TRAINER.replace("FACTOR", "1").replace("NORM", "1").replace(
            "norm=1\n", "norm=1\ntouch running; while [ ! -e seen ]; do sleep 0.01; done\n", 1))
        self.program("nvidia-smi", "#!/bin/sh\nsleep 0.2\n[ -e running ] && touch seen && echo 2200 || echo 100\n")
        _, output, parts = self.run_check("speed-124m", PATH=os.path.join(self.folder, "bin") + ":" + os.environ["PATH"])
        self.assertEqual(parts["speed-124m"][0], "ok", output)
        self.assertIn("; 2100 MiB taken, 2048 MiB stated", parts["speed-124m"][1])

    def test_products(self):
        self.assertEqual(self.run_check("products")[2]["products"][0], "left-out")
        for name in ["gpt2-124m", "llama-1b-8", "gpt2-1558m"]:
            self.write(f"models/{name}.plan", "")
        _, output, parts = self.run_check("products")
        self.assertEqual(parts["products"][0], "ok", output)
        self.assertIn("models/gpt2-124m.plan", parts["products"][1])

    def test_suites_under_a_sanitizer(self):
        self.program("dtc-cuda-kernel-test", "#!/bin/sh\nprintf 'Reduce.\\n  Rows\\nNorms/0.\\n  Rows\\nRotary.\\n  Rows\\n'\n")
        self.program("compute-sanitizer", """#!/bin/sh
case "$*" in *=Norms*) [ "$2" = racecheck ] && exec sleep 1000 ;; *=Rotary*) [ "$2" = synccheck ] && exit 1 ;; esac
exit 0
""")
        path = os.path.join(self.folder, "bin") + ":" + os.environ["PATH"]
        _, output, parts = self.run_check("memcheck", "synccheck", "racecheck", PATH=path, DTC_GPU_CHECK_SECONDS="40")
        self.assertEqual(parts["memcheck"], ("ok", "suites: 3 without an error, failed: none, not ended: none"), output)
        self.assertEqual(parts["synccheck"][0], "failed")
        self.assertIn("suites: 2 without an error, failed: Rotary, not ended: none", parts["synccheck"][1])
        self.assertEqual(parts["racecheck"], ("ok", "suites: 2 without an error, failed: none, not ended: Norms/0"))

    def test_simulates_what_was_measured(self):
        self.assertEqual(self.run_check("calibrate")[2]["calibrate"][0], "left-out")
        for name in ["gpt2-124m", "llama-1b-8", "gpt2-1558m"]:
            self.write(f"models/{name}.plan", "")
        self.program("dtc-plan", "#!/bin/sh\n[ \"$1 $3 $4\" = 'simulate --cluster results/calibrate.textproto' ] || "
                                 "[ \"${4##*/}\" = calibrate.textproto ] || exit 1\n"
                                 "echo '  A step takes 1.0 s: 489,153 tokens/s, 489,153 a device'\n")
        _, output, parts = self.run_check("calibrate")
        self.assertEqual(parts["calibrate"], ("ok", "predicted tokens/s of what was measured: gpt2-124m 489153, "
                                                    "llama-1b-8 489153, gpt2-1558m 489153"), output)

    def test_parts_that_are_named(self):
        status, output, parts = self.run_check("times", "gpt2")
        self.assertEqual(status, 0, output)
        self.assertEqual(list(parts), ["devices", "gpt2", "times"])

    def test_speed_is_that_of_its_part(self):
        for name in ["gpt2-124m.plan", "speed.data.txt"]:
            self.write(f"models/{name}", "")
        self.write("compare-torch.py", "print('1000 tokens/s')\n")
        _, output, parts = self.run_check("speed-124m", "eager-124m", "torch-124m")
        self.assertEqual(parts["torch-124m"], ("ok", "dtc 100044 tokens/s, PyTorch 1000: 100.04 times as fast"), output)
        self.assertEqual(self.run_check("torch-124m")[2]["torch-124m"][0], "ok") # with the speed of the run before
        self.write("compare-torch.py", "print('no PyTorch')\nexit(77)\n")
        self.assertEqual(self.run_check("torch-124m")[2]["torch-124m"], ("skipped", "no PyTorch"))

    def test_suites_run_alone_after_a_failure(self):
        self.program("dtc-cuda-kernel-test", """#!/bin/sh
case $1 in
  --gtest_list_tests) printf 'Add.\n  OfRows\nKinds/Norm.  # TypeParam = float\n  OfRows\n' ;;
  --gtest_filter=Add.*) echo 'an error' && exit 1 ;;
  --gtest_filter=*) exit 0 ;;
  *) echo 'all fail after the first' && exit 1 ;;
esac
""")
        _, output, parts = self.run_check("kernels")
        self.assertEqual(parts["kernels"], ("failed", "status 1; suites that fail alone: Add"), output)
        with open(os.path.join(self.folder, "results", "kernels-Add.log")) as file:
            self.assertEqual(file.read(), "an error\n")

    def test_libraries_of_python_packages(self):
        for name in ["python/nvidia/cu13/lib", "python/nvidia/cudnn/lib"]:
            os.makedirs(os.path.join(self.folder, name))
        self.program("dtc-run", """#!/bin/sh
echo 'cuda 0: a GPU, 1 MiB'
case "$DTC_CUDA_LIBRARIES" in */cu13/lib*) echo 'cuBLASLt 130100' ;; *) echo 'no cuBLASLt' ;; esac
case "$DTC_CUDA_LIBRARIES" in */cudnn/lib*) echo 'cuDNN 9.19.0' ;; esac
""")
        self.program("dtc-cuda-kernel-test", "#!/bin/sh\necho $DTC_CUDA_LIBRARIES\n")
        _, output, parts = self.run_check("cudnn", "own-attention", PYTHONPATH=os.path.join(self.folder, "python"))
        self.assertEqual(parts["devices"][0], "ok", output)
        self.assertIn("python/nvidia/cu13/lib", parts["own-attention"][1], output)
        self.assertEqual(parts["cudnn"][0], "failed") # cuDNN was found, and these programs train nothing

    def test_no_gpu(self):
        self.program("dtc-run", "#!/bin/sh\necho 'cuda: no NVIDIA driver'\n")
        status, output, parts = self.run_check()
        self.assertEqual(status, 77, output)
        self.assertEqual(list(parts), ["devices"])
        self.assertIn("no NVIDIA driver", output)

    def test_programs_that_do_not_start(self):
        self.program("dtc-run", "#!/bin/sh\necho 'no such library \"x\"'\nexit 127\n")
        status, output, parts = self.run_check()
        self.assertEqual(status, 1, output)
        self.assertEqual(parts, {"devices": ("failed", 'status 127; no such library "x"')})

    def test_what_the_package_lacks_is_left_out(self):
        os.remove(os.path.join(self.folder, "models", "gpt2-tiny.plan"))
        os.remove(os.path.join(self.folder, "bin", "GpuKernelBenchmark"))
        status, output, parts = self.run_check("gpt2", "times")
        self.assertEqual(status, 0, output)
        self.assertEqual(parts["gpt2"], ("left-out", "the package has no models/gpt2-tiny.plan"))
        self.assertEqual(parts["times"], ("left-out", "the package has no bin/GpuKernelBenchmark"))

    def test_no_time_is_left(self):
        self.program("dtc-cuda-kernel-test", "#!/bin/sh\nexec sleep 1000\n")
        _, output, parts = self.run_check("kernels", "times", DTC_GPU_CHECK_SECONDS="10")
        self.assertIn(parts["kernels"][0], ["stopped", "left-out"], output)
        self.assertEqual(parts["times"], ("left-out", "the 10 s of the check are over"))

    def test_a_wrong_time(self):
        process = self.start(DTC_GPU_CHECK_SECONDS="1.5")
        output, _ = process.communicate()
        self.assertEqual((process.returncode, output.strip()),
                         (2, "error: DTC_GPU_CHECK_SECONDS is '1.5', expected whole seconds, at least 1"))

    def test_stopped_while_a_part_runs(self):
        # The part says that it runs, then waits far longer than this test.
        self.program("dtc-cuda-kernel-test", "#!/bin/sh\necho $$ > runs.part\nmv runs.part runs\nexec sleep 1000\n")
        process = self.start("kernels", "cudnn")
        runs = os.path.join(self.folder, "runs")
        while not os.path.exists(runs):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        self.assertEqual(self.parts()["kernels"][0], "running") # as it is if the machine goes away
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate()
        self.assertEqual(process.returncode, -signal.SIGTERM, output)
        parts = self.parts()
        self.assertEqual(parts["kernels"], ("stopped", "the check got SIGTERM"))
        self.assertEqual(parts["cudnn"][0], "left-out")
        with open(runs) as file:
            child = int(file.read())
        with self.assertRaises(ProcessLookupError):
            while True: # until the kernel has ended it
                os.kill(child, 0)
                time.sleep(0.01)

    def test_wrong_arguments(self):
        for arguments, message in [(["--help"], "gpu-check.sh [FOLDER [PART...]]"),
                                   (["results", "mlp", "lama"], "error: there is no part 'lama'; there are: devices mlp ")]:
            process = subprocess.run(["./gpu-check.sh", *arguments], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(process.returncode, 2)
            self.assertIn(message, process.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
