#!/usr/bin/env python3
"""Federated learning by dtc.flower beside a reference of NumPy, in f64.

    PYTHONPATH=BUILD/python venv/bin/python scripts/reference/federated.py [--rounds 30] [--network]

20 clients with data of their own, whose classes and numbers of samples differ, of which 5 train in a round, each on another
mesh. The parameters after each round are compared with those of a reference that is written from the papers (McMahan et al.
2017 for FedAvg, Reddi et al. 2021 for FedAdam, FedYogi and FedAdagrad, Li et al. 2020 for FedProx), for the same clients. Then 100
bad updates come beside good ones, and change nothing; and clients leave in the middle of rounds, which go on without them. The messages of the strategies go from hand to hand; with --network FedAvg runs once more over Flower's SuperLink and
SuperNodes, processes on this host. requirements-flower.txt has what this needs.
"""

import argparse
import logging
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import numpy
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAdagrad, FedAdam, FedAvg, FedProx, FedYogi
from flwr.supercore.task_identity import TaskIdentity

import dtc
import dtc.flower

CLIENTS, SAMPLED, BATCH, FEATURES, HIDDEN, CLASSES = 20, 5, 8, 6, 12, 3
RATE, MOMENTUM, PROXIMAL = 0.2, 0.9, 0.3
MESHES = (None, "dp=2", "tp=2", "dp=2,tp=2", "pp=2", "fsdp=2")
TOLERANCE = 1e-9

MODEL = f"""
func.func @loss(
    %w0: tensor<{FEATURES}x{HIDDEN}xf64> {{dtc.param = "hidden.weight", dtc.axes = ["", "mlp"]}},
    %b0: tensor<{HIDDEN}xf64> {{dtc.param = "hidden.bias", dtc.axes = ["mlp"]}},
    %w1: tensor<{HIDDEN}x{CLASSES}xf64> {{dtc.param = "head.weight", dtc.axes = ["mlp", ""]}},
    %features: tensor<{BATCH}x{FEATURES}xf64> {{dtc.input = "features", dtc.axes = ["batch", ""]}},
    %labels: tensor<{BATCH}xi32> {{dtc.input = "labels", dtc.axes = ["batch"]}}) -> tensor<f64> {{
  %product = dtc.einsum "bi,ih->bh" %features, %w0
      : (tensor<{BATCH}x{FEATURES}xf64>, tensor<{FEATURES}x{HIDDEN}xf64>) -> tensor<{BATCH}x{HIDDEN}xf64> loc("hidden")
  %bias = dtc.broadcast %b0 dims [1] : (tensor<{HIDDEN}xf64>) -> tensor<{BATCH}x{HIDDEN}xf64> loc("hidden")
  %sum = dtc.add %product, %bias : tensor<{BATCH}x{HIDDEN}xf64> loc("hidden")
  %hidden = dtc.tanh %sum : tensor<{BATCH}x{HIDDEN}xf64> loc("hidden")
  %logits = dtc.einsum "bh,hc->bc" %hidden, %w1
      : (tensor<{BATCH}x{HIDDEN}xf64>, tensor<{HIDDEN}x{CLASSES}xf64>) -> tensor<{BATCH}x{CLASSES}xf64> loc("head")
  %each, %lse = dtc.cross_entropy %logits, %labels
      : (tensor<{BATCH}x{CLASSES}xf64>, tensor<{BATCH}xi32>) -> (tensor<{BATCH}xf64>, tensor<{BATCH}xf64>) loc("loss")
  %total = dtc.reduce sum %each dims [0] : (tensor<{BATCH}xf64>) -> tensor<f64> loc("loss")
  %factor = dtc.constant dense<{1 / BATCH}> : tensor<f64> loc("loss")
  %loss = dtc.mul %total, %factor : tensor<f64> loc("loss")
  return %loss : tensor<f64>
}}
"""


