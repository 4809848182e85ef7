#!/usr/bin/env python3
"""Tests of dtc.compile() and its steps, without PyTorch and numpy: a recorded capture, and arrays of the buffer protocol.

    PYTHONPATH=BUILD/python DTC_BIN=BUILD/bin python3 test/python/training.py
"""

import array
import contextlib
import io
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.request

import dtc

CAPTURES = pathlib.Path(__file__).resolve().parents[1] / "compiler" / "import" / "torch" / "captures"
MLP = CAPTURES / "mlp.mlir"  # features f32[4, 6], labels i32[4] of 5 classes
BIN = pathlib.Path(os.environ.get("DTC_BIN", "."))


def tensor(code, elements, shape):
    return memoryview(array.array(code, elements)).cast("B").cast(code, shape)


def batch(rows):
    """A batch of the rows of a table, which differ."""
    features = [((7 * row + 3 * column) % 11 - 5) / 4 for row in rows for column in range(6)]
    return {"features": tensor("f", features, [len(rows), 6]), "labels": tensor("i", [row % 5 for row in rows], [len(rows)])}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, each in sorted(tensors.items()):
        kind = {"f": "F32", "i": "I32"}[each.format]
        header[name] = {"dtype": kind, "shape": list(each.shape), "data_offsets": [len(data), len(data) + each.nbytes]}
        data += each.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def values(step):
    return {name: memoryview(each).tobytes() for name, each in step.state_dict().items()}


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_metrics_go_to_files_and_to_an_address(self):
        path, folder = self.folder / "m.jsonl", self.folder / "board"
        path.write_text('{"step": 1, "loss": 7.0}\n')  # of a run before
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        step = dtc.compile(MLP, metrics=path, tensorboard=str(folder), metrics_port=port)
        losses = [step(batch([1, 2, 3, 4]))["loss"] for _ in range(3)]
        written = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([each["step"] for each in written], [1, 2, 3])
        for one, other in zip((each["loss"] for each in written), losses, strict=True):
            self.assertAlmostEqual(one, other, places=5)
        self.assertEqual(len(list(folder.iterdir())), 1)
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        self.assertRegex(page, r'dtc_loss\{model="mlp"\} ')

    def test_metrics_that_cannot_be_written_are_an_error(self):
        (self.folder / "file").write_text("")
        for options, text in (({"metrics": self.folder / "no" / "m.jsonl"}, "no/m.jsonl: "),
                              ({"tensorboard": self.folder / "file"}, "^tensorboard: .*file"),
                              ({"metrics_port": "nowhere:x"}, "^metrics_port: ")):
            with self.subTest(options), self.assertRaisesRegex(dtc.Error, text):
                dtc.compile(MLP, **options)(batch([1, 2, 3, 4]))
        for options, text in (({"metrics": 3}, "metrics is 3, expected the path of a file"),
                              ({"tensorboard": ""}, "tensorboard is '', expected the path of a folder"),
                              ({"metrics_port": 1.5}, "metrics_port is 1.5, expected a port")):
            with self.subTest(options), self.assertRaisesRegex(dtc.Error, text):
                dtc.compile(MLP, **options)

    def test_train_takes_the_steps_of_a_loop(self):
        batches = [batch([row, 2, 3, 4]) for row in range(5)]
        one, other = dtc.compile(MLP), dtc.compile(MLP)
        expected = [one(each)["loss"] for each in batches]
        seen = []
        last = other.train(iter(batches), callback=lambda metrics: seen.append(metrics["loss"]), save=self.folder / "ckpt")
        self.assertEqual(seen, expected)
        self.assertEqual((last["step"], last["loss"]), (5, expected[-1]))
        self.assertEqual(dtc.compile(MLP, init=self.folder / "ckpt").train([]), {})
        self.assertEqual(other.train(batches, steps=2)["step"], 7)
        self.assertEqual(other.train(batches, callback=lambda metrics: metrics["step"] < 9)["step"], 9)
        self.assertEqual(other.train(batches, steps=0), {})
        for options, text in (({"steps": -1}, "steps is -1, expected a whole number of at least 0"),
                              ({"callback": 3}, "callback is a int, expected a function of the metrics of a step")):
            with self.subTest(options), self.assertRaisesRegex(dtc.Error, text):
                other.train(batches, **options)

    def test_an_interrupt_saves_what_was_trained(self):
        def interrupt(metrics):
            if metrics["step"] == 2:
                os.kill(os.getpid(), signal.SIGINT)
        step, other = dtc.compile(MLP), dtc.compile(MLP)
        with self.assertRaises(KeyboardInterrupt):
            step.train([batch([1, 2, 3, 4])] * 5, callback=interrupt, save=self.folder)
        self.assertIn(step.steps_done, (2, 3))
        other.load(self.folder)
        self.assertEqual(other.steps_done, step.steps_done)
        self.assertEqual(values(other), values(step))

    def test_a_terminal_shows_the_steps(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True
        for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
            with contextlib.redirect_stderr(stream):
                dtc.compile(MLP).train([batch([1, 2, 3, 4])] * 2)
            self.assertEqual("loss " in stream.getvalue(), shown, stream.getvalue())

    def run_plan(self, step, rows, steps, *flags, lr="0.05"):
        """The metrics of dtc-run on the plan of a step, with samples of these rows."""
        step.save_plan(self.folder / "m.plan")
        write_safetensors(self.folder / "samples.safetensors", batch(rows))
        subprocess.run([BIN / "dtc-run", "m.plan", "--steps", str(steps), "--lr", lr, "--lr-schedule", "constant", "--warmup",
                        "0", "--metrics", "m.jsonl", "--data", "samples.safetensors", *flags], cwd=self.folder, check=True,
                       capture_output=True)
        return [json.loads(line) for line in (self.folder / "m.jsonl").read_text().splitlines()]

    def test_steps_have_the_bits_of_dtc_run(self):
        for options in ({"mesh": {"dp": 2, "tp": 2}, "zero": 1}, {"mesh": "pp=2", "microbatches": 2, "dtype": "bf16"}):
            with self.subTest(options):
                step = dtc.compile(MLP, optimizer=dtc.AdamW(lr=0.05, weight_decay=0.01), seed=3, **options)
                self.assertIn("lower bound", str(step))
                self.assertIn("one after the other", step.explain())
                self.assertEqual(step.steps_done, 0)
                mine = [step(batch([2, 2, 2, 2])) for _ in range(3)]
                metrics = self.run_plan(step, [2, 2, 2, 2], 3, "--seed", "3", "--save", "after.safetensors")
                self.assertEqual(step.plan_bytes, (self.folder / "m.plan").read_bytes())
                for name in ("step", "loss", "grad_norm", "lr", "skipped_steps"):
                    self.assertEqual([each[name] for each in mine], [each[name] for each in metrics])
                self.assertLess(mine[2]["loss"], mine[0]["loss"])
                step.save_weights(self.folder / "mine.safetensors")
                self.assertEqual((self.folder / "mine.safetensors").read_bytes(),
                                 (self.folder / "after.safetensors").read_bytes())

    def test_samples_of_a_batch_are_in_their_order(self):
        # Of an evaluation dtc-run takes samples in their order, so that the bits of the losses are the same.
        step = dtc.compile(MLP, mesh="dp=2", seed=3)
        metrics = self.run_plan(step, [1, 2, 3, 4], 1, "--eval-data", "samples.safetensors", "--seed", "3", "--eval-every", "1",
                                lr="0")
        self.assertEqual(step.evaluate(batch([1, 2, 3, 4])), metrics[0]["eval_loss"])

    def test_batches_of_a_step(self):
        step, parts = (dtc.compile(MLP, mesh="dp=2", optimizer=dtc.AdamW(lr=0.05), accumulate=2, seed=3) for _ in range(2))
        mine = [step(batch([2] * 8)) for _ in range(3)]
        self.assertEqual(mine[-1]["loss"], [parts([batch([2] * 4)] * 2) for _ in range(3)][-1]["loss"])
        metrics = self.run_plan(step, [2] * 8, 3, "--accumulate", "2", "--seed", "3")
        self.assertEqual([each["loss"] for each in mine], [each["loss"] for each in metrics])
        # A batch of different samples is the sum over its parts.
        one = dtc.compile(MLP, seed=3)
        losses = [one.evaluate(batch(rows)) for rows in ([0, 1, 2, 3], [4, 4, 1, 0])]
        step = dtc.compile(MLP, seed=3, accumulate=2)
        self.assertAlmostEqual(step(batch([0, 1, 2, 3, 4, 4, 1, 0]))["loss"], sum(losses) / 2, delta=1e-6)

    def test_devices_compute_what_one_does(self):
        losses = []
        for mesh in (None, "dp=2,tp=2"):
            step = dtc.compile(MLP, mesh=mesh, optimizer=dtc.SGD(lr=lambda number: 0.1 / number, momentum=0.5))
            losses.append([step(batch([number, 2, 3, 4]))["loss"] for number in range(3)])
        for one, several in zip(*losses, strict=True):
            self.assertAlmostEqual(one, several, delta=1e-6)

    def test_weights_go_in_and_out(self):
        step = dtc.compile(MLP, seed=1)
        before = step.state_dict()
        other = dtc.compile(MLP, init=before, seed=2, mesh="tp=2")
        self.assertEqual(values(other), values(step))
        step.save_weights(self.folder / "weights.safetensors")
        self.assertEqual(values(dtc.compile(MLP, init=self.folder / "weights.safetensors")), values(step))
        step(batch([1, 2, 3, 4]))
        self.assertNotEqual(values(other), values(step))
        step.load_state_dict(before)
        self.assertEqual(values(other), values(step))
        short = {name: each for name, each in before.items() if name != "head.bias"}
        with self.assertRaisesRegex(dtc.Error, r'the state_dict: has no tensor "head.bias" \(expected f32\[5\]\)'):
            step.load_state_dict(short)

    def test_checkpoints(self):
        step = dtc.compile(MLP, optimizer=dtc.AdamW(lr=0.05))
        for _ in range(2):
            step(batch([2, 2, 2, 2]))
        self.assertEqual(pathlib.Path(step.save(self.folder / "ckpt")).name, "step-0000002")
        third = step(batch([2, 2, 2, 2]))
        for init in ({}, {"init": self.folder / "ckpt"}):
            again = dtc.compile(MLP, optimizer=dtc.AdamW(lr=0.05), mesh="tp=2", **init)
            if not init:
                again.load(self.folder / "ckpt")
            metrics = again(batch([2, 2, 2, 2]))
            self.assertEqual(metrics["step"], 3)
            self.assertAlmostEqual(metrics["loss"], third["loss"], delta=1e-6)
        metrics = self.run_plan(step, [2, 2, 2, 2], 3, "--checkpoint", "ckpt", "--resume", "--allow-change", "data")
        self.assertEqual(metrics[-1]["loss"], third["loss"])
        with self.assertRaisesRegex(dtc.Error, "ckpt: has checkpoints of another run, the last after step 3; load one"):
            step = dtc.compile(MLP)
            step.save(self.folder / "ckpt")
        with self.assertRaisesRegex(dtc.Error, "the optimizer of .* was adamw .*, and is sgd .*--allow-change optimizer"):
            dtc.compile(MLP, optimizer=dtc.SGD()).load(self.folder / "ckpt")
        with self.assertRaisesRegex(dtc.Error, "nowhere: has no checkpoint"):
            step.load(self.folder / "nowhere")

    def test_wrong_options(self):
        for options, message in (
            ({"zero": 7}, 'zero is "7", expected 0 to 3'),
            ({"zeroo": 1}, 'there is no option "zeroo"; did you mean "zero"\\?'),
            ({"mesh": "dp"}, 'mesh is "dp", expected axis=size'),
            ({"dtype": "f8"}, 'dtype is "f8", expected one of f32, bf16, f16, fp8'),
            ({"mesh": "tp=0"}, 'mesh is "tp=0", expected axis=size'),
            ({"memory": "1KiB"}, "(?s)captured_models.py:26:0: error: the plan needs .*, more than the limit of 1.0 KiB; .*"
                                 "\nnote: 576 B of that: parameter .*cannot compile .*mlp.mlir"),
            ({"recompute": "auto"}, 'recompute is "auto", which needs a memory'),
            ({"sequence_parallel": True}, "no axis \"tp\""),
            ({"zero": object()}, "zero is a object, expected"),
            ({"clip": 1}, "clip is not an option of dtc.compile"),
            ({"optimizer": "adamw"}, "optimizer is a str, expected dtc.AdamW"),
            ({"optimizer": dtc.AdamW(betas=(1, 2))}, 'beta1 is "1", expected'),
        ):
            with self.subTest(options), self.assertRaisesRegex(dtc.Error, message):
                dtc.compile(MLP, **options)
        with self.assertWarnsRegex(UserWarning, "'features': dimension 0 .* of size 4 has 3 shards"):
            dtc.compile(MLP, mesh="dp=3")
        with self.assertRaisesRegex(dtc.Error, "no.mlir: cannot be read"):
            dtc.compile("no.mlir")
        (self.folder / "bad.mlir").write_text("func.func @loss(")
        with self.assertRaisesRegex(dtc.Error, "bad.mlir:1:.*error: "):
            dtc.compile(self.folder / "bad.mlir")
        with self.assertRaisesRegex(dtc.Error, "model is a int, expected a torch.nn.Module"):
            dtc.compile(3)

    def test_wrong_batches(self):
        step = dtc.compile(MLP)
        good = batch([1, 2, 3, 4])
        for change, message in (
            ({"labels": None}, '"labels" is a NoneType, expected an array'),
            ({"labels": tensor("f", [0] * 4, [4])}, 'elements of type F32 cannot be read as i32'),
            ({"labels": tensor("i", [0] * 3, [3])}, r'"labels" of the batch is I32\[3\], expected i32\[4\]'),
            ({"labels": tensor("q", [1 << 40] * 4, [4])}, "element 0 is 1099511627776, which does not fit 32 bits"),
            ({"labels": tensor("i", [0, 5, 0, 0], [4])}, 'element 1 is 5; expected an index from 0 to 4'),
        ):
            with self.subTest(message), self.assertRaisesRegex(dtc.Error, message):
                step(good | change)
        with self.assertRaisesRegex(dtc.Error, r'the batch has no "features" \(f32\[4,6\]\); it has "input0"'):
            step([good["features"]])
        with self.assertRaisesRegex(dtc.Error, "the learning rate is nan"):
            step(good, lr=float("nan"))
        self.assertEqual(step.steps_done, 0)
        self.assertEqual(step(good)["step"], 1)  # nothing of it has harmed the session

    def test_an_interrupt_ends_after_the_step(self):
        step = dtc.compile(MLP)
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            while True:
                step(batch([1, 2, 3, 4]))
        timer.join()
        done = step.steps_done
        self.assertEqual(step(batch([1, 2, 3, 4]))["step"], done + 1)


if __name__ == "__main__":
    unittest.main()
