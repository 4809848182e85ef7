"""MLIR text of a captured graph: the attributes, types and locations of ops in generic form."""

import json
import math
import re

import torch

ELEMENT_TYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.bool: "i1"}


def quoted(text):
    """A string of MLIR, in which bytes that are not printable ASCII are two hexadecimal digits."""
    escape = lambda byte: chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
    return '"' + "".join(map(escape, text.encode())) + '"'


def tensor_type(tensor):
    sizes = "".join(f"{int(size)}x" for size in tensor.shape)
    return f"tensor<{sizes}{ELEMENT_TYPES[tensor.dtype]}>"


def number(value):
    """A float so that it reads back as the same."""
    if not math.isfinite(value):
        bits = {math.inf: "7FF0000000000000", -math.inf: "FFF0000000000000"}.get(value, "7FF8000000000000")
        return f"0x{bits} : f64"
    digits, exponent, power = repr(float(value)).partition("e")
    return f"{digits if '.' in digits else digits + '.0'}{exponent}{power} : f64"


def attribute(value):
    """The attribute of an argument that is no tensor; None for one that has no meaning for a compiler."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, torch.dtype):
        return ELEMENT_TYPES.get(value)  # of another one the result is refused
    if isinstance(value, (list, tuple)):
        if all(isinstance(each, bool) for each in value) and value:
            return f"array<i1: {', '.join('true' if each else 'false' for each in value)}>"
        if all(isinstance(each, int) for each in value):
            return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"
        if all(isinstance(each, float) for each in value):
            return f"array<f64: {', '.join(number(each).partition(' ')[0] for each in value)}>"
    return None


def elements(tensor):
    """The elements of a tensor as a dense attribute, in hexadecimal digits if they are many."""
    flat = tensor.detach().cpu().contiguous().flatten()
    if flat.dtype == torch.bool:
        words = ["true" if each else "false" for each in flat.tolist()]
    elif flat.numel() > 64 or (flat.is_floating_point() and not bool(flat.isfinite().all())):
        return f'dense<"0x{flat.view(torch.uint8).numpy().tobytes().hex().upper()}">'
    elif flat.is_floating_point():
        words = [number(each).partition(" ")[0] for each in flat.double().tolist()]
    else:
        words = list(map(str, flat.tolist()))
    words.reverse()

    def nested(shape):
        return words.pop() if not shape else "[" + ", ".join(nested(shape[1:]) for _ in range(shape[0])) + "]"
    return f"dense<{nested(tuple(tensor.shape)) if flat.numel() else ''}>"


def location(path, place):
    """The location of an op of the module `path` at `place`, (file, line) or None."""
    if place is None:
        return f"loc({quoted(path)})"
    return f"loc({quoted(path)}({quoted(place[0])}:{place[1]}:0))"


def attributes(named):
    """{name: text} as a dictionary attribute, and nothing if it is empty."""
    def key(name):
        return name if re.fullmatch(r"[a-zA-Z_][\w$.]*", name) else json.dumps(name)
    return " {" + ", ".join(f"{key(name)} = {text}" for name, text in named.items()) + "}" if named else ""
