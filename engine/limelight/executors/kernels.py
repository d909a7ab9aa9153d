"""How a plan writes each op: the kernel to call, or something cheaper that does the same for these shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from limelight import dtypes
from limelight.graph.ir import Node
from limelight.registry import Op
from limelight.spec import TensorSpec


class Formula(NamedTuple):
    """An expression in words: `before`, the operands and parameters joined by `between`, `after`.

    With a kernel `before` is "" and the words are its arguments, after `first`. `elementwise`: a ufunc, whose result
    may go into an operand's buffer. `fresh`: the result is a new array that shares nothing with the operands.
    `scalar`: operands are NumPy scalars rather than arrays where there is a choice.
    """

    kernel: Callable[..., Any] | None
    first: tuple[Any, ...] = ()
    before: str = ""
    between: str = ", "
    after: str = ""
    elementwise: bool = False
    fresh: bool = False
    scalar: bool = False


Choice: TypeAlias = Callable[[Node], Formula | None]
"""Whether something cheaper than the op's kernel does for a node."""


class Formulas:
    """Finds formulas, and remembers for each op what does not depend on the node."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[Formula, Choice | None]] = {}

    def of(self, node: Node, backend: str) -> Formula:
        """How to write `node` on a backend."""
        key = (id(node.op), backend)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _of_op(node.op, backend)
        plain, choice = known
        return plain if choice is None else choice(node) or plain


def _of_op(op: Op, backend: str) -> tuple[Formula, Choice | None]:
    kernel = op.kernel_on(backend)
    if backend != "numpy":
        return _plain(kernel), None
    choice = _CHEAPER.get(kernel) if isinstance(kernel, np.ufunc) else _CHEAPER_OPS.get(op.name)
    return _plain(kernel), choice


def _plain(kernel: Callable[..., Any]) -> Formula:
    if type(kernel) is functools.partial and not kernel.keywords:  # xp goes in as an argument: one call less
        return Formula(kernel.func, first=kernel.args)
    if isinstance(kernel, np.ufunc):
        elementwise = kernel.signature is None and kernel.nout == 1
        return Formula(kernel, elementwise=elementwise, fresh=True)
    return Formula(kernel, fresh=kernel in _FRESH)


_FRESH: Final[frozenset[Any]] = frozenset(
    [np.where, np.concatenate, np.stack, np.matmul, np.dot, np.take, np.sum, np.prod]
)

# Scalars: NumPy's operators cost a tenth of its ufuncs there, and do the same. Only for floating-point numbers: what
# Python's operators do with integers that overflow is a matter of warnings.

_FLOATS: Final = frozenset([dtypes.float32, dtypes.float64])


def _infix(symbol: str) -> Choice:
    between = f" {symbol} "
    found = Formula(None, between=between, fresh=True, scalar=True)

    def on_scalars(node: Node) -> Formula | None:
        return found if all(_is_scalar(value.spec) for value in node.inputs) else None

    return on_scalars


def _is_scalar(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and not spec.shape and spec.dtype in _FLOATS


# Products of matrices: the method goes to BLAS more directly than the generalised ufunc.

_BLAS: Final = frozenset([dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128])
_DOT: Final = Formula(None, between=".dot(", after=")", fresh=True)


def _dot(node: Node) -> Formula | None:
    return _DOT if all(_is_blas(value.spec) for value in node.inputs) else None


def _is_blas(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and len(spec.shape) in (1, 2) and spec.dtype in _BLAS


_READ: Final = Formula(None, after=".array")


_CHEAPER: Final[dict[Any, Choice]] = {
    np.add: _infix("+"),
    np.subtract: _infix("-"),
    np.multiply: _infix("*"),
    np.divide: _infix("/"),
    np.less: _infix("<"),
    np.less_equal: _infix("<="),
    np.greater: _infix(">"),
    np.greater_equal: _infix(">="),
    np.equal: _infix("=="),
    np.not_equal: _infix("!="),
    np.matmul: _dot,
}
_CHEAPER_OPS: Final[dict[str, Choice]] = {
    "read_variable": lambda node: _READ,
}
