"""MLIR text of a captured graph: the attributes, types and locations of ops in generic form."""

import json
import math
import os
import re

PACKAGES = re.compile(r".*/(?:site|dist)-packages/")


class Captured:
    """A captured model: `text` is what dtc-import reads, `warnings` what its user should know. `left_out` names inputs that the
    loss has and the captured one has not: keys of random numbers. `mesh`, {axis: size}, and `shards`, entries of dtc-compile --shard, are
    what the shardings of its arrays say."""

    def __init__(self, source, warnings, left_out=(), mesh=None, shards=()):
        self.text, self.warnings, self.left_out = source, warnings, left_out
        self.mesh, self.shards = mesh or {}, list(shards)

    def write(self, path):
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="ascii") as file:
                file.write(self.text)
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)


def shortened(path):
    """A path that says the same on another machine: relative to the working directory, or to the packages."""
    if PACKAGES.match(path):
        return PACKAGES.sub("", path)
    inside = os.path.relpath(path)
    return os.path.basename(path) if inside.startswith("..") else inside


def quoted(text):
    """A string of MLIR, in which bytes that are not printable ASCII are two hexadecimal digits."""
    escape = lambda byte: chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
    return '"' + "".join(map(escape, text.encode())) + '"'


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
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(each, str) for each in value):
            return "[" + ", ".join(map(quoted, value)) + "]"
        if all(isinstance(each, bool) for each in value) and value:
            return f"array<i1: {', '.join('true' if each else 'false' for each in value)}>"
        if all(isinstance(each, int) for each in value):
            return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"
        if all(isinstance(each, float) for each in value):
            return f"array<f64: {', '.join(number(each).partition(' ')[0] for each in value)}>"
    return None


def is_written_out(count, is_truth, is_finite):
    """Whether elements are written one by one. Truth values always are: their bytes would be eight elements each."""
    return is_truth or (count <= 64 and is_finite)


def dense(values, shape):
    """A dense attribute of elements: a flat list of them, or their bytes."""
    if isinstance(values, bytes):
        return f'dense<"0x{values.hex().upper()}">'
    words = [number(each).partition(" ")[0] if isinstance(each, float) else str(each).lower() for each in values]
    words.reverse()

    def nested(sizes):
        return words.pop() if not sizes else "[" + ", ".join(nested(sizes[1:]) for _ in range(sizes[0])) + "]"
    return f"dense<{nested(tuple(shape)) if values else ''}>"


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
