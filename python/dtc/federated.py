"""What a client of federated learning does in a round, and which updates a server takes.

McMahan et al., "Communication-efficient learning of deep networks from decentralized data" (AISTATS 2017), algorithm 1: in
each round some clients train on their own data, from the parameters of the server, whose new parameters are the mean of
theirs, weighted by samples. dtc.flower connects this to Flower.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dtc.errors import Error
from dtc.step import Batch, Step

Config = Mapping[str, Any]


@dataclasses.dataclass
class Client:
    """A client's step and its own data.

    step: of dtc.compile(), on whatever devices the client has; its mesh changes no result.
    train: gives the batches of a round, by what the server's configuration says; "server-round" is the round's number.
    samples: in the data of train(), the weight of this client's update.
    evaluate: likewise gives the batches of an evaluation; None: this client evaluates nothing.
    evaluation_samples: in the data of evaluate().
    keep_optimizer: the optimizer's state lasts from round to round. By default each round begins with a new one, as in
        algorithm 1 of McMahan et al., where clients have no state.
    """

    step: Step
    train: Callable[[Config], Iterable[Batch]]
    samples: int
    evaluate: Callable[[Config], Iterable[Batch]] | None = None
    evaluation_samples: int = 0
    keep_optimizer: bool = False


def train_round(client: Client, parameters: Mapping[str, Any], config: Config) -> tuple[dict[str, Any], dict[str, float]]:
    """Trains a round, from the server's parameters. "lr" of the configuration stands for the optimizer's learning rate.

    Of a step with a proximal term (FedProx; Li et al., "Federated optimization in heterogeneous networks", MLSys 2020), the
    server's parameters are those that the round's stay near to.

    Returns the parameters, by the names of Step.parameters(), and the metrics of UPDATE_METRICS. A mean loss that is not
    finite, a round without a batch, and another factor of the proximal term than the server's "proximal-mu" are errors.
    """
    mu = config.get("proximal-mu", client.step.proximal)
    if mu != client.step.proximal:
        raise Error(f'the server\'s configuration has "proximal-mu" {mu}, and the client\'s step proximal={client.step.proximal}; '
                    "compile the step with the server's")
    if client.keep_optimizer:
        client.step.load_state_dict(parameters)
    else:
        client.step.restart(parameters)
    rate, losses, skipped = config.get("lr"), [], 0
    for batch in client.train(config):
        metrics = client.step(batch, lr=rate)
        losses.append(metrics["loss"])
        skipped = metrics["skipped_steps"]
    if not losses:
        raise Error("the client's train() has given no batch for this round")
    mean = math.fsum(losses) / len(losses)
    if not math.isfinite(mean):
        raise Error(f"the mean loss of {len(losses)} steps is {mean}; the update is not sent")
    return client.step.parameters(), {"num-examples": client.samples, "train-loss": mean, "steps": len(losses),
                                      "skipped-steps": skipped}


def evaluate_round(client: Client, parameters: Mapping[str, Any], config: Config) -> dict[str, float]:
    """The mean loss of the client's batches with the server's parameters, and "num-examples"."""
    if client.evaluate is None:
        raise Error("the client has no data to evaluate")
    client.step.load_state_dict(parameters)
    losses = [client.step.evaluate(batch) for batch in client.evaluate(config)]
    if not losses:
        raise Error("the client's evaluate() has given no batch")
    return {"num-examples": client.evaluation_samples, "eval-loss": math.fsum(losses) / len(losses)}


UPDATE_METRICS = ("num-examples", "skipped-steps", "steps", "train-loss")


def problem_of(update: Mapping[str, Any], metrics: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
    """Why a server has to refuse an update: parameters that lack, are too many, have another shape or type than `expected`
    (arrays of numpy by name), or are not finite, or metrics that are not those of train_round(). None: it can be taken."""
    import numpy

    for name in sorted(expected.keys() - update.keys()):
        return f'it has no parameter "{name}"'
    for name in sorted(update.keys() - expected.keys()):
        return f'it has a parameter "{name}", which the model has not'
    for name, array in expected.items():
        given = update[name]
        if given.shape != array.shape or given.dtype != array.dtype:
            return f'"{name}" is {given.dtype}{list(given.shape)}, expected {array.dtype}{list(array.shape)}'
        if not numpy.isfinite(given).all():
            return f'"{name}" has elements that are not finite'
    if tuple(sorted(metrics)) != UPDATE_METRICS:
        return f"its metrics are {', '.join(sorted(metrics)) or 'none'}, expected {', '.join(UPDATE_METRICS)}"
    for name, value in metrics.items():
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            return f'its metric "{name}" is {value!r}, expected a finite number'
    if metrics["num-examples"] <= 0:
        return f"it has {metrics['num-examples']} samples, expected at least one"
    return None
