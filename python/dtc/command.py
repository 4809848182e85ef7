"""The command lines of dtc.torch and dtc.jax."""

import argparse
import importlib.util
import os
import sys


def load(path):
    """The module of a file, which can import what lies beside it."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


def function_of(text):
    """The function that FILE.py:FUNCTION names. Raises ValueError."""
    path, separator, name = text.rpartition(":")
    if not separator or not os.path.isfile(path):
        raise ValueError(f"'{text}' is not of the form FILE.py:FUNCTION, or the file does not exist")
    make = getattr(load(path), name, None)
    if not callable(make):
        raise ValueError(f"{path} has no function '{name}'")
    return make


def write(captured, path):
    """Writes a capture, and prints what dtc-compile does not find in it."""
    for warning in captured.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if captured.shards:
        mesh = ",".join(f"{axis}={size}" for axis, size in captured.mesh.items())
        print(f"note: the shardings of the arrays are none of the file; give dtc-compile --mesh {mesh} --shard "
              f"'{','.join(captured.shards)}'", file=sys.stderr)
    captured.write(path)


def capture_any(make):
    """The capture of what a function returns: of PyTorch where a torch.nn.Module is first, else of JAX."""
    made = make()
    if "torch" in sys.modules and isinstance(made[0], sys.modules["torch"].nn.Module):
        from dtc.torch import capture
    else:
        from dtc.jax import capture
    return capture(*made)


def capture_file(package, returns, capture, expected_error):
    """Captures what the function FILE.py:FUNCTION of the command line returns; an error text, or None."""
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description="Captures a model for dtc-import.")
    parser.add_argument("model", metavar="FILE.py:FUNCTION", help=f"the function returns {returns}")
    parser.add_argument("-o", "--output", required=True, help="the file to write")
    arguments = parser.parse_args()
    try:
        make = function_of(arguments.model)
    except ValueError as error:
        parser.error(str(error))
    try:
        captured = capture(*make())
    except expected_error as error:
        return f"error: {error}"
    write(captured, arguments.output)
    return None
