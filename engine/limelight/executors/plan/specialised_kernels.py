"""Cheaper than an op's kernel, and the same: what NumPy offers for particular shapes and dtypes.

An op's kernel serves all shapes and looks at what it gets. A plan knows ranks and dtypes beforehand, so it can go where
the kernel would go in the end. Times are for ten float32 numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.cores import WORTH, for_each
from limelight.core.index_expression import native
from limelight.core.op import Op
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec
from limelight.executors.plan.array_rows import PIECE, in_rows
from limelight.executors.plan.kernel_calls import KernelCall, Specialisation, kernel_call
from limelight.graph.ir import Node
from limelight.ops._kernel_parts import MOST_SUMMED, ones
from limelight.ops._shape_rules import SHORT
from limelight.ops.shape.broadcast import MOST_REPEATED

_FLOATS: Final = frozenset([dtypes.float32, dtypes.float64])
_BLAS: Final = frozenset([dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128])
_OPERAND_ITSELF: Final = KernelCall(params=())  # another name for the operand


def specialised(op: Op, kernel: Callable[..., Any]) -> Specialisation | None:
    """What may replace the NumPy kernel of an op, if anything."""
    return _OPERATORS.get(kernel) if isinstance(kernel, np.ufunc) else _OPS.get(op.name)


# Python's operators on NumPy scalars take 35 ns where a ufunc takes 350. Only for floating-point numbers: integers that
# overflow are a matter of warnings there.


def _infix(symbol: str) -> Specialisation:
    call = KernelCall(infix=f" {symbol} ", fresh=True, scalar=True)
    return lambda node: call if all(_is_scalar(value.spec) for value in node.inputs) else None


def _is_scalar(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and not spec.shape and spec.dtype in _FLOATS


# The method `dot` takes 270 ns where `matmul` takes 800.

_DOT: Final = KernelCall(infix=".dot(", suffix=")", fresh=True)


def _dot(node: Node) -> KernelCall | None:
    return _DOT if all(_is_blas(value.spec) for value in node.inputs) else None


def _is_blas(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and len(spec.shape) in (1, 2) and spec.dtype in _BLAS


# Reductions without a Python function around them.

_WIDENING: Final = (np.add, np.multiply)  # they reduce small integers as large ones unless they are told a dtype


def _reduction(ufunc: Any) -> Specialisation:
    reduce, widens = ufunc.reduce, ufunc in _WIDENING

    def choose(node: Node) -> KernelCall | None:
        operand, output = _specs(node)
        axis, keepdims = node.params
        if operand.dtype in SHORT or (ufunc is np.add and _depends_on_size(operand)):
            return None
        if ufunc is np.add and not keepdims and (call := _sum_by_ones(operand, axis)) is not None:
            return call
        as_given = output.dtype == operand.dtype and (dtypes.is_inexact(operand.dtype) or not widens)
        totals = None if as_given or output.dtype == dtypes.bool_ else output.dtype
        return KernelCall(reduce, params=(axis, totals, None, keepdims), fresh=True)

    return choose


def _sum_to(node: Node) -> KernelCall | None:
    """Nothing where the shape is right, a single reduction where that needs no reshape afterwards."""
    operand, output = _specs(node)
    if operand.shape == output.shape and shapes.is_static(output.shape):
        return _OPERAND_ITSELF
    lead = operand.rank - output.rank
    inner = [(lead + i, n, operand.shape[lead + i]) for i, n in enumerate(output.shape)]
    if any(n is None or (m is None and n != 1) for _, n, m in inner):  # whether they agree is for the kernel to see
        return None
    over = tuple(axis for axis, n, m in inner if n == 1 and m != 1)
    if lead and over:
        return None
    axes = tuple(range(lead)) or over
    if not axes or operand.dtype in SHORT or _depends_on_size(operand):
        return None
    by_ones = _sum_by_ones(operand, axes, keepdims=not lead)
    if by_ones is not None:
        return by_ones
    return KernelCall(_SUM, params=(axes, operand.dtype, None, not lead), fresh=True)


_SUM: Final = np.add.reduce


def _depends_on_size(operand: TensorSpec) -> bool:
    """Whether only the run tells if there are so few elements that the kernel multiplies them with ones."""
    return operand.dtype in _FLOATS and operand.rank <= 2 and operand.size is None


def _sum_by_ones(operand: TensorSpec, axis: Any, keepdims: bool = False) -> KernelCall | None:
    """A product with ones takes 260 ns where a sum takes 830: rows or columns of small matrices, or all elements.

    The ops' own kernels do the same: the order of the additions says what overflows, and a sum of nothing but -0.0 is
    0.0. Large ones stay with NumPy, which adds in pairs and is as fast there.
    """
    if operand.dtype not in _FLOATS or not 1 < (operand.size or 0) <= MOST_SUMMED or operand.rank > 2:
        return None
    axes = range(operand.rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    summed = sorted(i % operand.rank for i in axes)
    if not summed:
        return None
    if len(summed) == operand.rank:
        factor = ones((operand.size,), operand.dtype)
        return None if keepdims else KernelCall(infix=".ravel().dot(", suffix=")", params=(factor,), fresh=True)
    n = operand.shape[summed[0]]
    if summed == [1]:
        return KernelCall(
            infix=".dot(", suffix=")", params=(ones((n, 1) if keepdims else (n,), operand.dtype),), fresh=True
        )
    return KernelCall(_ones_dot((1, n) if keepdims else (n,), operand.dtype), params=(), fresh=True)


@functools.cache
def _ones_dot(shape: Shape, dtype: dtypes.DType) -> Any:
    return ones(shape, dtype).dot


# Views by a method instead of a function.


def _method(name: str, fresh: bool = False) -> Specialisation:
    call = KernelCall(infix=f".{name}(", suffix=")", fresh=fresh)
    return lambda node: call


def _reshape_to_result(node: Node) -> KernelCall | None:
    shape = _specs(node)[1].shape
    return KernelCall(infix=".reshape(", suffix=")", params=(shape,)) if shapes.is_static(shape) else None


def _index(node: Node) -> KernelCall:
    return KernelCall(infix="[", suffix="]", params=(native(node.params[0]),))


_SWAP_AXES: Final = KernelCall(infix=".swapaxes(", suffix=")", params=(-1, -2))
_TRANSPOSE_2D: Final = KernelCall(infix=".T", params=())


def _matrix_transpose(node: Node) -> KernelCall:
    return _TRANSPOSE_2D if _specs(node)[0].rank == 2 else _SWAP_AXES


# Activations, with constants of their dtype instead of Python numbers, and masks that are cast at once.


@functools.cache
def _zero(dtype: dtypes.DType) -> Any:
    zero = np.zeros((), dtype)
    zero.flags.writeable = False
    return zero


def _relu(node: Node) -> KernelCall | None:
    operand = _specs(node)[0]
    if operand.dtype not in _FLOATS or not operand.shape:
        return None
    return KernelCall(np.maximum, params=(), elementwise=True, out="out=", fresh=True, extra=(_zero(operand.dtype),))


def _relu_grad(node: Node) -> KernelCall | None:
    output = node.outputs[0].spec
    alike = all(value.spec == output for value in node.inputs)
    if not alike or not isinstance(output, TensorSpec) or output.dtype not in _FLOATS or not output.shape:
        return None
    return KernelCall(_masked_gradient, params=(_zero(output.dtype), output.dtype), fresh=True)


def _masked_gradient(g: Any, y: Any, zero: Any, dtype: Any) -> Any:
    rows = in_rows((g, y), g.shape) if isinstance(g, np.ndarray) and g.size >= WORTH else None  # no stand-in of a table
    if rows is None:
        return np.multiply(g, np.greater(y, zero).astype(dtype))
    out = np.empty(g.shape, dtype)
    product = out.reshape(rows.shape)

    def mask(piece: slice) -> None:
        gradient, seen = rows.of(piece)
        np.multiply(gradient, np.greater(seen, zero).astype(dtype), out=product[piece])

    for_each(mask, rows.pieces(PIECE), g.size)
    return out


def _concat(node: Node) -> KernelCall | None:
    return KernelCall(np.concatenate, params=node.params, fresh=True, packed=True)


_POWER: Final = kernel_call(np.power)


def _pow(node: Node) -> KernelCall | None:
    """NumPy's own where it cannot take a square root: with a constant exponent other than 0.5, or one for each base.

    Not of integers whose exponent may be negative: the op's kernel says what to write.
    """
    x, y = (value.spec for value in node.inputs)
    if not isinstance(x, TensorSpec) or not isinstance(y, TensorSpec):
        return None
    one_each = x.shape == y.shape and (x.size or 0) > 1
    source = node.inputs[1].node
    is_literal = source is not None and source.op.name == "constant" and not y.shape
    exponent = source.params[0].array.tolist() if source is not None and is_literal else None
    if x.dtype.kind in "iu" and (exponent is None or exponent < 0):
        return None
    return _POWER if one_each or exponent not in (None, 0.5) else None


_READ: Final = KernelCall(infix=".array")


def _broadcast_to(node: Node) -> KernelCall | None:
    """A product with ones, as the op's kernel has it."""
    output = _specs(node)[1]
    if output.size is None or output.size > MOST_REPEATED or output.dtype not in _FLOATS or not output.shape:
        return None
    return KernelCall(np.multiply, params=(ones(output.shape, output.dtype),), fresh=True)


