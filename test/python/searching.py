#!/usr/bin/env python3
"""Tests of dtc.compile(mesh="auto"): the planner of dtc-compile, and its devices. Without PyTorch and numpy.

    PYTHONPATH=BUILD/python DTC_BIN=BUILD/bin python3 test/python/searching.py
"""

import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

from training import BIN, CAPTURES, MLP, batch, tensor, write_safetensors

import dtc
from dtc.progress import SearchProgress

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
VIRTUAL = EXAMPLES / "clusters" / "virtual-cpu.textproto"  # the cluster of a search that names none


class Searching(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def in_double(self, path):
        copy = self.folder / path.name
        copy.write_text(path.read_text().replace("f32", "f64"))
        return copy

    def dtc_compile(self, model, *flags):
        """What dtc-compile prints; it writes m.plan and m.strategy.textproto."""
        return subprocess.run([BIN / "dtc-compile", model, "-o", self.folder / "m.plan", *flags], check=True, capture_output=True,
                              text=True).stdout

    def test_a_searched_mesh_computes_what_one_device_does(self):
        mlp = [{"features": tensor("d", [(7 * row + 3 * column) % 11 / 4 - 1 for row in range(32) for column in range(16)], [32, 16]),
                "labels": tensor("i", [(row + shift) % 4 for row in range(32)], [32])} for shift in range(3)]
        tokens = [{name: tensor("i", [(each * shift + number) % 29 for number in range(elements)], shape)
                   for name, each in (("tokens", 5), ("labels", 7))} for shift in (1, 2, 3)
                  for shape, elements in [self.shape_of_tokens()]]
        images = [{"pixels": tensor("d", [(shift * i % 13 - 6) / 4 for i in range(4 * 3 * 24 * 19)], [4, 3, 24, 19]),
                   "labels": tensor("i", [shift % 5, 1, 4, 0], [4])} for shift in (2, 3, 5)]
        # The last one has batch norms that train.
        for path, batches, meshes in ((EXAMPLES / "mlp.mlir", mlp, ({}, {"set": {"dp": 2, "tp": 2}})),
                                      (CAPTURES / "resnet.mlir", images, ({}, {"set": {"dp": 4}})),
                                      (CAPTURES / "llama.mlir", tokens, ({}, {"zero": 3, "set": "tp=1"}))):
            path = self.in_double(path)
            one = dtc.compile(path, optimizer=dtc.AdamW(lr=0.05))
            losses = [one(each)["loss"] for each in batches]
            self.assertEqual(one.search, "")
            for options in meshes:
                with self.subTest(path.name, **options):
                    step = dtc.compile(path, optimizer=dtc.AdamW(lr=0.05), mesh="auto", devices=8, threads=1, **options)
                    self.assertIn("8 devices", repr(step))
                    for wanted, each in zip(losses, batches, strict=True):
                        self.assertAlmostEqual(step(each)["loss"], wanted, delta=1e-9 * abs(wanted))

    def test_batch_norms_take_neither_a_pipeline_nor_microbatches(self):
        step = dtc.compile(CAPTURES / "resnet.mlir", mesh="auto", devices=4)
        self.assertNotIn("pp=", step.search)
        self.assertNotIn("m=", step.search)
        self.assertIn("dp=4", step.search)
        for options in ({"set": {"pp": 2}}, {"microbatches": 2}):
            with self.assertRaisesRegex(dtc.Error, "the model mixes samples, as a batch norm does"):
                dtc.compile(CAPTURES / "resnet.mlir", mesh="auto", devices=4, **options)

    def test_ctrl_c_ends_a_search(self):
        def interrupt():
            time.sleep(0.01)  # the search goes on
            sent.append(time.process_time())
            os.kill(os.getpid(), signal.SIGINT)

        def report(*_):  # the first one says that the search is at work
            if not thread.ident:
                thread.start()
        sent = []
        thread = threading.Thread(target=interrupt)
        with mock.patch.object(SearchProgress, "__call__", side_effect=report):
            with self.assertRaises(KeyboardInterrupt):
                dtc.compile(CAPTURES / "llama.mlir", mesh="auto", devices=64)
        thread.join()
        seconds = time.process_time() - sent[0]
        self.assertLess(seconds, 5)  # of the CPU, which other work on the machine leaves as they are
        print(f"the search used {seconds:.2f} s of the CPU after Ctrl-C", file=sys.stderr)
        # The next one is not disturbed.
        self.assertIn("chosen", dtc.compile(MLP, mesh="auto", devices=2).search)

    def test_a_search_that_cannot_report_ends(self):
        with mock.patch.object(SearchProgress, "__call__", side_effect=RuntimeError("no terminal")) as report:
            with self.assertRaisesRegex(RuntimeError, "no terminal"):
                dtc.compile(MLP, mesh="auto", devices=2)
        report.assert_called_once()

    def test_progress_is_for_terminals(self):
        def written(is_terminal, bar=None):
            stream = io.StringIO()
            stream.isatty = lambda: is_terminal
            with mock.patch.object(sys, "stderr", stream), mock.patch.dict(sys.modules, {"tqdm": bar}), \
                    mock.patch("dtc.progress.BETWEEN", 0):
                step = dtc.compile(MLP, mesh="auto", devices=2)
            return stream.getvalue(), step.search
        self.assertEqual(written(False)[0], "")
        text, search = written(True)
        lines = text.split("\r")
        self.assertRegex(lines[1], r"^searching the mesh: \d+ probes and \d+ simulations of at most \d+")
        self.assertRegex(lines[-2], r", best step [\d.e+-]+ ms\x1b\[K$")
        self.assertEqual(lines[-1], "\x1b[K")
        probes = int(search.split(" from ")[1].split(" probes")[0])
        self.assertIn(f"{probes} probes and", lines[-2])

        bar = mock.MagicMock()
        self.assertEqual(written(True, types.SimpleNamespace(tqdm=lambda **_: bar))[0], "")
        self.assertGreaterEqual(bar.total, bar.n)
        self.assertGreaterEqual(bar.n, probes)
        bar.close.assert_called_once()

    def shape_of_tokens(self):
        text = dtc.compile(CAPTURES / "llama.mlir").inputs["tokens"]
        shape = [int(size) for size in text.removeprefix("i32[").removesuffix("]").split(",")]
        return shape, shape[0] * shape[1]

    def test_a_search_is_that_of_dtc_compile(self):
        model = EXAMPLES / "mlp.mlir"
        for arguments, flags in (
            ({"devices": 8}, ()),
            ({"devices": 4, "dtype": "bf16", "alternatives": 3}, ("--devices", "4", "--dtype", "bf16", "--alternatives", "3")),
            ({"devices": 8, "zero": 1, "set": {"pp": 2, "sequence_parallel": False}, "schedule": "gpipe"},
             ("--zero", "1", "--set", "pp=2,sequence_parallel=false", "--schedule", "gpipe")),
            ({"devices": 16, "cluster": EXAMPLES / "clusters" / "dgx-h100.textproto", "memory": "1GiB"},
             ("--devices", "16", "--cluster", str(EXAMPLES / "clusters" / "dgx-h100.textproto"), "--memory-limit", "1GiB")),
        ):
            with self.subTest(arguments):
                step = dtc.compile(model, mesh="auto", **arguments)
                printed = self.dtc_compile(model, *(() if "--cluster" in flags else ("--cluster", str(VIRTUAL))), *flags)
                self.assertEqual(step.plan_bytes, (self.folder / "m.plan").read_bytes())
                self.assertEqual(step.strategy, (self.folder / "m.strategy.textproto").read_text())
                self.assertEqual(step.search, printed[:printed.index("strategy written to")])

    def test_all_of_a_cluster(self):
        mixed = EXAMPLES / "clusters" / "mixed-a100-h100.textproto"
        step = dtc.compile(MLP, mesh="auto", cluster=str(mixed))
        self.assertIn(f'searched for 8 devices of the cluster "mixed-a100-h100" ({mixed})', str(step))
        # A mesh that is given is simulated there.
        step = dtc.compile(MLP, mesh="dp=2", devices=2, cluster=mixed)
        self.assertRegex(str(step), "mlp on 2 devices of mixed-a100-h100 .*\n  A step takes ")
        self.dtc_compile(EXAMPLES / "mlp.mlir", "--mesh", "dp=2", "--cluster", str(mixed))
        self.assertEqual(dtc.compile(EXAMPLES / "mlp.mlir", mesh="dp=2", cluster=mixed).plan_bytes,
                         (self.folder / "m.plan").read_bytes())

    def test_what_a_step_says_of_a_search(self):
        text = str(dtc.compile(CAPTURES / "llama.mlir", mesh="auto", devices=8, memory="80GiB", dtype="bf16", recompute="full", set="tp=1"))
        for part in ("searched for 8 virtual devices, each assumed to be a core of ", "chosen: ", " a step, ", " of 80.0 GiB a device",
                     "  chosen by the search: ", "microbatches=", "zero=", "  given: recompute=full", "memory", "sent a step"):
            self.assertIn(part, text)
        # Without the number of devices there is one for each process.
        self.assertIn("searched for 1 virtual device, ", str(dtc.compile(MLP, mesh="auto")))

    def test_memory_limits_a_search(self):
        path = CAPTURES / "llama.mlir"
        free = dtc.compile(path, mesh="auto", devices=8)
        self.assertNotIn(" of 24.0 KiB", free.search)
        less = dtc.compile(path, mesh="auto", devices=8, memory="24KiB")
        self.assertNotEqual(free.strategy, less.strategy)
        self.assertRegex(less.search, r"[0-9.]+ KiB of 24.0 KiB a device")
        with self.assertRaisesRegex(dtc.Error, r"(?s)no strategy fits: \d+ strategies were considered, a device has 1.0 KiB that a plan "
                                    r"may use\nthe closest is .*, which needs .* KiB a device: .* too much\nuse devices with "):
            dtc.compile(path, mesh="auto", devices=8, memory="1KiB")

    def test_a_searched_step_has_the_bits_of_dtc_run(self):
        step, again = (dtc.compile(MLP, mesh="auto", devices=8, seed=3) for _ in range(2))
        self.assertEqual(step.plan_bytes, again.plan_bytes)
        self.assertEqual(str(step), str(again))
        mine = [step(batch([2, 2, 2, 2]), lr=0.05)["loss"] for _ in range(3)]
        step.save_plan(self.folder / "m.plan")
        write_safetensors(self.folder / "samples.safetensors", batch([2, 2, 2, 2]))
        subprocess.run([BIN / "dtc-run", "m.plan", "--steps", "3", "--lr", "0.05", "--lr-schedule", "constant", "--warmup", "0",
                        "--metrics", "m.jsonl", "--data", "samples.safetensors", "--seed", "3"], cwd=self.folder, check=True,
                       capture_output=True)
        self.assertEqual(mine, [json.loads(line)["loss"] for line in (self.folder / "m.jsonl").read_text().splitlines()])


if __name__ == "__main__":
    unittest.main()
