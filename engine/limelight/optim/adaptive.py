"""Optimisers that scale each element's step by the gradients that it has had."""

from __future__ import annotations

from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.optim.argument_checks import fraction, not_negative
from limelight.optim.optimizer import Optimizer, Schedule, Slots, Target


def update_average(slot: Target, x: Tensor, keep: float) -> Tensor:
    """The moving average kept in `slot`, brought up to date: keep x slot + (1 - keep) x `x`."""
    return slot.assign(keep * slot.read_value() + (1.0 - keep) * x)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015, Algorithm 1): moving averages of the gradient and of its square, corrected for bias.

    v -= rate m̂ / (√ŝ + epsilon), with m̂ = m / (1 - beta1^t) and ŝ = s / (1 - beta2^t).

    Args:
        learning_rate: a number from 0 on, a Variable or a schedule, see `Optimizer`; 0.001.
        beta1: how much of the average m of the gradient is kept in a step; 0 <= beta1 < 1; 0.9.
        beta2: how much of the average s of its square is kept; 0 <= beta2 < 1; 0.999.
        epsilon: added to √ŝ, at least 0; 1e-8.

    Raises:
        ArgumentError: a setting is out of its range.

    >>> import limelight as ll
    >>> v, optimizer = ll.Variable([1.0, 1.0]), ll.optim.Adam(0.5)
    >>> optimizer.apply([ll.constant([5.0, -0.01])], [v])  # the first step has the size of the rate
    >>> v.numpy().round(3).tolist()
    [0.5, 1.5]
    """

    slot_names = ("mean", "square")

    def __init__(
        self,
        learning_rate: float | Variable | Schedule = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(learning_rate)
        name = type(self).__name__
        self.beta1 = fraction(name, "beta1", beta1)
        self.beta2 = fraction(name, "beta2", beta2)
        self.epsilon = not_negative(name, "epsilon", epsilon)

    def change(self, gradient: Tensor, variable: Target, slots: Slots, rate: Tensor, t: Tensor) -> Tensor:
        mean = update_average(slots["mean"], gradient, self.beta1)
        square = update_average(slots["square"], gradient.square(), self.beta2)
        mean = mean / (1.0 - self.beta1**t).astype(gradient.dtype)
        square = square / (1.0 - self.beta2**t).astype(gradient.dtype)
        return rate * mean / (square.sqrt() + self.epsilon)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019): v also loses rate x weight_decay x v.

    Every variable that is handed to `apply` decays; keep those that should not (biases, scales) for another optimiser.

    Args:
        learning_rate: a number from 0 on, a Variable or a schedule, see `Optimizer`; 0.001.
        beta1: how much of the average of the gradient is kept in a step; 0 <= beta1 < 1; 0.9.
        beta2: how much of the average of its square is kept; 0 <= beta2 < 1; 0.999.
        epsilon: added to the root of that average, at least 0; 1e-8.
        weight_decay: the part of a variable that it loses in a step, times the learning rate; at least 0; 0.01.

    Raises:
        ArgumentError: a setting is out of its range.

    >>> import limelight as ll
    >>> v = ll.Variable(1.0)
    >>> ll.optim.AdamW(0.1, weight_decay=0.5).apply([ll.constant(0.0)], [v])
    >>> round(v.read_value().item(), 6)
    0.95
    """

    def __init__(
        self,
        learning_rate: float | Variable | Schedule = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon)
        self.weight_decay = not_negative("AdamW", "weight_decay", weight_decay)

    def change(self, gradient: Tensor, variable: Target, slots: Slots, rate: Tensor, t: Tensor) -> Tensor:
        decay = rate * self.weight_decay * variable.read_value().astype(rate.dtype)
        return super().change(gradient, variable, slots, rate, t) + decay


class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton 2012): v -= rate g / (√s + epsilon), s the moving average of g².

    Args:
        learning_rate: a number from 0 on, a Variable or a schedule, see `Optimizer`; 0.001.
        decay: how much of the average s is kept in a step; 0 <= decay < 1; 0.9.
        epsilon: added to √s, at least 0; 1e-8.

    Raises:
        ArgumentError: a setting is out of its range.

    >>> import limelight as ll
    >>> v = ll.Variable(1.0)
    >>> ll.optim.RMSProp(0.1, decay=0.75).apply([ll.constant(2.0)], [v])
    >>> round(v.read_value().item(), 6)
    0.8
    """

    slot_names = ("square",)

    def __init__(
        self, learning_rate: float | Variable | Schedule = 0.001, decay: float = 0.9, epsilon: float = 1e-8
    ) -> None:
        super().__init__(learning_rate)
        self.decay = fraction("RMSProp", "decay", decay)
        self.epsilon = not_negative("RMSProp", "epsilon", epsilon)

    def change(self, gradient: Tensor, variable: Target, slots: Slots, rate: Tensor, t: Tensor) -> Tensor:
        square = update_average(slots["square"], gradient.square(), self.decay)
        return rate * gradient / (square.sqrt() + self.epsilon)


class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan and Singer 2011): v -= rate g / (√s + epsilon), s the sum of all g² so far.

    Args:
        learning_rate: a number from 0 on, a Variable or a schedule, see `Optimizer`; 0.01.
        epsilon: added to √s, at least 0; 1e-10.

    Raises:
        ArgumentError: a setting is out of its range.

    >>> import limelight as ll
    >>> v = ll.Variable(1.0)
    >>> ll.optim.Adagrad(0.1).apply([ll.constant(2.0)], [v])
    >>> round(v.read_value().item(), 6)
    0.9
    """

    slot_names = ("square",)

    def __init__(self, learning_rate: float | Variable | Schedule = 0.01, epsilon: float = 1e-10) -> None:
        super().__init__(learning_rate)
        self.epsilon = not_negative("Adagrad", "epsilon", epsilon)

    def change(self, gradient: Tensor, variable: Target, slots: Slots, rate: Tensor, t: Tensor) -> Tensor:
        square = slots["square"].assign(slots["square"].read_value() + gradient.square())
        return rate * gradient / (square.sqrt() + self.epsilon)
