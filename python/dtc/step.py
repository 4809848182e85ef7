"""A compiled training step, and what makes one."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import numbers
import os
import pathlib
import re
import sys
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any

from dtc import _native
from dtc.errors import Error
from dtc.model_source import ModelSource, host_arrays
from dtc.optimizers import AdamW, Optimizer
from dtc.privacy import Accountant
from dtc.progress import SearchProgress, TrainingProgress

if TYPE_CHECKING:
    import torch

Batch = Mapping[str, Any] | Sequence[Any]
Weights = Mapping[str, Any] | str | os.PathLike | Sequence[str | os.PathLike]


def compile(model: torch.nn.Module | str | os.PathLike | Any, loss=None, example_batch: Batch | None = None, *,
            optimizer: Optimizer | None = None, mesh: str | Mapping[str, int] | None = None, devices: int | None = None,
            cluster: str | os.PathLike | None = None, memory: str | int | None = None, dtype: str | None = None,
            accumulate: int = 1, batch: str = "global", init: Weights | None = None, seed: int = 0, threads: int = 0,
            device: str = "auto", gpu: Mapping[str, Any] | None = None, metrics: str | os.PathLike | None = None,
            tensorboard: str | os.PathLike | None = None, metrics_port: str | int | None = None, **options: Any) -> Step:
    """Compiles a model with its loss, gradients and optimizer for a mesh of devices.

    model: a torch.nn.Module, which dtc.torch.capture() captures with `loss`, a function (model, batch) -> scalar, and
        `example_batch`. The batch gives names, types and shapes: the first dimension is all samples of a step, over all
        devices. Or parameters of JAX, a pytree of arrays or of jax.ShapeDtypeStruct, with a loss (params, batch) -> scalar.
        Or the path of a captured model, or of model IR, which has its loss.
    mesh: axes and their sizes, "dp=2,tp=2" or {"dp": 2, "tp": 2}; one device without it. "auto": the planner of dtc-compile
        searches the parallel strategy that is fastest on the devices by simulation, the mesh and all options of the strategy
        that are not given.
    devices: how many devices a search is for. Without it all of the cluster, or without a cluster one for each process that
        a launcher has started. Beside a mesh that is given it must be the devices of that mesh.
    cluster: a cluster file, whose devices a search is for, or on which the plan of a given mesh is simulated. A search without
        it is for virtual devices of a CPU that are the same on any machine.
    memory: the bytes that a device has, "80GiB"; activations are recomputed where they do not fit, and a search takes what fits.
    dtype: what is computed in: "f32", "bf16", "f16" or "fp8" (bf16, with products of layers in 8 bits); optimizers
        keep f32.
    accumulate: the batches of a step, over which gradients are summed before the update.
    batch: what each of several processes gives: "global", the whole batch, or "local", an equal part of its samples. The parts
        are put together in the order of the processes. The example is the whole batch in either case.
    init: a state_dict, safetensors files, a folder with a model of transformers, or one of checkpoints, to go on from the
        newest. Without it a module
        gives the values that its parameters have when the first step is taken; others start from initializers and `seed`.
    seed: of initializers and of dropout.
    threads: of this machine for each device; 0: its cores divided by the devices.
    device: what the plan runs on: "cpu", "cuda", or "auto", GPUs where there are any. Devices share GPUs where there are fewer of
        them. It is looked for at the first step.
    gpu: how GPUs compute and exchange tensors, the flags of dtc-run by their names with _ for -: {"fabric": "nccl",
        "matmul_precision": "tf32", "cudnn": "off"}.
    metrics, tensorboard, metrics_port: where the metrics of each step go beside the program, as of dtc-run: a file of JSON lines, a
        folder of TensorBoard, a port of this machine (or ADDRESS:PORT) where Prometheus gets them. The first process writes them.
    options: all others of dtc-compile, with _ for -: zero=1, microbatches=4, recompute="full". A list is a sequence or a text
        with commas. A search keeps what is given; for one there are set={"pp": 4}, which fixes axes and options, and
        alternatives=10, the number of other strategies in Step.search.

    Where mpirun, torchrun or srun has started several processes, all compile, and each has its part of the devices: every
    process makes the same calls, with the same batches or its parts of them.

    A search shows on a terminal how far it is, and Ctrl-C ends it.

    No parameter gets memory before the first step. Raises Error, or dtc.torch.CaptureError, which is one.
    """
    source = ModelSource.of(model, loss, example_batch)
    optimizer = optimizer if optimizer is not None else AdamW()
    if not isinstance(optimizer, Optimizer):
        raise Error(f"optimizer is a {type(optimizer).__name__}, expected dtc.AdamW, dtc.Adam, dtc.SGD or dtc.Lion")
    for name, value, least in (("accumulate", accumulate, 1), ("threads", threads, 0), ("seed", seed, 0)):
        _check_whole(name, value, least)
    if batch not in ("global", "local"):
        raise Error(f'batch is {batch!r}, expected "global" or "local"')
    if devices is not None:
        _check_whole("devices", devices, 1)
    flags = _device_flags(device, gpu)
    sinks = _sinks(metrics, tensorboard, metrics_port)
    if cluster is not None and (not isinstance(cluster, (str, os.PathLike)) or not os.fspath(cluster)):
        raise Error(f"cluster is {cluster!r}, expected the path of a cluster file (docs/clusters.md)")
    if init is not None:
        source.check_weights("init", init)
    mesh, shards = _shardings(source, mesh)
    given = {"mesh": mesh, "memory_limit": memory, "dtype": dtype}
    if accumulate > 1:
        given["accumulate"] = True
    if memory is not None and mesh != "auto" and "recompute" not in options:
        given["recompute"] = "auto"
    twice = sorted(name for name in options if name in ("mode", *given, *optimizer.options()) and name != "recompute")
    if twice:
        raise Error(f"{twice[0]} is not an option of dtc.compile: the optimizer, mesh, memory and dtype say it, and the mode is "
                    "\"train\"")
    if shards:  # those that are given are instead of them
        asked = [each for _, text in _texts("shard", options.get("shard")) for each in text.split(",")]
        places = {each.partition("=")[0] for each in asked}
        options["shard"] = [*(each for each in shards if each.partition("=")[0] not in places), *asked]
    texts = [each for name, value in (given | optimizer.options() | options).items() for each in _texts(name, value)]
    progress = SearchProgress()
    try:
        compiled = _native.compile(source.text, source.file, source.name, texts, devices or 0,
                                   os.fspath(cluster) if cluster is not None else "", progress)
    except Error as error:  # the compiler's name of an option that is an argument here by another one
        raise Error(str(error).replace("memory_limit", "memory")) from None
    finally:
        progress.close()
    for note in [*source.warnings, *compiled["warnings"]]:
        warnings.warn(note.removeprefix("warning: "), stacklevel=2)
    step = Step(compiled, optimizer, source, init=init, seed=seed, threads=threads, batches=accumulate, parts=batch == "local",
                device_flags=flags, sinks=sinks)
    step.proximal = float(options.get("proximal", 0))
    step.dp_sgd = options.get("dp_sgd")
    return step


class Step:
    """A training step: what compile() gives. step(batch) trains, and gives metrics."""

    def __init__(self, compiled: dict[str, Any], optimizer: Optimizer, source, *, init, seed: int, threads: int, batches: int,
                 parts: bool, device_flags: list[tuple[str, str]], sinks: list[str]):
        self.optimizer = optimizer
        self.remarks: list[str] = compiled["remarks"]  # what the import made of several operators
        # Of a mesh that was searched: what was considered, as dtc-compile prints it, and the chosen strategy, as the file
        # that dtc-compile --strategy takes. Empty otherwise.
        self.search: str = compiled["search"]
        self.strategy: str = compiled["strategy"]
        self.proximal = 0.0  # the factor of the proximal term
        self.dp_sgd: str | None = None  # how the gradients of samples are clipped
        self._plan, self._on_cluster = compiled["plan"], compiled["on_cluster"]
        self._source, self._init, self._seed, self._threads = source, init, seed, threads
        self._opened, self._batches, self._parts, self._device_flags = None, batches, parts, device_flags
        self._sinks = sinks

    def __call__(self, batch: Batch, lr: float | None = None) -> dict[str, Any]:
        """Takes a step on a batch, arrays of numpy or torch as in the example: a mapping by name, or a sequence. With
        `accumulate` it takes a list of that many batches, or one whose first dimension is as many times as large.

        lr: instead of the optimizer's learning rate. Returns the metrics of dtc-run by their names (docs/training.md): "step",
        "loss", "grad_norm" (before it was clipped), "lr", "step_seconds", "skipped_steps" and others. A step whose gradient is
        not finite changes no parameter, and counts as skipped. Ctrl-C ends the step first.
        """
        session = self._session()
        rate = self.optimizer.rate(session.steps_done + 1) if lr is None else lr
        if not isinstance(rate, numbers.Real):
            raise Error(f"lr is {rate!r}, expected a number")
        return session.step(self._batches_of(batch), rate)

    def train(self, batches: Iterable[Batch], steps: int | None = None, callback: Callable[[dict[str, Any]], Any] | None = None,
              save: str | os.PathLike | None = None, privacy: Accountant | None = None) -> dict[str, Any]:
        """Takes a step on each of some batches, and shows a bar of progress where standard error is a terminal.

        steps: how many are taken at most; all batches without it.
        callback: called with the metrics of each step; where it returns False, no more steps are taken.
        save: a folder for a checkpoint of the last step, which is also written after Ctrl-C.
        privacy: what counts the privacy that the steps spend, of a step with dp_sgd: their metrics get "epsilon". Where another
            step would spend more than its budget, no more steps are taken, and a warning says so. A budget that allows no step is
            an error. Steps before a checkpoint that was loaded count.
        Returns the metrics of the last step, an empty dictionary if there was no batch.
        """
        if steps is not None:
            _check_whole("steps", steps, 0)
        if callback is not None and not callable(callback):
            raise Error(f"callback is a {type(callback).__name__}, expected a function of the metrics of a step")
        if privacy is not None:
            privacy.check(self.dp_sgd, self._samples)
            self._session()  # it knows of the steps of a checkpoint
            if not privacy.allows(self.steps_done + 1):
                raise Error(f"the privacy budget of {privacy.budget:g} is spent: {self.steps_done} steps are done, and with one more "
                            f"epsilon is {privacy.epsilon(self.steps_done + 1):g}; no step is taken")
        metrics: dict[str, Any] = {}
        known = [count for count in (steps, len(batches) if isinstance(batches, Sized) else None) if count is not None]
        progress = TrainingProgress(min(known, default=None), self.process == 0)
        try:
            for batch in itertools.islice(batches, steps):
                if privacy is not None and not privacy.allows(self.steps_done + 1):
                    warnings.warn(f"the privacy budget of {privacy.budget:g} is spent after step {self.steps_done}; no more steps are "
                                  "taken", stacklevel=2)
                    break
                metrics = self(batch)
                if privacy is not None:
                    metrics["epsilon"] = privacy.epsilon(self.steps_done)
                progress(metrics)
                if callback is not None and callback(metrics) is False:
                    break
        except KeyboardInterrupt:
            if save is not None:
                self.save(save)
            raise
        finally:
            progress.close()
        if save is not None and metrics:
            self.save(save)
        return metrics

    def evaluate(self, batch: Batch) -> float:
        """The loss of a batch, without dropout and without an update."""
        return self._session().evaluate(self._arrays(batch))

    def state_dict(self) -> dict[str, Any]:
        """The parameters as they are now, in f32 where less is computed in. Of a module they are tensors by the names of its
        own state_dict(), with tied ones under each of their names. Of a file they are arrays of numpy, or, where that is
        missing, objects with the buffer protocol."""
        return self._source.state_dict(self._session().weights())

    def load_state_dict(self, weights: Weights) -> list[str]:
        """Sets the parameters, from a state_dict or safetensors files; the optimizer's state stays. A proximal term is from then
        on that of these parameters. Returns notes."""
        self._source.check_weights("weights", weights)
        return self._load(self._session(), weights)

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are now, arrays of numpy, each once by its name in checkpoints and safetensors files. They are
        what load_state_dict(), restart() and `init` take too."""
        import numpy

        return {name: numpy.from_dlpack(each) for name, each in self._session().weights().items()}

    def restart(self, weights: Weights) -> None:
        """Begins anew from these parameters: the optimizer's state and the number of steps are as before the first step."""
        self._source.check_weights("weights", weights)
        if self._opened is not None:
            self._opened.close()
        self._opened, self._init = None, weights
        self._session()

    def save(self, folder: str | os.PathLike, keep: int = 2) -> str:
        """Writes a checkpoint of all states into a folder, and keeps the newest `keep` there (0: all). Returns its path.
        `dtc-run --checkpoint folder --resume --allow-change data` can go on from it."""
        return self._session().save_checkpoint(os.fspath(folder), keep)

    def load(self, path: str | os.PathLike, allow_change: Sequence[str] = ()) -> list[str]:
        """Goes on from a checkpoint, or from the newest of a folder, also of dtc-run and of another mesh. `allow_change`: as
        dtc-run --allow-change. Returns notes on what is not as it was."""
        changes = {allow_change} if isinstance(allow_change, str) else set(allow_change)
        return self._session().load_checkpoint(os.fspath(path), changes)

    def save_weights(self, path: str | os.PathLike) -> None:
        """Writes the parameters as a safetensors file."""
        self._session().save_weights(os.fspath(path))

    def save_pretrained(self, folder: str | os.PathLike) -> None:
        """Writes a model of transformers as its own save_pretrained() does, with the parameters as they are now, in the types
        of the module: config.json and safetensors, which from_pretrained() and `init` load."""
        model = self._source.pretrained()
        weights, error = self.state_dict(), ""
        if self.process == 0:
            try:
                model.save_pretrained(os.fspath(folder), state_dict=weights)
            except Exception as failure:
                error = f"save_pretrained: {type(failure).__name__}: {failure}"
        self._session().meet("save_pretrained", error)

    def save_plan(self, path: str | os.PathLike) -> None:
        """Writes the plan, which dtc-run, dtc-plan and other machines take."""
        self._plan.write(os.fspath(path))

    @property
    def plan_bytes(self) -> bytes:
        """The bytes of the plan."""
        return self._plan.serialize()

    @property
    def inputs(self) -> dict[str, str]:
        """The types of the inputs by name: "i32[16,2048]"."""
        return self._plan.inputs

    @property
    def _samples(self) -> set[int]:
        """The first dimensions of the inputs of a step, all of its batches together: one is that of samples."""
        return {int(size) * self._batches for size in re.findall(r"\[(\d+)", " ".join(self.inputs.values()))}

    @property
    def steps_done(self) -> int:
        """The steps that are done, skipped ones included."""
        return self._opened.steps_done if self._opened is not None else 0

    @property
    def device(self) -> str:
        """What the steps run on: "cpu" or "cuda"."""
        return self._session().device

    @property
    def process(self) -> int:
        """The number of this process, from 0, of those that a launcher has started."""
        return self._session().process

    @property
    def processes(self) -> int:
        """How many processes train together."""
        return self._session().processes

    def explain(self, top: int = 20) -> str:
        """What each collective costs, why it is there and what would remove it; the most expensive `top` of them."""
        _check_whole("top", top, 1)
        return self._plan.explanation(top)

    def __str__(self) -> str:
        """What the plan takes on the cluster or was searched for, where there is one or the mesh is "auto"; the mesh, the memory of
        a device by kind, the operations and the traffic of a step."""
        return (self._on_cluster + "\n" if self._on_cluster else "") + self._plan.summary()

    def __repr__(self) -> str:
        return f"<dtc.Step of {self._plan.model}, {self._plan.devices} devices, {self.steps_done} steps done>"

    def _session(self):
        """The session, which gets its memory and initial values once."""
        if self._opened is None:
            with _as_arguments():
                session = _native.Session.open(self._plan, self._threads, self._seed, self._batches, self._parts,
                                               self._device_flags, *self._sinks)
            if self._init is None:
                # The capture has said which tensors of the model are no parameters.
                notes = []
                if (values := self._source.values()) is not None:
                    session.load_weights("the model", values)
            else:
                notes = self._load(session, self._init)
            for note in notes:
                warnings.warn(note, stacklevel=3)
            self._opened, self._init = session, None
            _opened.add(self)
        return self._opened

    def _load(self, session, weights: Weights) -> list[str]:
        if (arrays := self._source.arrays(weights)) is not None:
            return session.load_weights("the state_dict", arrays)
        if isinstance(weights, (str, os.PathLike)):
            path = pathlib.Path(weights)
            if (path / "manifest.json").exists() or any(path.glob("step-*/manifest.json")):
                return session.load_checkpoint(str(path), set())
            return session.load_weights_files([str(path)])
        return session.load_weights_files([os.fspath(each) for each in weights])

    def _batches_of(self, batch: Batch) -> list[dict[str, Any]]:
        """The batches of a step."""
        count = self._batches
        if count == 1:
            return [self._arrays(batch)]
        if isinstance(batch, (tuple, list)) and all(isinstance(each, (Mapping, tuple, list)) for each in batch):
            return [self._arrays(each) for each in batch]
        return [dict(zip(self._arrays(batch), parts)) for parts in
                zip(*(_parts(name, each, count) for name, each in self._arrays(batch).items()))]

    def _arrays(self, batch: Batch) -> dict[str, Any]:
        if not isinstance(batch, (Mapping, tuple, list)):
            raise Error(f"the batch is a {type(batch).__name__}, expected a dictionary of arrays by name, or a tuple or list of them")
        named = batch if isinstance(batch, Mapping) else {f"input{i}": each for i, each in enumerate(batch)}
        return host_arrays({name: each for name, each in named.items() if name not in self._source.left_out})


