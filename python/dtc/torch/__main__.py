"""python -m dtc.torch model.py:make -o captured.mlir"""

import argparse
import importlib.util
import os
import sys

from dtc.torch.capture import CaptureError, capture


def load(path):
    """The module of a file, which can import what lies beside it."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(prog="python -m dtc.torch", description="Captures a torch.nn.Module for dtc-import.")
    parser.add_argument("model", metavar="FILE.py:FUNCTION",
                        help="the function returns a model, its loss (model, batch) -> scalar, and an example batch")
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
    except CaptureError as error:
        sys.exit(f"error: {error}")
    for warning in captured.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    captured.write(arguments.output)


if __name__ == "__main__":
    main()
