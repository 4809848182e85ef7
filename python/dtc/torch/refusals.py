"""Says of an exception that torch.export or the model raises which operator it is of, in which module and at which line, and
what to do."""

import contextlib
import logging
import os
import re
import traceback

import torch
from torch.overrides import resolve_name

from dtc.capture_text import PACKAGES, shortened

FRAME = re.compile(r'File "([^"]+)", line (\d+)')
ITSELF = os.path.dirname(os.path.abspath(__file__))
# The errors of values that a capture does not have.
OF_DATA = ("GuardOnDataDependentSymNode", "DataDependentOutputException", "DynamicOutputShapeException",
           "PendingUnbackedSymbolNotFound")
READS_DATA = ("numpy", "tolist", "__array__", "item", "__bool__", "__int__", "__float__", "__index__")
# The loggers of torch that print an exception that is explained here.
NOISY = ("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes", "torch.export", "torch._export")


def is_of_user(path):
    """Whether a source file is neither PyTorch's nor of this package."""
    inside = PACKAGES.sub("", path) if PACKAGES.match(path) else path
    return os.path.isabs(path) and not inside.startswith("torch/") and os.path.dirname(os.path.abspath(path)) != ITSELF


def last_place(text):
    """(file, line) of the innermost of the user's frames of a stack trace; None if there is none."""
    found = None
    for path, line in FRAME.findall(text or ""):
        if is_of_user(os.path.abspath(path)):
            found = shortened(path), int(line)
    return found


class Watch:
    """Remembers the operator that an exception comes from, and the modules of a model."""

    def __init__(self, model):
        # By the dictionary: torch.export calls modules through others that share it.
        self.modules = {id(vars(module)): name or "model" for name, module in model.named_modules(remove_duplicate=False)}
        self.operator = self.error = None

    def failed(self, operator, error):
        """Is called with each exception that passes an operator, the innermost first."""
        if error is not self.error:
            self.operator, self.error = operator, error

    def where(self, frames):
        """The module and the user's line that (frame, line) of calls are in, from the outermost."""
        module, place = "loss", None
        for frame, line in frames:
            owner = frame.f_locals.get("self")
            if isinstance(owner, torch.nn.Module):
                module = self.modules.get(id(vars(owner)), module)
            path = frame.f_code.co_filename
            if is_of_user(path) and not path.endswith("/contextlib.py"):
                place = shortened(path), line
        return f"{module} ({place[0]}:{place[1]})" if place else module

    def here(self):
        """Where the caller is."""
        return self.where(reversed(list(traceback.walk_stack(None))))

    def describe(self, error):
        """The text of a CaptureError."""
        where = self.where(traceback.walk_tb(error.__traceback__))
        operator = name_of(self.operator) if self.error is error else None
        # Of what is decomposed after the capture, the text has the node, and the line that it is from.
        if node := re.search(r"While executing %(\w+)", str(error)):
            operator = operator or node[1]
            place = last_place(str(error))
            where = f"{place[0]}:{place[1]}" if place else where
        return f"{where}: {problem_of(error, operator)}"


def name_of(operator):
    return resolve_name(operator) or getattr(operator, "__name__", str(operator))


def problem_of(error, operator):
    """What is wrong, and what to do."""
    kind, text = type(error).__name__, (str(error).strip() or "no text").splitlines()[0].rstrip(".")
    subject = f"'{operator}'" if operator else "this line"
    if kind in OF_DATA or (operator or "").rpartition(".")[2] in READS_DATA:
        return (f"{subject} needs the elements of a tensor, which a capture does not have; choose between tensors by torch.where "
                "instead of by a condition, and leave numbers and shapes that depend on the data as tensors")
    if kind == "FakeTensorDeviceMismatchError":
        return (f"{subject} takes tensors of several devices ({text}); leave the device to the model's own, and make a model without "
                "memory in `with dtc.torch.empty_weights():`, where buffers keep their elements")
    if kind in ("UncapturedHigherOrderOpError", "UnsupportedAliasMutationException", "Unsupported"):
        return (f"{subject} takes functions, such as torch.cond does, which cannot be captured; choose between tensors by torch.where")
    if isinstance(error, NotImplementedError):
        return f"{subject} has no form that torch.export can capture ({text}); write this part with other operators"
    return (f"{subject} fails with {kind}: {text}; try the loss in PyTorch on the example batch, and where it works there, write "
            "this part with other operators")


@contextlib.contextmanager
def quiet():
    """In this context torch logs nothing of what its exceptions say."""
    loggers = [logging.getLogger(name) for name in NOISY]
    before = [each.disabled for each in loggers]
    for each in loggers:
        each.disabled = True
    try:
        yield
    finally:
        for each, disabled in zip(loggers, before, strict=True):
            each.disabled = disabled