_opened = weakref.WeakSet()  # the steps that have a session


@atexit.register
def _leave() -> None:
    """Closes the sessions, and leaves the processes of the run."""
    error = getattr(sys, "last_value", None)
    if error is not None and not isinstance(error, SystemExit):
        # Ends the others too, which would wait for this process.
        sys.stdout.flush()
        sys.stderr.flush()
        _native.leave_processes("".join(traceback.format_exception_only(error)).strip())
    for step in _opened:
        step._opened.close()
    _native.leave_processes("")


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
        raise Error(f"{name} is {value!r}, expected a whole number of at least {least}")


@contextlib.contextmanager
def _as_arguments():
    """Errors name flags of devices as the arguments that they are here."""
    try:
        yield
    except Error as error:
        def argument(found: re.Match) -> str:
            name = found[1].replace("-", "_")
            return f'{name}="{found[2]}"' if found[2] else name
        raise Error(re.sub(r"(?<![\w/.-])--([a-z][a-z-]*)(?:[ =](cpu|cuda|nccl|local|auto|on|off|f32|tf32|first|timed)\b)?", argument, str(error))) from None


def _device_flags(device: Any, gpu: Any) -> list[tuple[str, str]]:
    if not isinstance(device, str):
        raise Error(f'device is {device!r}, expected "cpu", "cuda" or "auto" (devices is the number that a search is for)')
    if not isinstance(gpu or {}, Mapping):
        raise Error(f"gpu is {gpu!r}, expected a mapping of names to values")
    if "device" in (gpu or {}):
        raise Error("gpu has a \"device\", which is an argument of its own")
    texts = [("device", device), *(each for name, value in (gpu or {}).items() for each in _texts(str(name), value))]
    flags = [(name.replace("_", "-"), text) for name, text in texts]
    with _as_arguments():
        _native.check_device_flags(flags)
    return flags


