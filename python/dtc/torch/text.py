"""Types and elements of PyTorch's tensors as MLIR text."""

import torch

from dtc import capture_text
from dtc.capture_text import attributes, location, number, quoted  # noqa: F401

ELEMENT_TYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.bool: "i1"}


def tensor_type(tensor):
    sizes = "".join(f"{int(size)}x" for size in tensor.shape)
    return f"tensor<{sizes}{ELEMENT_TYPES[tensor.dtype]}>"


def attribute(value):
    """The attribute of an argument that is no tensor; None for one that has no meaning for a compiler."""
    if isinstance(value, torch.dtype):
        return ELEMENT_TYPES.get(value)  # of another one the result is refused
    return capture_text.attribute(value)


def elements(tensor):
    """The elements of a tensor as a dense attribute."""
    flat = tensor.detach().cpu().contiguous().flatten()
    is_float = flat.is_floating_point()
    if not capture_text.is_written_out(flat.numel(), flat.dtype == torch.bool, not is_float or bool(flat.isfinite().all())):
        return capture_text.dense(flat.view(torch.uint8).numpy().tobytes(), tensor.shape)
    return capture_text.dense((flat.double() if is_float else flat).tolist(), tensor.shape)
