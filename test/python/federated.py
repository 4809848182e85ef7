#!/usr/bin/env python3
"""Tests of rounds of federated learning, without Flower; scripts/reference/federated.py compares dtc.flower with a reference.

    PYTHONPATH=BUILD/python:build/python python3 test/python/federated.py
"""

import pathlib
import unittest

try:
    import numpy
except ImportError:
    raise SystemExit("numpy is missing: the tests of federated learning are skipped") from None

import dtc
from dtc.federated import UPDATE_METRICS, Client, evaluate_round, problem_of, train_round

MLP = pathlib.Path(__file__).resolve().parents[1] / "compiler" / "import" / "torch" / "captures" / "mlp.mlir"


def batch(seed, labels=5):
    generator = numpy.random.default_rng(seed)
    return {"features": generator.standard_normal((4, 6), dtype=numpy.float32),
            "labels": generator.integers(0, labels, 4).astype(numpy.int32)}


def client(batches=(batch(1), batch(2)), optimizer=dtc.AdamW(lr=0.05), mesh=None, proximal=0.0, **options):
    step = dtc.compile(MLP, mesh=mesh, optimizer=optimizer, seed=3, threads=1, proximal=proximal)
    return Client(step, lambda config: batches, samples=8, **options)


class Federated(unittest.TestCase):
    def assertNear(self, found, wanted, delta):
        self.assertEqual(found.keys(), wanted.keys())
        for name, array in wanted.items():
            self.assertLess(numpy.abs(found[name] - array).max(), delta, name)

    def test_a_round_begins_with_a_new_optimizer(self):
        trained = client()
        begin = trained.step.parameters()
        first, metrics = train_round(trained, begin, {"server-round": 1})
        self.assertEqual(tuple(sorted(metrics)), UPDATE_METRICS)
        self.assertEqual((metrics["num-examples"], metrics["steps"]), (8, 2))
        self.assertNotEqual(first["head.bias"].tolist(), begin["head.bias"].tolist())
        # The same parameters give the same update in each round, and on another mesh but for rounding.
        again, _ = train_round(trained, begin, {"server-round": 2})
        self.assertNear(again, first, 1e-12)
        self.assertNear(train_round(client(mesh="dp=2,tp=2"), begin, {})[0], first, 1e-5)

    def test_an_optimizer_may_be_kept(self):
        trained, alone = client(keep_optimizer=True), client()
        begin = trained.step.parameters()
        first, _ = train_round(trained, begin, {})
        second, _ = train_round(trained, first, {})
        for each in (batch(1), batch(2)) * 2:
            alone.step(each)
        self.assertNear(second, alone.step.parameters(), 1e-12)

    def test_a_proximal_term_draws_to_the_parameters_of_the_server(self):
        sgd = dtc.SGD(lr=0.1, weight_decay=0.0, momentum=0.0, clip=0.0)
        plain = client(optimizer=sgd)
        for options in ({}, {"mesh": "dp=2,tp=2"}, {"keep_optimizer": True}):
            near = client(optimizer=sgd, proximal=0.5, **options)
            begin = near.step.parameters()
            for server_round in range(2):
                # The first step begins where the server is, so that the term is 0; the second one has the change of the first.
                plain.step.restart(begin)
                plain.step(batch(1))
                first = plain.step.parameters()
                plain.step(batch(2))
                second = plain.step.parameters()
                expected = {name: second[name] - 0.1 * 0.5 * (first[name] - begin[name]) for name in begin}
                found, _ = train_round(near, begin, {"proximal-mu": 0.5, "server-round": server_round})
                self.assertNear(found, expected, 1e-6)
                self.assertGreater(max(abs(found[name] - second[name]).max() for name in begin), 1e-5)
                begin = found

    def test_the_server_may_give_the_learning_rate(self):
        trained = client(optimizer=dtc.SGD(lr=0.1, weight_decay=0.0, clip=0.0))
        begin = trained.step.parameters()
        self.assertNear(train_round(trained, begin, {"lr": 0.0})[0], begin, 1e-12)

    def test_evaluation(self):
        judge = client(evaluate=lambda config: [batch(5), batch(6)], evaluation_samples=8)
        parameters = judge.step.parameters()
        metrics = evaluate_round(judge, parameters, {})
        losses = [judge.step.evaluate(batch(seed)) for seed in (5, 6)]
        self.assertAlmostEqual(metrics["eval-loss"], sum(losses) / 2)
        self.assertEqual(metrics["num-examples"], 8)
        with self.assertRaisesRegex(dtc.Error, "has no data to evaluate"):
            evaluate_round(client(), parameters, {})

    def test_rounds_that_give_no_update(self):
        begin = client().step.parameters()
        with self.assertRaisesRegex(dtc.Error, "has given no batch for this round"):
            train_round(client(batches=()), begin, {})
        with self.assertRaisesRegex(dtc.Error, r'has "proximal-mu" 0.1, and the client\'s step proximal=0.0; compile the step'):
            train_round(client(), begin, {"proximal-mu": 0.1})
        with self.assertRaisesRegex(dtc.Error, r'has "proximal-mu" 0.0, and the client\'s step proximal=0.1; compile the step'):
            train_round(client(proximal=0.1), begin, {"proximal-mu": 0.0})
        with self.assertRaisesRegex(dtc.Error, r'has no tensor "head.bias"'):
            train_round(client(), {name: each for name, each in begin.items() if name != "head.bias"}, {})
        infinite = {name: numpy.full_like(each, numpy.inf) for name, each in begin.items()}
        with self.assertRaisesRegex(dtc.Error, "the mean loss of 2 steps is nan"):
            train_round(client(), infinite, {})

    def test_updates_that_a_server_refuses(self):
        expected = {"w": numpy.zeros((2, 3)), "b": numpy.zeros(3, numpy.float32)}
        good = {"num-examples": 4, "skipped-steps": 0, "steps": 2, "train-loss": 0.5}
        self.assertIsNone(problem_of(expected, good, expected))
        for update, metrics, problem in (
                ({"w": expected["w"]}, {}, 'it has no parameter "b"'),
                ({"v": numpy.zeros(1)}, {}, 'it has a parameter "v", which the model has not'),
                ({"w": numpy.zeros((3, 2))}, {}, '"w" is float64[3, 2], expected float64[2, 3]'),
                ({"b": numpy.zeros(3)}, {}, '"b" is float64[3], expected float32[3]'),
                ({"b": numpy.array([0, numpy.nan, 0], numpy.float32)}, {}, '"b" has elements that are not finite'),
                ({}, {"num-examples": 0}, "it has 0 samples, expected at least one"),
                ({}, {"train-loss": float("inf")}, 'its metric "train-loss" is inf, expected a finite number'),
                ({}, {"steps": [1]}, 'its metric "steps" is [1], expected a finite number'),
                ({}, {"more": 1}, "its metrics are more, num-examples, skipped-steps, steps, train-loss, expected num-examples, "
                                  "skipped-steps, steps, train-loss")):
            with self.subTest(problem):
                lacks = problem.endswith('no parameter "b"')
                self.assertEqual(problem_of(update if lacks else expected | update, good | metrics, expected), problem)


if __name__ == "__main__":
    unittest.main()
