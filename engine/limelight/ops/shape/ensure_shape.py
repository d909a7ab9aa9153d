"""`ensure_shape`: what is known of a tensor's shape, said and checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from limelight.core import shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.eager.entry_points import structured
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError

__all__ = ["ensure_shape"]


def _checked(given: Shape, shape: Shape) -> Shape:
    """What is known when both are true of a tensor. Raises ShapeError where they cannot be."""
    clash = any(None not in (m, n) and m != n for m, n in zip(given, shape, strict=False))
    if len(given) != len(shape) or clash:
        raise ShapeError(
            f"ensure_shape: a tensor of shape {shapes.show(given)} where one of {shapes.show(shape)} was promised; "
            "write None for a size that changes"
        )
    return tuple([m if n is None else n for m, n in zip(given, shape, strict=True)])


def _kernel(xp: Any, x: Any, shape: Shape) -> Any:
    _checked(tuple(x.shape), shape)
    return x


def _infer(x: TensorSpec, shape: Shape) -> TensorSpec:
    return known(_checked(x.shape, shape), x.dtype)


_ensure_shape: EntryPoint = entry_point(defop(
    "ensure_shape",
    view=True,
    inputs="x",
    attrs="shape",
    infer=_infer,
    kernel=_kernel,
    vjp={"x": lambda g: g},
    linear="x",
    maths={"x": "x̄ = ȳ"},
    batching=lambda site: site.run(site.inputs, (None, *site.attrs[0])),
))  # fmt: skip


def ensure_shape(x: TensorLike, /, shape: int | Iterable[int | None] | None) -> Tensor:
    """`x`, of which `shape` is checked: at once where it is known, else when the graph runs.

    In a trace what is said is known from here on, as in `tf.ensure_shape`. It is how a result of `ll.py_func` whose
    number of axes was left open (`ll.TensorSpec(None)`) becomes a tensor that every function takes.

    Args:
        x: any shape and dtype.
        shape: the sizes, a number or several, None for one that is not known; None in place of all promises nothing.

    Returns:
        The same tensor, or in a trace one of which more is known.

    Raises:
        ShapeError: `x` has another number of axes, or another size.

    >>> import limelight as ll
    >>> ll.ensure_shape(ll.zeros((2, 3)), (None, 3)).shape
    (2, 3)
    """
    x = as_tensor(x)
    if shape is None:
        return x
    sizes = shapes.as_shape(shape)
    if type(x) not in structured and shapes.compatible(x.shape, sizes):
        return x
    return _ensure_shape(x, sizes)
