"""dtc trains models on many devices: compile() makes a training step of a model of PyTorch or JAX (docs/python.md).

dtc.torch and dtc.jax, which capture models for dtc-import, are plain Python. The other names need the extension module dtc._native, which
a wheel has and a build with -DDTC_BUILD_PYTHON=ON makes.
"""

import os

from dtc.errors import Error

# CUDA reads it at its first call, which may be PyTorch's: with the 8 hardware queues that are the default, messages of a pipeline
# over NCCL may wait for each other.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")

_NATIVE = {"compile": "step", "Step": "step", "Adam": "optimizers", "AdamW": "optimizers", "Lion": "optimizers",
           "SGD": "optimizers"}

__all__ = ["Error", *_NATIVE]


def __getattr__(name):
    if name not in _NATIVE:
        raise AttributeError(f"module 'dtc' has no attribute '{name}'")
    import importlib

    try:
        value = getattr(importlib.import_module(f"dtc.{_NATIVE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "dtc._native":
            raise
        raise ImportError(f"dtc.{name} needs the module dtc._native, which this copy of dtc lacks; install a wheel of "
                          "scripts/package-python.sh, or build with -DDTC_BUILD_PYTHON=ON and set PYTHONPATH to python in "
                          "the build folder") from error
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *_NATIVE])