def data_of(client):
    """The batches of a client: one class is most of them, and clients have one to four batches."""
    generator = numpy.random.default_rng(100 + client)
    batches = []
    for _ in range(1 + client % 4):
        labels = numpy.where(generator.random(BATCH) < 0.7, client % CLASSES, generator.integers(0, CLASSES, BATCH))
        features = generator.standard_normal((BATCH, FEATURES)) + labels[:, None] * 0.5
        batches.append({"features": features, "labels": labels.astype(numpy.int32)})
    return batches


def initial():
    generator = numpy.random.default_rng(7)
    return {"hidden.weight": generator.standard_normal((FEATURES, HIDDEN)) * 0.4, "hidden.bias": numpy.zeros(HIDDEN),
            "head.weight": generator.standard_normal((HIDDEN, CLASSES)) * 0.3}


def make_proximal_client(context):
    """The same with a proximal term."""
    return make_client(context, PROXIMAL)


def make_client(context, proximal=0.0):
    """What a ClientApp makes: used by the processes of Flower too."""
    number = int(context.node_config["partition-id"])
    mesh = MESHES[number % len(MESHES)]
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(MODEL)
        file.flush()
        step = dtc.compile(file.name, mesh=mesh, microbatches=2 if mesh == "pp=2" else 1, threads=1, proximal=proximal,
                           optimizer=dtc.SGD(lr=RATE, momentum=MOMENTUM, weight_decay=0.0, clip=0.0))
    batches, log = data_of(number), context.run_config.get("log")

    def train(config):
        if log:
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{config['server-round']} {number}\n")
        return batches

    return dtc.flower.Client(step, train, samples=BATCH * len(batches), evaluate=lambda config: batches,
                             evaluation_samples=BATCH * len(batches))


# ---------------------------------------------------------------------------------------------------------------------------
# The reference
# ---------------------------------------------------------------------------------------------------------------------------


