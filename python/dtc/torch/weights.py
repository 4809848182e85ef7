"""Fake weights: tensors that have a shape and no elements."""

import contextlib
import copy
import json
import os
import pathlib

import torch

from dtc.errors import Error


@contextlib.contextmanager
def empty_weights():
    """Modules that are made in this context have parameters without memory, and buffers with their values."""
    register = torch.nn.Module.register_parameter
    made = {}  # by id: the parameter, which keeps its id, and the one without memory, for a tied one stays one

    def register_empty(module, name, parameter):
        if parameter is not None and parameter.device.type != "meta":
            _, parameter = made.setdefault(id(parameter), (parameter, type(parameter)(
                parameter.to("meta"), requires_grad=parameter.requires_grad)))
        register(module, name, parameter)

    torch.nn.Module.register_parameter = register_empty
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def state_names(model):
    """The name in the state_dict of each parameter and buffer, by id: of a tied one the first."""
    names = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        names.setdefault(id(tensor), name)
    return names


@contextlib.contextmanager
def faked(model, mode):
    """The model with fake parameters on the CPU, in tied places the same one. The model's own are not read, and are
    there again afterwards. Yields the originals by the id of the fake ones."""
    fakes, originals, places = {}, {}, []
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                places.append((module._parameters, name, parameter))
    with mode:
        for _, _, parameter in places:
            if id(parameter) not in fakes:
                fake = torch.nn.Parameter(torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu"),
                                          requires_grad=parameter.requires_grad)
                fakes[id(parameter)], originals[id(fake)] = fake, parameter
    try:
        for parameters, name, parameter in places:
            parameters[name] = fakes[id(parameter)]
        yield originals
    finally:
        for parameters, name, parameter in places:
            parameters[name] = parameter


def values_without_memory(model):
    """The values of buffers on the device "meta", by name, where transformers can compute them again: its models
    initialize what follows from the configuration, such as the frequencies of rotary positions, module by module."""
    values = {}
    initialize = getattr(model, "_init_weights", None)
    for path, module in model.named_modules():
        buffers = {name: buffer for name, buffer in module._buffers.items() if buffer is not None and buffer.is_meta}
        if not buffers or initialize is None or any(True for _ in module.parameters()):
            continue
        again = copy.copy(module)
        # The sentinel finds what was not initialized.
        again._buffers = {name: torch.full(buffer.shape, torch.nan, dtype=buffer.dtype) if buffer.is_floating_point()
                          else buffer for name, buffer in module._buffers.items()}
        with torch.no_grad():
            initialize(again)
        for name in buffers:
            value = again._buffers[name]
            if not value.is_meta and not value.isnan().any():
                values[f"{path}.{name}" if path else name] = value
    return values


def names_in(folder):
    """The names of the tensors of a folder that transformers' save_pretrained() has written; none where it is no such folder."""
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if not (folder / "config.json").is_file():
        return set()
    if index.is_file():
        return set(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
    if not single.is_file():
        return set()
    from safetensors import safe_open  # a part of every installation of transformers

    with safe_open(single, framework="pt") as file:
        return set(file.keys())


def converted(model, weights):
    """The state_dict of a model of transformers from a folder whose files have other tensors than its module, such as one for
    each expert: transformers puts them together. None where weights are anything else."""
    if not isinstance(weights, (str, os.PathLike)) or not hasattr(model, "from_pretrained"):
        return None
    try:
        names = names_in(pathlib.Path(weights))
    except Exception:  # safetensors has errors of its own
        return None  # the reading of the files reports it
    wanted = set(state_names(model).values()) & set(model.state_dict())
    if not names or wanted <= names:
        return None
    kind = next((each.dtype for each in model.parameters()), torch.float32)
    try:
        loaded, problems = type(model).from_pretrained(os.fspath(weights), dtype=kind, output_loading_info=True)
    except Exception as error:
        raise Error(f"{os.fspath(weights)}: transformers does not load it: {type(error).__name__}: {error}") from None
    if missing := sorted(problems["missing_keys"]):
        raise Error(f"{os.fspath(weights)}: has no tensor for the parameter \"{missing[0]}\"")
    return loaded.state_dict()
