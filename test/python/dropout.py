#!/usr/bin/env python3
"""Tests of the dropout that a loss of JAX was captured with, in f64, without JAX. scripts/reference/jax_dropout.py looks at its masks.

    PYTHONPATH=BUILD/python python3 test/python/dropout.py
"""

import pathlib
import tempfile
import unittest

from training import CAPTURES, tensor

import dtc

BATCH = {"x": tensor("d", [(7 * i % 11 - 5) / 4 for i in range(28)], [4, 7]), "labels": tensor("i", [3, 1, 4, 0], [4])}


class Dropout(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "dropout.mlir"
        self.text = (CAPTURES / "jax-dropout.mlir").read_text().replace("f32", "f64")

    def compile(self, text=None, **options):
        self.path.write_text(text or self.text)
        return dtc.compile(self.path, optimizer=dtc.AdamW(lr=0.05), threads=1, **options)

    def assert_near(self, found, wanted):
        for one, other in zip(found, wanted, strict=True):
            self.assertAlmostEqual(one, other, delta=1e-9 * abs(other))

    def losses(self, step, steps=3):
        return [*(step(BATCH)["loss"] for _ in range(steps)), step.evaluate(BATCH)]

    def test_layouts_draw_what_one_device_does(self):
        wanted = self.losses(self.compile(seed=7))
        for layout in ({"mesh": "dp=4"}, {"mesh": "dp=2", "zero": 3}, {"mesh": "tp=2"}, {"microbatches": 4},
                       {"mesh": "pp=2,dp=2", "microbatches": 2}, {"mesh": "auto", "devices": 4}):
            with self.subTest(layout):
                self.assert_near(self.losses(self.compile(seed=7, **layout)), wanted)

    def test_what_is_drawn(self):
        self.assertEqual(self.text.count('"aten.dropout"'), 9)
        whole = self.compile(self.text.replace("train = true", "train = false"), seed=7)
        wanted = whole.evaluate(BATCH)
        step, other = self.compile(seed=7), self.compile(seed=8)
        self.assert_near([step.evaluate(BATCH)], [wanted])
        losses = [step(BATCH, lr=0.0)["loss"] for _ in range(3)]  # each step has masks of its own
        self.assertEqual(len({*losses, wanted}), 4)
        other.load_state_dict(whole.state_dict())
        self.assertNotEqual(other(BATCH)["loss"], losses[0])
        self.assertEqual(self.losses(self.compile(seed=7))[0], losses[0])


if __name__ == "__main__":
    unittest.main()
