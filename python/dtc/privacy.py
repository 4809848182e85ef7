"""The privacy that training with DP-SGD (dp_sgd of dtc.compile) spends.

    python3 -m dtc.privacy --noise 1.1 --batch 256 --samples 60000 --delta 1e-5 (--steps 5000 | --budget 3.0)

says what epsilon steps spend, or how many steps a budget allows. The accounting is that of the package dp-accounting: Renyi
differential privacy of the Gaussian mechanism on samples that are drawn by Poisson sampling (Mironov, Talwar and Zhang,
"Renyi differential privacy of the sampled Gaussian mechanism", arXiv:1908.10530).
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import numbers
import re
from collections.abc import Collection

from dtc.errors import Error


@dataclasses.dataclass
class Accountant:
    """What steps with noise spend of a privacy budget. Epsilon depends on the number of the steps and on these alone:

    noise: the standard deviation of the noise of a sum of gradients, in units of the clip (S of dp_sgd), above 0.
    batch: the samples of a step, over all devices and batches of `accumulate`.
    samples: those of the data. A step is taken to have each of them with the probability batch / samples.
    delta: of (epsilon, delta)-differential privacy, above 0 and below 1; less than 1 / samples is usual.
    budget: the largest epsilon; None: no limit.
    """

    noise: float
    batch: int
    samples: int
    delta: float
    budget: float | None = None
    _known: dict[int, float] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def __post_init__(self):
        for name, least in (("batch", 1), ("samples", 1)):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
                raise Error(f"{name} is {value!r}, expected a whole number of at least {least}")
        if self.batch > self.samples:
            raise Error(f"batch is {self.batch}, expected at most the {self.samples} samples of the data")
        for name in ("noise", "delta") + (("budget",) if self.budget is not None else ()):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or not math.isfinite(value) or value <= 0:
                raise Error(f"{name} is {value!r}, expected a finite number above 0")
        if self.delta >= 1:
            raise Error(f"delta is {self.delta}, expected less than 1")

    def epsilon(self, steps: int) -> float:
        """What that many steps spend: they are (epsilon, delta)-differentially private together."""
        if steps == 0:
            return 0.0
        if steps not in self._known:
            package = _package()
            mechanism = package.GaussianDpEvent(self.noise)
            if self.batch < self.samples:
                mechanism = package.PoissonSampledDpEvent(self.batch / self.samples, mechanism)
            accountant = package.rdp.RdpAccountant()
            accountant.compose(mechanism, steps)
            self._known[steps] = float(accountant.get_epsilon(self.delta))
        return self._known[steps]

    def steps(self) -> int:
        """How many steps the budget allows."""
        if self.budget is None:
            raise Error("the accountant has no budget, expected one, such as budget=3.0")
        least, most = 0, 1
        while self.epsilon(most) <= self.budget:
            least, most = most, 2 * most
            if most > 2**40:
                raise Error(f"the budget of {self.budget} allows more than 2^40 steps")
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if self.epsilon(middle) <= self.budget else (least, middle)
        return least

    def allows(self, steps: int) -> bool:
        """Whether that many steps are within the budget."""
        return self.budget is None or self.epsilon(steps) <= self.budget

    def check(self, dp_sgd: str | None, samples: Collection[int] = ()) -> None:
        """Raises an Error where a step with this dp_sgd has other noise, or where inputs of a step have `samples`
        and the number of its samples here is not among them."""
        found = re.fullmatch(r".*\bnoise=([^,]+).*", dp_sgd or "")
        noise = float(found[1]) if found else 0.0
        if noise != self.noise:
            raise Error(f"the step adds noise of {noise:g} (dp_sgd), and the accountant counts on {self.noise:g}; expected the same")
        if samples and self.batch not in samples:
            raise Error(f"the step has {max(samples)} samples, and the accountant counts on a batch of {self.batch}; expected the same")


def _package():
    try:
        import dp_accounting
    except ImportError:
        raise Error("the package dp-accounting is missing: it computes the privacy that is spent; install it "
                    "(pip install dp-accounting)") from None
    return dp_accounting


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m dtc.privacy", description="What privacy steps of DP-SGD spend.")
    parser.add_argument("--noise", type=float, required=True, help="S of --dp-sgd clip=C,noise=S")
    parser.add_argument("--batch", type=int, required=True, help="the samples of a step")
    parser.add_argument("--samples", type=int, required=True, help="those of the data")
    parser.add_argument("--delta", type=float, required=True)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--steps", type=int, help="says what epsilon they spend")
    given.add_argument("--budget", type=float, help="an epsilon; says how many steps it allows")
    options = parser.parse_args(arguments)
    try:
        accountant = Accountant(options.noise, options.batch, options.samples, options.delta, options.budget)
        if options.steps is not None and options.steps < 0:
            raise Error(f"steps is {options.steps}, expected a number of at least 0")
        steps = accountant.steps() if options.steps is None else options.steps
        print(f"{steps} steps: epsilon {accountant.epsilon(steps):.6g}, delta {options.delta:g}")
    except Error as error:
        parser.exit(1, f"error: {error}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
