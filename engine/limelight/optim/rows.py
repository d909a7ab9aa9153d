"""Some rows of a variable, for updates by sparse gradients."""

from __future__ import annotations

from limelight.core.dtypes import DType
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.ops.index.take import take


class Rows:
    """The rows of `variable` at the integers `indices`, each of which occurs once: read and assigned like a variable.

    An update that treats all elements alike is written once and serves whole variables and rows.

    >>> import limelight as ll
    >>> v = ll.Variable([[1.0], [2.0], [3.0]])
    >>> rows = Rows(v, ll.constant([0, 2]))
    >>> rows.assign(rows.read_value() * 10.0).tolist(), v.numpy().tolist()
    ([[10.0], [30.0]], [[10.0], [2.0], [30.0]])
    """

    def __init__(self, variable: Variable, indices: Tensor) -> None:
        self.variable = variable
        self.indices = indices

    @property
    def dtype(self) -> DType:
        return self.variable.dtype

    def read_value(self) -> Tensor:
        """The rows now."""
        return take(self.variable, self.indices, axis=0)

    def assign(self, value: Tensor) -> Tensor:
        """Replaces the rows; returns them."""
        self.variable.scatter_update(self.indices, value)
        return value

    def assign_sub(self, delta: Tensor) -> Tensor:
        """Subtracts from the rows; returns them."""
        self.variable.scatter_sub(self.indices, delta)
        return self.read_value()
