"""Captures a torch.nn.Module and its loss as text that dtc-import reads (docs/python.md)."""

from dtc.torch.capture import Captured, CaptureError, capture
from dtc.torch.gradients import differentiate
from dtc.torch.mixtures import experts
from dtc.torch.weights import empty_weights

__all__ = ["Captured", "CaptureError", "capture", "differentiate", "empty_weights", "experts"]
