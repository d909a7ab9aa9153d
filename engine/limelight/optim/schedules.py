"""Learning rates that change with the number of updates done.

A schedule is called with that number, a float64 scalar that starts at 0, and computes with tensors: so a staged step
follows it without a new trace. Called by hand, with an int or an integer tensor, these return float32, so that they
widen nothing that they are multiplied with; with a floating tensor its dtype. Any function of a number of updates is a
schedule; these are the usual ones.

>>> import limelight as ll
>>> ll.optim.SGD(ll.optim.schedules.Cosine(0.1, steps=1000, warmup=100))
SGD(Cosine(rate=0.1, steps=1000, warmup=100, final=0.0))
>>> ll.optim.SGD(lambda done: 0.1 / (1.0 + done)).learning_rate(3.0)
0.025
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING, Any

from limelight.core import dtypes
from limelight.core.tensor import Tensor, TensorLike, beside
from limelight.errors import ArgumentError
from limelight.ops.elementwise.extremes import clip
from limelight.ops.elementwise.rounding import floor
from limelight.ops.elementwise.trigonometry import cos
from limelight.ops.elementwise.where import where
from limelight.optim.argument_checks import not_negative, positive
from limelight.user_code import hints
from limelight.user_code.tracebacks import in_place_of_python

__all__ = ["Constant", "Cosine", "Exponential", "Polynomial", "Step"]

if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("optim.schedules")
__dir__ = hints.listing(__all__)


class _Schedule(ABC):
    """A schedule that is computed in float64, whatever the number of updates is given in."""

    def __call__(self, step: TensorLike) -> Tensor:
        given = beside(step, dtypes.float32)
        wanted = given.dtype if dtypes.is_floating(given.dtype) else dtypes.float32
        return self._at(given.astype(dtypes.float64)).astype(wanted)

    @in_place_of_python
    def __float__(self) -> float:
        raise TypeError(
            f"{self!r} is a schedule, no number: the rate of now is optimizer.learning_rate(optimizer.step).item()"
        )

    if not TYPE_CHECKING:  # type checkers are to know of names that are missing

        @in_place_of_python
        def __getattr__(self, name: str) -> Any:
            if name in ("assign", "item", "numpy"):
                raise AttributeError(
                    f"{self!r} is a schedule, which has no {name}: the rate of now is "
                    "optimizer.learning_rate(optimizer.step); a rate to assign to is a number: ll.optim.Adam(1e-3)"
                )
            hint = ": it is a function of the number of updates, which the optimiser counts" if name == "step" else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    @abstractmethod
    def _at(self, step: Tensor) -> Tensor:
        """The rate after `step` updates, a float64 scalar, of its dtype."""


@dataclass(frozen=True)
class Constant(_Schedule):
    """A constant schedule: always `rate`.

    Args:
        rate: the learning rate.

    >>> import limelight as ll
    >>> ll.optim.schedules.Constant(0.5)(10).item()
    0.5
    """

    rate: float

    def _at(self, step: Tensor) -> Tensor:
        return 0.0 * step + self.rate


@dataclass(frozen=True)
class Step(_Schedule):
    """Step decay: `rate`, multiplied by `factor` after each `every` updates.

    Args:
        rate: the learning rate at first.
        every: a number of updates above 0.
        factor: what the rate is multiplied by; 0.1.

    Raises:
        ArgumentError: `every` is not above 0.

    >>> import limelight as ll
    >>> [ll.optim.schedules.Step(0.5, every=10, factor=0.5)(t).item() for t in (0, 9, 10, 20)]
    [0.5, 0.5, 0.25, 0.125]
    """

    rate: float
    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        positive("Step", "every", self.every)

    def _at(self, step: Tensor) -> Tensor:
        return self.rate * self.factor ** floor(step / self.every)


@dataclass(frozen=True)
class Exponential(_Schedule):
    """Exponential decay: `rate` x `factor`^(step / `every`), a little in each update.

    Args:
        rate: the learning rate at first.
        factor: what the rate is multiplied by over each `every` updates, above 0.
        every: a number of updates, at least 1; 1.

    Raises:
        ArgumentError: `factor` is not above 0, or `every` below 1.

    >>> import limelight as ll
    >>> [round(ll.optim.schedules.Exponential(1.0, factor=0.25, every=2)(t).item(), 6) for t in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """

    rate: float
    factor: float
    every: int = 1

    def __post_init__(self) -> None:
        positive("Exponential", "factor", self.factor)
        positive("Exponential", "every", self.every)
        if self.every < 1:
            raise ArgumentError(
                f"Exponential: every must be a number of updates, at least 1, got {self.every}; the factor comes "
                f"second: write Exponential({self.rate}, factor={self.every}, every={self.factor})"
            )

    def _at(self, step: Tensor) -> Tensor:
        return self.rate * self.factor ** (step / self.every)


@dataclass(frozen=True)
class Polynomial(_Schedule):
    """Polynomial decay: final + (rate - final)(1 - step / steps)^power over `steps` updates; then `final`.

    Args:
        rate: the learning rate at first.
        steps: the number of updates over which it decays, above 0.
        power: the exponent, above 0; 1, which is linear decay.
        final: the learning rate in the end; 0.

    Raises:
        ArgumentError: `steps` or `power` is not above 0.

    >>> import limelight as ll
    >>> [ll.optim.schedules.Polynomial(1.0, steps=4)(t).item() for t in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """

    rate: float
    steps: int
    power: float = 1.0
    final: float = 0.0

    def __post_init__(self) -> None:
        positive("Polynomial", "steps", self.steps)
        positive("Polynomial", "power", self.power)

    def _at(self, step: Tensor) -> Tensor:
        left = 1.0 - clip(step / self.steps, 0.0, 1.0)
        return self.final + (self.rate - self.final) * left**self.power


@dataclass(frozen=True)
class Cosine(_Schedule):
    """Cosine decay with linear warm-up (Loshchilov and Hutter 2017, without restarts).

    Up to `rate` in a line over the first `warmup` updates, then down to `final` along half a cosine until `steps`. The
    first update has rate / warmup, the one numbered `warmup` the full rate.

    Args:
        rate: the largest learning rate.
        steps: the number of the update from which it is `final`.
        warmup: the number of updates over which it rises; 0 <= warmup < steps; 0.
        final: the learning rate in the end; 0.

    Raises:
        ArgumentError: `warmup` is out of its range.

    >>> import limelight as ll
    >>> schedule = ll.optim.schedules.Cosine(1.0, steps=6, warmup=2)
    >>> [round(schedule(t).item(), 4) for t in (0, 1, 2, 4, 6, 99)]
    [0.5, 1.0, 1.0, 0.5, 0.0, 0.0]
    """

    rate: float
    steps: int
    warmup: int = 0
    final: float = 0.0

    def __post_init__(self) -> None:
        not_negative("Cosine", "warmup", self.warmup)
        if not self.warmup < self.steps:
            raise ArgumentError(f"Cosine: warmup must be below steps, got {self.warmup} and {self.steps}")

    def _at(self, step: Tensor) -> Tensor:
        done = clip((step - self.warmup) / (self.steps - self.warmup), 0.0, 1.0)
        falling = self.final + (self.rate - self.final) * 0.5 * (1.0 + cos(pi * done))
        rising = self.rate * (step + 1.0) / max(self.warmup, 1)
        return where(step < self.warmup, rising, falling)
