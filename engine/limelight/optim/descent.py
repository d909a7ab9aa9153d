"""Gradient descent, plain and with momentum."""

from __future__ import annotations

from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.optim.argument_checks import flag, fraction
from limelight.optim.optimizer import Optimizer, Schedule, Slots, Target


class SGD(Optimizer):
    """Stochastic gradient descent (Robbins and Monro 1951): v -= rate g.

    Args:
        learning_rate: a number from 0 on, a Variable or a schedule, see `Optimizer`; 0.01.

    Raises:
        ArgumentError: a setting is out of its range.

    >>> import limelight as ll
    >>> v = ll.Variable([1.0, 2.0])
    >>> ll.optim.SGD(0.5).apply([ll.constant([1.0, -1.0])], [v])
    >>> v.numpy().tolist()
    [0.5, 2.5]
    """

    def __init__(self, learning_rate: float | Variable | Schedule = 0.01) -> None:
        super().__init__(learning_rate)

    def change(self, gradient: Tensor, variable: Target, slots: Slots, rate: Tensor, t: Tensor) -> Tensor:
        return rate * gradient


class Momentum(Optimizer):
    """Gradient descent with momentum (Polyak 1964): m = momentum m + g, v -= rate m.

    Args:
        learning_rate: a number from 0 on, a Variable or a schedule, see `Optimizer`; 0.01.
        momentum: how much of the momentum is kept in a step; 0 <= momentum < 1; 0.9.
        nesterov: whether v -= rate (g + momentum m): the gradient counts as taken one step ahead (Sutskever et al.
            2013). False.

    Raises:
        ArgumentError: a setting is out of its range.

    >>> import limelight as ll
    >>> v, optimizer = ll.Variable(1.0), ll.optim.Momentum(0.1, momentum=0.5)
    >>> for _ in range(2):
    ...     optimizer.apply([ll.constant(1.0)], [v])
    >>> round(v.read_value().item(), 6)
    0.75
    """

    slot_names = ("momentum",)

    def __init__(
        self, learning_rate: float | Variable | Schedule = 0.01, momentum: float = 0.9, nesterov: bool = False
    ) -> None:
        super().__init__(learning_rate)
        self.momentum = fraction("Momentum", "momentum", momentum)
        self.nesterov = flag("Momentum", "nesterov", nesterov)

    def change(self, gradient: Tensor, variable: Target, slots: Slots, rate: Tensor, t: Tensor) -> Tensor:
        momentum = slots["momentum"].assign(self.momentum * slots["momentum"].read_value() + gradient)
        return rate * (gradient + self.momentum * momentum if self.nesterov else momentum)