def _specs(node: Node) -> tuple[TensorSpec, TensorSpec]:
    """The specs of the (first) operand and the (first) output."""
    operand, output = node.inputs[0].spec, node.outputs[0].spec
    assert isinstance(operand, TensorSpec)
    assert isinstance(output, TensorSpec)
    return operand, output


_OPERATORS: Final[dict[Any, Specialisation]] = {
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
}
"""By ufunc: an op of another name with this kernel is as well served."""
_OPS: Final[dict[str, Specialisation]] = {
    "all": _reduction(np.logical_and),
    "any": _reduction(np.logical_or),
    "astype": _method("astype", fresh=True),
    "broadcast_to": _broadcast_to,
    "concat": _concat,
    "expand_dims": _reshape_to_result,
    "identity": lambda node: _OPERAND_ITSELF,
    "matmul": _dot,
    "matrix_transpose": _matrix_transpose,
    "max": _reduction(np.maximum),
    "min": _reduction(np.minimum),
    "pow": _pow,
    "prod": _reduction(np.multiply),
    "relu": _relu,
    "relu_grad": _relu_grad,
    "read_variable": lambda node: _READ,
    "reshape": _method("reshape"),
    "slice": _index,
    "squeeze": _reshape_to_result,
    "stop_gradient": lambda node: _OPERAND_ITSELF,
    "sum": _reduction(np.add),
    "sum_to": _sum_to,
    "transpose": _method("transpose"),
}
"""By op. The table is the plan's own business and not the ops': it says what NumPy has for particular ranks and dtypes,
and how that is written in a line of Python; another executor has no use for it."""
