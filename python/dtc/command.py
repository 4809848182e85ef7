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


def capture_file(package, returns, capture, expected_error):
    """Captures what the function FILE.py:FUNCTION of the command line returns; an error text, or None."""
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description="Captures a model for dtc-import.")
    parser.add_argument("model", metavar="FILE.py:FUNCTION", help=f"the function returns {returns}")
    parser.add_argument("-o", "--output", required=True, help="the file to write")
    arguments = parser.parse_args()
    path, separator, name = arguments.model.rpartition(":")
    if not separator or not os.path.isfile(path):
        parser.error(f"'{arguments.model}' is not of the form FILE.py:FUNCTION, or the file does not exist")
    make = getattr(load(path), name, None)
    if not callable(make):
        parser.error(f"{path} has no function '{name}'")
    try:
        captured = capture(*make())
    except expected_error as error:
        return f"error: {error}"
    for warning in captured.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if captured.shards:
        mesh = ",".join(f"{axis}={size}" for axis, size in captured.mesh.items())
        print(f"note: the shardings of the arrays are none of the file; give dtc-compile --mesh {mesh} --shard "
              f"'{','.join(captured.shards)}'", file=sys.stderr)
    captured.write(arguments.output)
    return None
