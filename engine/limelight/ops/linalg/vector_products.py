"""Products of vectors along an axis: `vecdot`, `cross`."""

from __future__ import annotations

from typing import Any

from limelight.core import dtypes, shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._shape_rules import SHORT

__all__ = ["vecdot"]  # cross is in `linalg` alone


def _axis(name: str, x: Tensor, y: Tensor, axis: int) -> int:
    """`axis` counted from the end, as both operands have it."""
    if axis == -1 and x.ndim and y.ndim:
        return -1
    axis, rank = shapes.whole(name, "axis", axis), min(x.ndim, y.ndim)
    if axis >= 0 and x.ndim == y.ndim:
        axis -= rank
    if not -rank <= axis < 0:
        raise ArgumentError(
            f"{name}: axis {axis} of {x.spec} and {y.spec}: count it from the end, down to -{rank}"
            if rank
            else f"{name}: {x.spec} and {y.spec}: scalars are no vectors; write x * y"
        )
    return axis


# vecdot


def _vecdot_infer(x: TensorSpec, y: TensorSpec, axis: int) -> TensorSpec:
    if None not in (x.shape[axis], y.shape[axis]) and x.shape[axis] != y.shape[axis]:
        raise ShapeError(
            f"vecdot: axis {axis} of {x} has size {x.shape[axis]}, that of {y} has {y.shape[axis]}; they must be equal"
        )
    shape = shapes.broadcast("vecdot", x.shape, y.shape, of=(x, y))
    return known(shapes.reduce(shape, (len(shape) + axis,), False), x.dtype)


def _vecdot_kernel(xp: Any, x: Any, y: Any, axis: int) -> Any:
    if x.shape[axis] != y.shape[axis]:
        raise ValueError("sizes differ")  # the shape rule says how
    if x.dtype in SHORT:
        return _vecdot_kernel(xp, x.astype(dtypes.float32), y.astype(dtypes.float32), axis).astype(x.dtype)
    x, y = xp.moveaxis(x, axis, -1), xp.moveaxis(y, axis, -1)
    return xp.matmul(x.conj()[..., None, :], y[..., None])[..., 0, 0]


def _vecdot_numpy(xp: Any, x: Any, y: Any, axis: int) -> Any:
    if x.dtype in SHORT:
        return _vecdot_kernel(xp, x, y, axis)
    return xp.vecdot(x, y) if axis == -1 else xp.vecdot(x, y, axis=axis)


_vecdot: EntryPoint = entry_point(defop(
    "vecdot",
    inputs="x y",
    attrs="axis",
    infer=_vecdot_infer,
    kernel=_vecdot_kernel,
    special={"numpy": _vecdot_numpy},
    accepts="numeric",
    linear="x y",
    vjp={
        "x": lambda g, y, x_shape, axis: (g.conj().expand_dims(axis) * y).sum_to(x_shape),
        "y": lambda g, x, y_shape, axis: (g.expand_dims(axis) * x).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄* y", "y": "ȳ = z̄ x"},
    batching="matrix_stacks",
))  # fmt: skip


def vecdot(x: TensorLike, y: TensorLike, /, axis: int = -1) -> Tensor:
    """The sum of `conj(x) * y` along `axis`; the other axes broadcast. Numeric; float16 and bfloat16 add in float32.

    `axis` counts from the end where the ranks differ. Raises ShapeError when its sizes differ (1 does not broadcast),
    ArgumentError for an axis that one of them lacks.

    >>> import limelight as ll
    >>> ll.vecdot(ll.constant([[1, 2], [3, 4]]), ll.constant([1, 1])).tolist()
    [3, 7]
    """
    x, y = as_tensor(x), as_tensor(y)
    return _vecdot((x, y), _axis("vecdot", x, y, axis))


# cross


def _cross_infer(x: TensorSpec, y: TensorSpec, axis: int) -> TensorSpec:
    if x.shape[axis] not in (3, None) or y.shape[axis] not in (3, None):
        raise ShapeError(
            f"cross: axis {axis} of {x} and {y} must have size 3 in both, not {x.shape[axis]} and {y.shape[axis]}"
        )
    shape = list(shapes.broadcast("cross", x.shape, y.shape, of=(x, y)))
    shape[axis] = 3
    return known(tuple(shape), x.dtype)


def _cross_kernel(xp: Any, x: Any, y: Any, axis: int) -> Any:
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ValueError("needs three components")  # the shape rule says how
    (a, b, c), (d, e, f) = xp.moveaxis(x, axis, 0), xp.moveaxis(y, axis, 0)
    parts = [b * f - c * e, c * d - a * f, a * e - b * d]
    return xp.stack(parts, axis).astype(x.dtype)


_cross: EntryPoint = entry_point(defop(
    "cross",
    inputs="x y",
    attrs="axis",
    infer=_cross_infer,
    kernel=_cross_kernel,
    accepts="numeric",
    linear="x y",
    vjp={
        "x": lambda g, y, x_shape, axis: _cross((y.conj(), g), axis).sum_to(x_shape),
        "y": lambda g, x, y_shape, axis: _cross((g, x.conj()), axis).sum_to(y_shape),
    },
    maths={"x": "x̄ = y* × z̄", "y": "ȳ = z̄ × x*"},
    batching="matrix_stacks",
))  # fmt: skip


def cross(x: TensorLike, y: TensorLike, /, axis: int = -1) -> Tensor:
    """The vector product along `axis`, which must have size 3 in both; the other axes broadcast. Numeric.

    `axis` counts from the end where the ranks differ. Raises ShapeError for other sizes, ArgumentError for an axis that
    one of them lacks.

    >>> import limelight as ll
    >>> ll.linalg.cross(ll.constant([1, 0, 0]), ll.constant([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x, y = as_tensor(x), as_tensor(y)
    return _cross((x, y), _axis("cross", x, y, axis))
