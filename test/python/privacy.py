#!/usr/bin/env python3
"""Tests of DP-SGD from Python and of what it spends; scripts/reference/dp_sgd.py compares with Opacus and dp-accounting.

    PYTHONPATH=BUILD/python:build/python python3 test/python/privacy.py
"""

import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest
import warnings

try:
    import numpy
except ImportError:
    raise SystemExit("numpy is missing: the tests of privacy are skipped") from None

import dtc
from dtc import privacy
from dtc.privacy import Accountant

MLP = pathlib.Path(__file__).resolve().parents[1] / "compiler" / "import" / "torch" / "captures" / "mlp.mlir"
HAS_PACKAGE = importlib.util.find_spec("dp_accounting") is not None


class Tenths(Accountant):
    """Spends a tenth of epsilon in each step."""

    def epsilon(self, steps):
        return steps / 10


def batches(count):
    generator = numpy.random.default_rng(4)
    return [{"features": generator.standard_normal((4, 6), dtype=numpy.float32),
             "labels": generator.integers(0, 5, 4).astype(numpy.int32)} for _ in range(count)]


def step(noise=1.5, mesh=None, **options):
    return dtc.compile(MLP, mesh=mesh, optimizer=dtc.SGD(lr=0.1), seed=3, threads=1, dp_sgd=f"clip=0.5,noise={noise}", **options)


class Privacy(unittest.TestCase):
    def test_numbers_that_cannot_be(self):
        for name, value in (("noise", 0), ("noise", float("nan")), ("batch", 0), ("batch", 1.5), ("samples", 3), ("delta", 0), ("delta", 1.0),
                            ("budget", -1.0)):
            with self.subTest(name=name, value=value), self.assertRaisesRegex(dtc.Error, f"^{name if name != 'samples' else 'batch'} is "):
                Accountant(**{"noise": 1.0, "batch": 4, "samples": 100, "delta": 1e-3, name: value})

    def test_a_run_ends_where_the_budget_is_spent(self):
        accountant = Tenths(noise=1.5, batch=4, samples=100, delta=1e-3, budget=0.35)
        trained, found = step(), []
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            metrics = trained.train(batches(5), callback=lambda each: found.append(each["epsilon"]), save=folder, privacy=accountant)
            self.assertEqual((metrics["step"], found), (3, [0.1, 0.2, 0.3]))
            self.assertEqual([str(note.message) for note in notes], ["the privacy budget of 0.35 is spent after step 3; no more steps are taken"])
            # Its state is saved, and a run that goes on from there has spent it.
            again = step(mesh="dp=2")
            again.load(folder)
            self.assertEqual(again.steps_done, 3)
            with self.assertRaisesRegex(dtc.Error, "the privacy budget of 0.35 is spent: 3 steps are done"):
                again.train(batches(1), privacy=accountant)
            again.train(batches(1), privacy=Tenths(noise=1.5, batch=4, samples=100, delta=1e-3))
            self.assertEqual(again.steps_done, 4)

    def test_the_noise_has_to_be_that_of_the_step(self):
        accountant = Tenths(noise=1.0, batch=4, samples=100, delta=1e-3)
        with self.assertRaisesRegex(dtc.Error, "the step adds noise of 1.5 .* counts on 1; expected the same"):
            step().train(batches(1), privacy=accountant)
        with self.assertRaisesRegex(dtc.Error, "the step adds noise of 0 "):
            dtc.compile(MLP, optimizer=dtc.SGD(lr=0.1)).train(batches(1), privacy=accountant)

    def test_the_batch_has_to_be_that_of_the_step(self):
        for batch, options in ((2, {}), (8, {}), (4, {"accumulate": 2})):
            with self.subTest(batch=batch, **options), self.assertRaisesRegex(dtc.Error, f"the step has .* samples, .* batch of {batch}; expected"):
                step(**options).train(batches(2), privacy=Tenths(noise=1.5, batch=batch, samples=100, delta=1e-3))
        metrics = step(accumulate=2).train([batches(2)], privacy=Tenths(noise=1.5, batch=8, samples=100, delta=1e-3))
        self.assertEqual(metrics["epsilon"], 0.1)

    def test_meshes_draw_the_same_noise(self):
        found = []
        for mesh in (None, "dp=2", "dp=2,tp=2"):
            trained = step(mesh=mesh)
            trained.train(batches(2))
            found.append(trained.parameters())
        for other in found[1:]:
            for name, values in found[0].items():
                self.assertLess(numpy.abs(values - other[name]).max(), 1e-5, name)
        without = step(noise=0)
        without.train(batches(2))
        self.assertGreater(max(numpy.abs(found[0][name] - values).max() for name, values in without.parameters().items()), 1e-2)

    def test_without_the_package(self):
        if HAS_PACKAGE:
            self.skipTest("dp-accounting is there")
        with self.assertRaisesRegex(dtc.Error, "the package dp-accounting is missing"):
            Accountant(noise=1.0, batch=4, samples=100, delta=1e-3).epsilon(1)

    def test_values_of_the_package(self):
        if not HAS_PACKAGE:
            self.skipTest("dp-accounting is missing")
        accountant = Accountant(noise=1.1, batch=256, samples=60000, delta=1e-5, budget=3.0)
        self.assertAlmostEqual(accountant.epsilon(5000), 1.5123263201151387, 9)
        self.assertEqual(accountant.epsilon(0), 0)
        steps = accountant.steps()
        self.assertTrue(accountant.epsilon(steps) <= 3.0 < accountant.epsilon(steps + 1))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            privacy.main("--noise 1.1 --batch 256 --samples 60000 --delta 1e-5 --steps 5000".split())
        self.assertEqual(out.getvalue(), "5000 steps: epsilon 1.51233, delta 1e-05\n")


if __name__ == "__main__":
    unittest.main()
