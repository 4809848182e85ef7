"""dtc on Flower (https://flower.ai, the package flwr): clients that train with dtc, and a server that refuses bad updates.

Flower has the transport, the authentication, the sampling of clients, its strategies (FedAvg, FedAdam and others) and what it
has for privacy; dtc has the training of a client, on any mesh (docs/python.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import Strategy

from dtc.errors import Error
from dtc.federated import Client, evaluate_round, problem_of, train_round
from dtc.step import Step

__all__ = ["Client", "client_app", "initial_arrays", "refuse_bad_updates"]

_log = logging.getLogger("dtc.flower")


def client_app(make: Callable[[Context], Client], mods: Sequence[Any] = ()) -> ClientApp:
    """The ClientApp of clients that make(context) makes: once for each node and run in a process. context.node_config and
    context.run_config say which data the client has and how it trains.

    An error in a client, and one of make(), becomes an error reply, which Flower's strategies leave out of the mean.
    mods: Flower's, such as flwr.clientapp.mod.fixedclipping_mod.
    """
    app, clients = ClientApp(mods=list(mods)), {}

    def client_of(context: Context) -> Client:
        key = context.run_id, context.node_id
        if key not in clients:
            client = make(context)
            if not isinstance(client, Client):
                raise Error(f"the function that makes clients has returned a {type(client).__name__}, expected a "
                            "dtc.flower.Client")
            clients[key] = client
        return clients[key]

    @app.train()
    def train(message: Message, context: Context) -> Message:
        arrays, config = _content_of(message)
        parameters, metrics = train_round(client_of(context), arrays, config)
        return Message(RecordDict({"arrays": _record(parameters), "metrics": MetricRecord(metrics)}), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        arrays, config = _content_of(message)
        metrics = evaluate_round(client_of(context), arrays, config)
        return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)

    return app


def initial_arrays(step: Step) -> ArrayRecord:
    """The parameters with which a server begins: initial_arrays of a strategy's start()."""
    return _record(step.parameters())


def refuse_bad_updates(strategy: Strategy, arrays: ArrayRecord) -> Strategy:
    """Makes a strategy leave out each update that its mean cannot have: one that lacks a parameter, has one of another shape
    or type than `arrays`, has elements that are not finite, or other metrics than a client of client_app(). A warning names
    the node, and the round goes on with the others. Updates that are late are left out by Flower itself (`timeout` of start()).

    Without it a strategy ends the run at an update with other names, and takes one with NaN. Returns the strategy."""
    expected = {name: array.numpy() for name, array in arrays.items()}
    aggregate = strategy.aggregate_train

    def aggregate_good(server_round: int, replies: Iterable[Message]):
        kept = []
        for reply in replies:
            problem = None if reply.has_error() else _problem_of_reply(reply, expected)
            if problem is None:
                kept.append(reply)
            else:
                _log.warning("round %d: the update of node %d is refused: %s", server_round, reply.metadata.src_node_id, problem)
        return aggregate(server_round, kept)

    strategy.aggregate_train = aggregate_good
    return strategy


def _problem_of_reply(reply: Message, expected: dict[str, numpy.ndarray]) -> str | None:
    arrays, metrics = list(reply.content.array_records.values()), list(reply.content.metric_records.values())
    if len(arrays) != 1 or len(metrics) != 1:
        return f"it has {len(arrays)} records of arrays and {len(metrics)} of metrics, expected one each"
    try:
        update = {name: array.numpy() for name, array in arrays[0].items()}
    except Exception as error:  # bytes that are no array
        return f"its arrays cannot be read: {error}"
    return problem_of(update, metrics[0], expected)


def _content_of(message: Message) -> tuple[dict[str, numpy.ndarray], dict[str, Any]]:
    records, configs = list(message.content.array_records.values()), list(message.content.config_records.values())
    if len(records) != 1:
        raise Error(f"the server's message has {len(records)} records of arrays, expected one")
    config: ConfigRecord | dict = configs[0] if configs else {}
    return {name: array.numpy() for name, array in records[0].items()}, dict(config)


def _record(parameters: dict[str, Any]) -> ArrayRecord:
    return ArrayRecord({name: Array(array) for name, array in parameters.items()})
