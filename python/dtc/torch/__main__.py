"""python -m dtc.torch model.py:make -o captured.mlir"""

import sys

from dtc.command import capture_file
from dtc.torch.capture import CaptureError, capture

if __name__ == "__main__":
    sys.exit(capture_file("dtc.torch", "a model, its loss (model, batch) -> scalar, and an example batch", capture, CaptureError))