def gradients(p, batch):
    x, labels = batch["features"], batch["labels"]
    hidden = numpy.tanh(x @ p["hidden.weight"] + p["hidden.bias"])
    logits = hidden @ p["head.weight"]
    chances = numpy.exp(logits - logits.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    chances[numpy.arange(BATCH), labels] -= 1
    d_logits = chances / BATCH
    d_sum = (d_logits @ p["head.weight"].T) * (1 - hidden**2)
    return {"hidden.weight": x.T @ d_sum, "hidden.bias": d_sum.sum(0), "head.weight": hidden.T @ d_logits}


def trained(parameters, client, proximal=0.0):
    """The parameters of a client after its round: SGD with momentum, as PyTorch has it, of the loss with the proximal term."""
    p, velocity = dict(parameters), {name: 0 for name in parameters}
    for batch in data_of(client):
        for name, gradient in gradients(p, batch).items():
            velocity[name] = MOMENTUM * velocity[name] + gradient + proximal * (p[name] - parameters[name])
            p[name] = p[name] - RATE * velocity[name]
    return p


def mean_of(parameters, clients, proximal=0.0):
    weights = [len(data_of(client)) for client in clients]
    updates = [trained(parameters, client, proximal) for client in clients]
    return {name: sum(w * u[name] for w, u in zip(weights, updates)) / sum(weights) for name in parameters}


class AdamServer:
    """FedAdam of Reddi et al., algorithm 2, with the corrections of the bias that Flower's strategy has."""

    rate, beta1, beta2, tau = 0.1, 0.9, 0.99, 1e-3

    def __init__(self):
        self.m = self.v = None

    def __call__(self, parameters, mean, number):
        delta = {name: mean[name] - parameters[name] for name in parameters}
        zeros = {name: 0 for name in parameters}
        self.m = {name: self.beta1 * (self.m or zeros)[name] + (1 - self.beta1) * delta[name] for name in delta}
        self.v = {name: self.beta2 * (self.v or zeros)[name] + (1 - self.beta2) * delta[name] ** 2 for name in delta}
        rate = self.rate * numpy.sqrt(1 - self.beta2 ** (number + 1)) / (1 - self.beta1 ** (number + 1))
        return {name: parameters[name] + rate * self.m[name] / (numpy.sqrt(self.v[name]) + self.tau) for name in delta}


class YogiServer:
    """FedYogi of Reddi et al., algorithm 2."""

    rate, beta1, beta2, tau = 0.01, 0.9, 0.99, 1e-3

    def __init__(self):
        self.m = self.v = None

    def second(self, v, square):
        return v - (1 - self.beta2) * square * numpy.sign(v - square)

    def __call__(self, parameters, mean, number):
        delta = {name: mean[name] - parameters[name] for name in parameters}
        zeros = {name: 0 for name in parameters}
        self.m = {name: self.beta1 * (self.m or zeros)[name] + (1 - self.beta1) * delta[name] for name in delta}
        self.v = {name: self.second((self.v or zeros)[name], delta[name] ** 2) for name in delta}
        return {name: parameters[name] + self.rate * self.m[name] / (numpy.sqrt(self.v[name]) + self.tau) for name in delta}


class AdagradServer(YogiServer):
    """FedAdagrad of Reddi et al., algorithm 2, without a first moment, as Flower has it."""

    rate, beta1 = 0.1, 0.0

    def second(self, v, square):
        return v + square


def distance(found, wanted):
    return max(float(numpy.abs(found[name] - wanted[name]).max()) for name in wanted)


# ---------------------------------------------------------------------------------------------------------------------------
# Flower in one process
# ---------------------------------------------------------------------------------------------------------------------------


class LocalGrid(Grid):
    """Nodes 1 to CLIENTS, which are called one after the other. `bad`: the numbers of the messages whose replies are spoilt.
    `gone`: those that are answered by an error, if they are even, or not at all."""

    def __init__(self, app, bad=(), gone=()):
        self.app, self.bad, self.gone, self.good, self.messages = app, bad, gone, [], 0

    def set_run(self, run):
        raise NotImplementedError

    run = property(lambda self: None)

    def create_message(self, *args, **kwargs):
        raise NotImplementedError

    push_messages = pull_messages = create_message

    def get_node_ids(self):
        return range(1, CLIENTS + 1)

    def send_and_receive(self, messages, *, timeout=None):
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            message.metadata.__dict__["_message_id"] = f"message {self.messages}"
            context = Context(run_id=1, node_id=node, node_config={"partition-id": node - 1}, state=RecordDict(), run_config={})
            number = self.messages
            if number in self.gone:
                self.messages += 1
                if number % 2 == 0:
                    replies.append(Message(Error(code=1, reason="the node is gone"), reply_to=message))
                continue
            reply = self.app(message, context)
            if self.messages in self.bad:
                spoil(reply, self.bad.index(self.messages))
            else:
                self.good.append(node - 1)
            self.messages += 1
            replies.append(reply)
        return replies


def values_of(arrays):
    return {name: array.numpy() for name, array in arrays.items()}


def check(name, strategy, server, rounds, app, proximal=0.0):
    grid, error, wanted = LocalGrid(app), 0.0, initial()
    random.seed(3)
    begin = ArrayRecord({each: Array(value) for each, value in wanted.items()})
    result = dtc.flower.refuse_bad_updates(strategy, begin)
    history = []
    result.start(grid, begin, num_rounds=rounds, evaluate_fn=lambda number, arrays: history.append(values_of(arrays)))
    for number in range(1, rounds + 1):
        clients = grid.good[(number - 1) * SAMPLED:number * SAMPLED]
        wanted = server(wanted, mean_of(wanted, clients, proximal), number)
        error = max(error, distance(history[number], wanted))
    print(f"{name:10} {rounds} rounds, {SAMPLED} of {CLIENTS} clients on {len(MESHES)} meshes: largest difference of a parameter "
          f"{error:.1e}", flush=True)
    return error <= TOLERANCE


def spoil(reply, kind):
    """Makes a good reply one that no server may take."""
    arrays, metrics = values_of(reply.content["arrays"]), dict(reply.content["metrics"])
    name, broken = sorted(arrays)[kind % len(arrays)], {}
    if kind % 7 == 0:
        arrays[name] = numpy.full_like(arrays[name], numpy.nan)
    elif kind % 7 == 1:
        arrays[name] = arrays[name].ravel()[:-1]
    elif kind % 7 == 2:
        del arrays[name]
    elif kind % 7 == 3:
        arrays["another"] = arrays[name]
    elif kind % 7 == 4:
        arrays[name] = arrays[name].astype(numpy.float32)
    elif kind % 7 == 5:
        metrics["num-examples"] = (-3, 0, float("nan"), [1, 2])[kind % 4]
    else:
        broken[name] = Array(dtype="float64", shape=(1,), stype="numpy.ndarray", data=b"no array")
    records = {each: Array(value) for each, value in arrays.items()} | broken
    reply.content = RecordDict({"arrays": ArrayRecord(records), "metrics": MetricRecord(metrics)})


def check_bad_updates(app):
    """Rounds in which more than half of the updates are bad: the others make the mean."""
    refused = []
    log = logging.getLogger("dtc.flower")
    handler = logging.Handler()
    handler.emit = lambda record: refused.append(record.getMessage())
    log.addHandler(handler)
    log.propagate = False
    rounds = 36
    bad = [message for message in range(rounds * SAMPLED) if message % SAMPLED < 3][:100]
    grid = LocalGrid(app, bad)
    random.seed(5)
    wanted = initial()
    begin = ArrayRecord({each: Array(value) for each, value in wanted.items()})
    strategy = dtc.flower.refuse_bad_updates(strategy_of(FedAvg), begin)
    found = values_of(strategy.start(grid, begin, num_rounds=rounds).arrays)
    position = 0
    for number in range(rounds):
        good = sum(message not in bad for message in range(number * SAMPLED, (number + 1) * SAMPLED))
        wanted = mean_of(wanted, grid.good[position:position + good])
        position += good
    error = distance(found, wanted)
    log.removeHandler(handler)
    print(f"bad updates: {len(refused)} of {len(bad)} refused, largest difference of a parameter {error:.1e}")
    for message in sorted({each.split("is refused: ")[1] for each in refused}):
        print(f"    {message}")
    return len(refused) == len(bad) == 100 and error <= TOLERANCE


def check_clients_that_leave(app, rounds=20):
    """Rounds in which some clients answer with an error or never: the mean is that of the others."""
    draw = random.Random(11)
    gone = {message for message in range(rounds * SAMPLED) if draw.random() < 0.4 and message % SAMPLED}
    grid, wanted = LocalGrid(app, gone=gone), initial()
    random.seed(6)
    begin = ArrayRecord({each: Array(value) for each, value in wanted.items()})
    strategy = dtc.flower.refuse_bad_updates(strategy_of(FedAvg), begin)
    found = values_of(strategy.start(grid, begin, num_rounds=rounds).arrays)
    position = 0
    for number in range(rounds):
        left = sum(message not in gone for message in range(number * SAMPLED, (number + 1) * SAMPLED))
        wanted = mean_of(wanted, grid.good[position:position + left])
        position += left
    error = distance(found, wanted)
    print(f"clients that leave: {len(gone)} of {rounds * SAMPLED} in {rounds} rounds (seed 11), largest difference of a parameter {error:.1e}")
    return position == len(grid.good) and error <= TOLERANCE


def strategy_of(kind, **settings):
    return kind(fraction_train=SAMPLED / CLIENTS, fraction_evaluate=0.0, min_available_nodes=CLIENTS, **settings)


# ---------------------------------------------------------------------------------------------------------------------------
# Flower between processes
# ---------------------------------------------------------------------------------------------------------------------------

client = dtc.flower.client_app(make_client)
server = ServerApp()


@server.main()
def serve(grid, context):
    begin = ArrayRecord({each: Array(value) for each, value in initial().items()})
    strategy = dtc.flower.refuse_bad_updates(strategy_of(FedAvg), begin)
    result = strategy.start(grid, begin, num_rounds=int(context.run_config["rounds"]))
    numpy.savez(context.run_config["result"], **values_of(result.arrays))


APP = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "federated"
version = "1.0.0"
description = "Federated learning by dtc"
license = "Apache-2.0"
dependencies = []
[tool.hatch.build.targets.wheel]
packages = ["."]
[tool.flwr.app]
publisher = "dtc"
[tool.flwr.app.components]
serverapp = "federated:server"
clientapp = "federated:client"
[tool.flwr.app.config]
rounds = {rounds}
log = "{folder}/log"
result = "{folder}/result.npz"
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(port):
    """Returns when a process listens there."""
    for _ in range(120):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(1)
    raise SystemExit("Flower's SuperLink has not started within 120 seconds")


def check_network(rounds):
    """The server and the clients as Flower's processes."""
    tools = pathlib.Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "app").mkdir()
        shutil.copy(__file__, folder / "app" / "federated.py")
        (folder / "app" / "pyproject.toml").write_text(APP.format(rounds=rounds, folder=folder))
        (folder / "log").touch()
        port, *clients = free_ports(1 + CLIENTS)
        (folder / "config.toml").write_text(f'[superlink]\ndefault = "here"\n[superlink.here]\n'
                                            f'address = "127.0.0.1:{port}"\ninsecure = true\n')
        environment = os.environ | {"FLWR_HOME": str(folder), "FLWR_TELEMETRY_ENABLED": "0", "PATH":
                                    f"{tools}:{os.environ['PATH']}"}
        processes = []

        def start(*command):
            with open(folder / f"process{len(processes)}.log", "w", encoding="utf-8") as log:
                processes.append(subprocess.Popen([str(tools / command[0]), *map(str, command[1:])], env=environment, cwd=folder,
                                                  stdout=log, stderr=subprocess.STDOUT))

        try:
            start("flower-superlink", "--insecure", "--port", port)
            wait_for(port)
            for number, own in enumerate(clients):
                start("flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{port}", "--port", own, "--node-config",
                      f"partition-id={number}")
            subprocess.run([str(tools / "flwr"), "run", "app", "here"], env=environment, cwd=folder, check=True)
            begin = time.time()
            while not (folder / "result.npz").exists():
                if time.time() - begin > 60 * rounds or any(each.poll() is not None for each in processes):
                    for log in sorted(folder.glob("process*.log"))[:2]:
                        print(log.read_text()[-3000:])
                    raise SystemExit("Flower's run has not ended")
                time.sleep(1)
            time.sleep(1)
            found = dict(numpy.load(folder / "result.npz"))
            trained_in = [line.split() for line in (folder / "log").read_text().splitlines()]
        finally:
            for each in processes:
                each.terminate()
            for each in processes:
                each.wait()
    wanted = initial()
    for number in range(1, rounds + 1):
        clients = [int(who) for when, who in trained_in if int(when) == number]
        assert len(clients) == SAMPLED, (number, clients)
        wanted = mean_of(wanted, clients)
    error = distance(found, wanted)
    print(f"FedAvg over SuperLink and {CLIENTS} SuperNodes, {rounds} rounds: largest difference of a parameter {error:.1e}")
    return error <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--network", action="store_true", help="FedAvg over Flower's processes too")
    args = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    # Flower's processes set these; messages need them.
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    good = [check("FedAvg", strategy_of(FedAvg), lambda parameters, mean, number: mean, args.rounds, client),
            check("FedAdam", strategy_of(FedAdam), AdamServer(), args.rounds, client),
            check("FedYogi", strategy_of(FedYogi), YogiServer(), args.rounds, client),
            check("FedAdagrad", strategy_of(FedAdagrad), AdagradServer(), args.rounds, client),
            check("FedProx", strategy_of(FedProx, proximal_mu=PROXIMAL), lambda parameters, mean, number: mean, args.rounds,
                  dtc.flower.client_app(make_proximal_client), PROXIMAL),
            check_bad_updates(client), check_clients_that_leave(client)]
    if args.network:
        good.append(check_network(args.rounds))
    if not all(good):
        raise SystemExit("dtc and the reference differ")


if __name__ == "__main__":
    main()
