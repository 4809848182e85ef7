"""Optimizers with their settings. What is None is what dtc-compile has without the flag (docs/reference.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dtc.errors import Error

LearningRate = float | Callable[[int], float]


@dataclass
class Optimizer:
    """What all optimizers have.

    lr: the learning rate, or a function of the number of the step, from 1, that gives it. It can be changed between steps.
    weight_decay: of parameters with two or more dimensions; it is multiplied by the learning rate.
    clip: the largest norm of all gradients together; 0 does not clip.
    """

    lr: LearningRate = 1e-3
    weight_decay: float | None = None
    clip: float | None = None

    name = ""

    def options(self) -> dict[str, object]:
        """The options of dtc-compile."""
        return {"optimizer": self.name, "weight_decay": self.weight_decay, "clip": self.clip}

    def rate(self, step: int) -> float:
        """The learning rate of a step; 1 is the first."""
        rate = self.lr(step) if callable(self.lr) else self.lr
        try:
            return float(rate)
        except (TypeError, ValueError):
            raise Error(f"the learning rate of step {step} is {rate!r}, expected a number") from None


@dataclass
class _Moments(Optimizer):
    betas: tuple[float | None, float | None] = (None, None)

    def options(self) -> dict[str, object]:
        try:
            beta1, beta2 = self.betas
        except (TypeError, ValueError):
            raise Error(f"betas is {self.betas!r}, expected two numbers") from None
        return super().options() | {"beta1": beta1, "beta2": beta2}


@dataclass
class Adam(_Moments):
    """Adam (Kingma and Ba 2015). betas: decay of the first and of the second moment; eps is added to the root of the second."""

    eps: float | None = None
    name = "adam"

    def options(self) -> dict[str, object]:
        return super().options() | {"eps": self.eps}


@dataclass
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    name = "adamw"


@dataclass
class Lion(_Moments):
    """Lion (Chen et al. 2023). betas: the part of the momentum in the update, and its decay."""

    name = "lion"


@dataclass
class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

    momentum: float | None = None
    name = "sgd"

    def options(self) -> dict[str, object]:
        return super().options() | {"momentum": self.momentum}
