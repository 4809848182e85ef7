#!/usr/bin/env python3
"""Tests of dtc.compile() in several processes, which find each other as those of torchrun do, or over MPI.

    PYTHONPATH=BUILD/python python3 test/python/processes.py
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import training

import dtc

OPTIONS = {"mesh": "dp=2,tp=2", "zero": 1, "seed": 3, "threads": 1}
ROWS = ([1, 2, 3, 4], [0, 2, 2, 1], [4, 3, 2, 1])
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "plm", "isolated", "-n", "4")


def batch(rows):
    single = training.batch(rows)
    values = [each for row in single["features"].tolist() for each in row]
    return single | {"features": training.tensor("d", values, [len(rows), 6])}


def part(step, rows):
    """The samples that this process gives of a batch by parts."""
    count = len(rows) // step.processes
    return rows[step.process * count:(step.process + 1) * count]


def train(folder, given=lambda step, rows: rows, **options):
    """The losses of three steps and of what follows from the checkpoint after them. `given`: the rows that a process gives."""
    step = dtc.compile(folder / "mlp.mlir", optimizer=dtc.AdamW(lr=0.05), **OPTIONS, **options)
    losses = [step(batch(given(step, rows)))["loss"] for rows in ROWS]
    step.save(folder / "ckpt")
    losses.append(step(batch(given(step, ROWS[0])))["loss"])
    losses.append(step.evaluate(batch(given(step, ROWS[1]))))
    step.load(folder / "ckpt")
    losses.append(step(batch(given(step, ROWS[0])))["loss"])
    step.save_weights(folder / f"weights-{step.processes}.safetensors")
    return step, losses


def refused(call):
    """The error of a call, after which the session goes on."""
    try:
        call()
    except dtc.Error as error:
        return str(error)
    raise AssertionError("there was no error")


def give_parts(folder):
    """Trains on batches that each process has a part of, one after the other and several in a step."""
    step, losses = train(folder, part, batch="local")
    own = step.process
    errors = [refused(lambda: step(batch([1, 2] if own == 2 else [1]))),
              refused(lambda: step.evaluate(batch([1, 2, 3, 4]))),
              refused(lambda: dtc.compile(folder / "mlp.mlir", **OPTIONS, batch="local" if own == 1 else "global").state_dict())]
    rest = step.evaluate(batch(part(step, ROWS[0])))
    several = dtc.compile(folder / "mlp.mlir", **OPTIONS, accumulate=2, batch="local")
    losses.append(several([batch(part(several, rows)) for rows in ROWS[:2]])["loss"])
    losses.append(several(batch([row for rows in ROWS[:2] for row in part(several, rows)]))["loss"])
    (folder / f"{own}.json").write_text(json.dumps({"losses": [*losses, rest], "errors": errors}))


def run_as_one_of_several(folder, end):
    if end == "parts":
        return give_parts(folder)
    step, losses = train(folder)
    own = step.process
    errors = [refused(lambda: step(batch([own, 0, 0, 0]))),
              refused(lambda: step(batch([1, 2, 3, 4]), lr=0.5 if own == 3 else 0.1)),
              refused(lambda: step(batch([1, 2, 3] if own == 2 else [1, 2, 3, 4]))),
              refused(lambda: step.save_weights(folder / "x") if own == 0 else step(batch([1, 2, 3, 4]))),
              refused(lambda: step.save(folder / "mlp.mlir"))]
    losses.append(step.evaluate(batch(ROWS[0])))
    (folder / f"{own}.json").write_text(json.dumps({"losses": losses, "errors": errors}))
    if end == "lost" and own == 1:
        os._exit(9)
    if end == "raises" and own == 1:
        raise KeyError("not there")
    if end == "leaves" and own == 1:
        sys.exit(0)
    step(batch(ROWS[0]))


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # The model of the other tests, in f64.
        (self.folder / "mlp.mlir").write_text(training.MLP.read_text().replace("f32", "f64"))

    def start(self, end):
        """Runs this file in four processes; their statuses and what they have printed of errors."""
        return self.start_all([sys.executable, __file__, "--one-of-several", str(self.folder), end], 4)

    def start_all(self, command, count):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                    env=os.environ | {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1",
                                                      "MASTER_PORT": str(port)}) for rank in range(count)]
        errors = [each.communicate(timeout=100)[1] for each in running]
        return [each.returncode for each in running], errors

    def check(self):
        """Whether all processes have computed what one does, and have found what was not alike."""
        several = [json.loads((self.folder / f"{process}.json").read_text()) for process in range(4)]
        shutil.rmtree(self.folder / "ckpt")
        _, losses = train(self.folder)
        for each in several:
            self.assertEqual(each["losses"], several[0]["losses"])
            # The one whose error it is does not name itself.
            self.assertEqual(each["errors"], [text.removeprefix("process 2: ") if each is several[2] else text
                                              for text in several[0]["errors"]])
            for one, other in zip(losses, each["losses"]):
                self.assertAlmostEqual(one, other, delta=1e-12)
        self.assertEqual(losses[3], losses[5])
        self.assertEqual((self.folder / "weights-1.safetensors").stat().st_size,
                         (self.folder / "weights-4.safetensors").stat().st_size)
        for error, message in zip(several[0]["errors"], (
                'step: process 1 has another "features" than process 0',
                "step: process 3 has another learning rate than process 0",
                r'process 2: "features" of the batch is F64\[3, 6\], expected f64\[4,6\]',
                "process 0 calls save_weights, and process 1 calls step; all processes make the same calls",
                "mlp.mlir: is not a folder"), strict=True):
            self.assertRegex(error, message)

    def test_processes_compute_what_one_does(self):
        statuses, errors = self.start("well")
        self.assertEqual(statuses, [0] * 4, errors)
        self.check()

    def test_a_process_that_ends_ends_the_others(self):
        for end, message in (("lost", "process 1 .* was lost"), ("raises", "error: process 1 .*: KeyError: 'not there'"),
                             ("leaves", "process 0 calls step, and process 1 has come to the end of the program")):
            with self.subTest(end):
                shutil.rmtree(self.folder / "ckpt", ignore_errors=True)
                statuses, errors = self.start(end)
                self.assertNotIn(0, statuses)
                self.assertRegex("".join(errors), message)

    def check_parts(self):
        several = [json.loads((self.folder / f"{process}.json").read_text()) for process in range(4)]
        shutil.rmtree(self.folder / "ckpt")
        one, losses = train(self.folder)
        two = dtc.compile(self.folder / "mlp.mlir", **OPTIONS, accumulate=2)
        losses += [two([batch(rows) for rows in ROWS[:2]])["loss"] for _ in range(2)]
        losses.append(one.evaluate(batch(ROWS[0])))
        for process, each in enumerate(several):
            self.assertEqual(each["losses"], several[0]["losses"])
            for mine, other in zip(losses, each["losses"], strict=True):
                self.assertAlmostEqual(mine, other, delta=1e-12)
            for error, other, message in zip(each["errors"], several[0]["errors"], (
                    r'"features" of the batch is F64\[2, 6\], expected f64\[1,6\], the part of one of 4 processes of f64\[4,6\]',
                    r'"features" of the batch is F64\[4, 6\], expected f64\[1,6\], the part of one of 4 processes',
                    r"compile: process 1 has another kind of batch than process 0; give dtc\.compile\(\) the same arguments in all "
                    "processes"), strict=True):
                self.assertRegex(error, message)
                self.assertEqual(re.sub(r"^process \d: ", "", error), re.sub(r"^process \d: ", "", other), process)

    def test_processes_give_parts_of_a_batch(self):
        statuses, errors = self.start("parts")
        self.assertEqual(statuses, [0] * 4, errors)
        self.check_parts()

    @unittest.skipUnless(os.environ.get("DTC_HAS_MPI") and shutil.which("mpirun"), "built without MPI")
    def test_processes_of_mpirun(self):
        done = subprocess.run([*MPIRUN, sys.executable, __file__, "--one-of-several", str(self.folder), "well"], timeout=100,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check()

    @unittest.skipUnless(os.environ.get("DTC_HAS_MPI") and shutil.which("mpirun"), "built without MPI")
    def test_processes_of_mpirun_give_parts_of_a_batch(self):
        done = subprocess.run([*MPIRUN, sys.executable, __file__, "--one-of-several", str(self.folder), "parts"], timeout=100,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_parts()

    def test_processes_that_cannot_have_equal_parts(self):
        program = f"import dtc; dtc.compile({str(training.MLP)!r}, mesh='dp=4', batch='local').state_dict()"
        statuses, errors = self.start_all([sys.executable, "-c", program], 3)
        self.assertNotIn(0, statuses)
        self.assertIn('batch is "local", but the samples of "features" (f32[4,6]) cannot be divided among 3 processes',
                      "".join(errors))

    def test_what_launchers_have_to_say(self):
        program = f"import dtc; dtc.compile({str(training.MLP)!r}, mesh='dp=2').state_dict()"
        for variables, message in (
            ({"RANK": "1"}, "RANK is \"1\", but WORLD_SIZE is not set"),
            ({"RANK": "0", "WORLD_SIZE": "2"}, "WORLD_SIZE is 2, but MASTER_PORT is not set"),
            ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "x"}, 'MASTER_PORT is "x"; expected')):
            with self.subTest(message):
                done = subprocess.run([sys.executable, "-c", program], env=os.environ | variables, capture_output=True, text=True)
                self.assertEqual(done.returncode, 1)
                self.assertIn("dtc.errors.Error", done.stderr)
                self.assertRegex(done.stderr, message)

    def test_processes_choose_the_same_mesh(self):
        # The same program as in one process: a device for each process, or as many as it says.
        program = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import hashlib, json, processes, dtc
results = []
for options in ({{}}, {{"devices": 8}}):
    step = dtc.compile({str(self.folder / "mlp.mlir")!r}, optimizer=dtc.AdamW(lr=0.05), mesh="auto", threads=1, seed=3, **options)
    losses = [step(processes.batch(rows))["loss"] for rows in processes.ROWS]
    results.append([repr(step), hashlib.sha256(step.plan_bytes).hexdigest(), losses])
open(f"{self.folder}/searched-{{step.processes}}-{{step.process}}.json", "w").write(json.dumps(results))
"""
        statuses, errors = self.start_all([sys.executable, "-c", program], 2)
        self.assertEqual(statuses, [0, 0], errors)
        subprocess.run([sys.executable, "-c", program], check=True)
        first, second, alone = (json.loads((self.folder / f"searched-{name}.json").read_text()) for name in ("2-0", "2-1", "1-0"))
        self.assertEqual(first, second)
        self.assertEqual([each[0].split(", ")[1] for each in (*first, *alone)], ["2 devices", "8 devices", "1 devices", "8 devices"])
        self.assertEqual(first[1][1], alone[1][1])
        for _, _, losses in (*first, alone[1]):
            for one, several in zip(alone[0][2], losses, strict=True):
                self.assertAlmostEqual(one, several, delta=1e-12)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one-of-several"]:
        run_as_one_of_several(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        unittest.main()
