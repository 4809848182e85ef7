"""Captures a loss of JAX as text that dtc-import reads (docs/python.md)."""

from dtc.jax.capture import Captured, CaptureError, capture, named

__all__ = ["Captured", "CaptureError", "capture", "named"]
