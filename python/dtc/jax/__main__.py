"""python -m dtc.jax model.py:make -o captured.mlir"""

import sys

from dtc.command import capture_file
from dtc.jax.capture import CaptureError, capture

if __name__ == "__main__":
    sys.exit(capture_file("dtc.jax", "parameters, a loss (params, batch) -> scalar, and an example batch", capture,
                          CaptureError))
