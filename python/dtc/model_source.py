"""Where a model is from: a file of a capture, a module of PyTorch, or parameters of JAX."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from dtc.errors import Error


class ModelSource:
    """Where a model is from: its text, and what it has to say of parameters."""

    file = name = text = ""
    warnings: Sequence[str] = ()
    left_out: Sequence[str] = ()  # inputs of the loss that are none of the plan
    mesh: Mapping[str, int] = {}  # what the shardings of arrays name, and entries of `shard` by them
    shards: Sequence[str] = ()

    @staticmethod
    def of(model, loss, example_batch) -> ModelSource:
        if isinstance(model, (str, os.PathLike)):
            if loss is not None or example_batch is not None:
                raise Error(f"{os.fspath(model)} has its loss and the shapes of its batch; leave loss and example_batch out")
            return _FileSource(model)
        torch = sys.modules.get("torch")
        is_module = torch is not None and isinstance(model, torch.nn.Module)
        if not is_module and not _is_tree(model):
            raise Error(f"model is a {type(model).__name__}, expected a torch.nn.Module, parameters of JAX or the path of a "
                        "captured model")
        if not callable(loss) or example_batch is None:
            what = "a torch.nn.Module needs" if is_module else "parameters of JAX need"
            raise Error(f"{what} a loss, a function (model, batch) -> scalar, and an example_batch")
        return (_ModuleSource if is_module else _TreeSource)(model, loss, example_batch)

    def values(self) -> dict[str, Any] | None:
        """The initial values of parameters; None: by their initializers."""
        return None

    def check_weights(self, name: str, weights: Any) -> None:
        """Checks what could be given to arrays()."""
        if not isinstance(weights, Mapping) and not are_paths(weights):
            raise Error(f"{name} is a {type(weights).__name__}, expected a state_dict, or paths of safetensors files or of a folder")

    def arrays(self, weights: Any) -> dict[str, Any] | None:
        """The arrays of weights by the names of the capture; None for paths."""
        return host_arrays(weights) if isinstance(weights, Mapping) else None

    def state_dict(self, weights: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def pretrained(self):
        """The model of transformers."""
        raise Error("save_pretrained is for models of transformers; write other parameters by save_weights")


class _FileSource(ModelSource):
    def __init__(self, path):
        self.file, self.name = os.fspath(path), pathlib.Path(path).stem
        try:
            self.text = pathlib.Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Error(f"{self.file}: cannot be read: {error}") from None

    def state_dict(self, weights):
        try:
            import numpy
        except ImportError:
            return weights
        return {name: numpy.from_dlpack(each) for name, each in weights.items()}


class _ModuleSource(ModelSource):
    def __init__(self, model, loss, example_batch):
        from dtc.torch import capture
        from dtc.torch.weights import state_names

        captured = capture(model, loss, example_batch)
        self.file = self.name = type(model).__name__
        self.text, self.warnings = captured.text, captured.warnings
        self.model = model
        # Each name of a tied parameter, and the one that the capture has.
        first = state_names(model)
        self.first = {name: first[id(tensor)] for name, tensor in
                      (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))}

    def values(self):
        values = self.model.state_dict()
        if any(each.is_meta or hasattr(each, "fake_mode") for each in values.values()):
            return None
        return self.arrays(values)

    def arrays(self, weights):
        """A tied parameter once, by the name that the capture has."""
        from dtc.torch.weights import converted

        loaded = converted(self.model, weights)
        named = super().arrays(weights if loaded is None else loaded)
        return named if named is None else {self.first.get(name, name): each for name, each in named.items()}

    def pretrained(self):
        if not hasattr(self.model, "save_pretrained"):
            return super().pretrained()
        return self.model

    def state_dict(self, weights):
        import torch

        trained = {name: torch.from_dlpack(each) for name, each in weights.items()}
        return {name: trained.get(self.first.get(name, name), value.detach()) for name, value in self.model.state_dict().items()}


def _is_tree(model) -> bool:
    """Whether a model is parameters of JAX: a pytree with arrays, of JAX or of numpy, or with what has their types."""
    jax = sys.modules.get("jax")
    leaves = jax.tree_util.tree_leaves(model) if jax is not None else []
    return any(hasattr(each, "shape") and hasattr(each, "dtype") for each in leaves)


class _TreeSource(ModelSource):
    """Parameters of JAX."""

    def __init__(self, params, loss, example_batch):
        from dtc.jax import capture

        captured = capture(params, loss, example_batch)
        self.file = self.name = getattr(loss, "__name__", "loss")
        self.text, self.warnings, self.left_out, self.params = captured.text, captured.warnings, captured.left_out, params
        self.mesh, self.shards = captured.mesh, captured.shards

    def values(self):
        import jax

        if any(isinstance(each, jax.ShapeDtypeStruct) for each in jax.tree_util.tree_leaves(self.params)):
            return None
        return self.arrays(self.params)

    def check_weights(self, name, weights):
        self.arrays(weights)

    def arrays(self, weights):
        import numpy

        from dtc.jax import named

        return None if are_paths(weights) else {name: numpy.asarray(each) for name, each in named(weights).items()}

    def state_dict(self, weights):
        import jax
        import numpy

        from dtc.jax import named

        trained = {name: numpy.from_dlpack(each) for name, each in weights.items()}
        leaves = [trained.get(name, each) for name, each in named(self.params).items()]
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(self.params), leaves)


def are_paths(weights: Any) -> bool:
    paths = weights if isinstance(weights, Sequence) and not isinstance(weights, str) else [weights]
    return all(isinstance(each, (str, os.PathLike)) for each in paths)


def host_arrays(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays that the module can read: tensors of torch without gradients and in the memory of the host."""
    return {str(name): each.detach().cpu().contiguous() if hasattr(each, "detach") else each for name, each in arrays.items()}