def _sinks(metrics: Any, tensorboard: Any, metrics_port: Any) -> list[str]:
    """The places to which metrics go; an empty text for none."""
    if isinstance(metrics_port, int) and not isinstance(metrics_port, bool):
        metrics_port = str(metrics_port)
    places = (("metrics", metrics, "the path of a file"), ("tensorboard", tensorboard, "the path of a folder"),
              ("metrics_port", metrics_port, "a port, or a text ADDRESS:PORT"))
    for name, value, expected in places:
        if value is not None and (not isinstance(value, (str, os.PathLike)) or not os.fspath(value)):
            raise Error(f"{name} is {value!r}, expected {expected}")
    return [os.fspath(value) if value is not None else "" for _, value, _ in places]


def _parts(name: str, array: Any, count: int) -> list[Any]:
    """The parts of an array that are in the batches of a step, in their order."""
    if isinstance(array, memoryview) or not hasattr(array, "shape"):
        try:
            array = memoryview(array)
        except TypeError:
            raise Error(f'"{name}" is a {type(array).__name__}, expected an array of numpy or torch') from None
        rows, each = array.shape[0] if array.shape else 0, array.nbytes // count
        if rows % count == 0 and rows > 0:
            flat, shape = array.cast("B"), [rows // count, *array.shape[1:]]
            return [flat[i * each:(i + 1) * each].cast(array.format, shape) for i in range(count)]
    else:
        rows = array.shape[0] if len(array.shape) > 0 else 0
        if rows % count == 0 and rows > 0:
            return [array[i * (rows // count):(i + 1) * (rows // count)] for i in range(count)]
    raise Error(f'"{name}" of the batch has {rows} samples, which are no {count} batches of the same size (accumulate); give a '
                f"multiple of {count}, or a list of {count} batches")


def _shardings(source: ModelSource, mesh):
    """The mesh, and the entries of `shard` that the shardings of arrays say on it."""
    if not source.shards:
        return mesh, []
    if mesh is None:
        return source.mesh, list(source.shards)
    if mesh == "auto":
        warnings.warn("the shardings of the arrays are left out: a search finds what to split by itself", stacklevel=3)
        return mesh, []
    known = set(mesh) if isinstance(mesh, Mapping) else {each.partition("=")[0].strip() for each in str(mesh).split(",")}
    kept = [each for each in source.shards if known.issuperset(_axes_of(each))]
    if len(kept) < len(source.shards):
        first = next(each for each in source.shards if each not in kept)
        warnings.warn(f"{len(source.shards) - len(kept)} shardings of arrays are left out, as they name axes that the mesh {mesh} does not "
                      f"have, such as {first}", stacklevel=3)
    return mesh, kept


def _axes_of(entry: str) -> list[str]:
    """The axes of the mesh in an entry of `shard`."""
    return entry.rpartition("=")[2].split("+")


def _texts(name: str, value: Any) -> list[tuple[str, str]]:
    """The values of an option as the flags of dtc-compile have them."""
    if value is None:
        return []
    if isinstance(value, bool):
        return [(name, "true" if value else "false")]
    if isinstance(value, Mapping):
        return [(name, f"{key}={text}") for key, each in value.items() for _, text in _texts(name, each)]
    if isinstance(value, (str, int, float)):
        return [(name, repr(value) if isinstance(value, float) else str(value))]
    if isinstance(value, Sequence):
        return [each for part in value for each in _texts(name, part)]
    raise Error(f"{name} is a {type(value).__name__}, expected a text, a number, or a sequence of them")
