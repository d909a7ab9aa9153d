"""Several tensors, or shapes, brought to the shape in which they meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError

__all__ = ["broadcast_arrays", "broadcast_shapes", "meshgrid"]

# broadcast_sizes: the common shape of shapes that are known at run time


def _infer(*given: TensorSpec) -> TensorSpec:
    ranks = [spec.shape[0] for spec in given]
    return known((None if None in ranks else max([n or 0 for n in ranks]),), dtypes.int64)


def _kernel(xp: Any, *given: Any) -> Any:
    return np.asarray(shapes.broadcast("broadcast_arrays", *[tuple(sizes.tolist()) for sizes in given]), np.int64)


_broadcast_sizes = entry(defop(
    "broadcast_sizes",
    inputs="*xs",
    infer=_infer,
    kernel=_kernel,
    accepts="integer",
    why_no_gradient="a shape does not depend on the values",
    batching="loop",
))  # fmt: skip


def _common(given: Sequence[Tensor]) -> Any:
    """The shape in which they meet: a tuple, or in a trace with unknown sizes a symbolic vector."""
    found = shapes.broadcast("broadcast_arrays", *[x.shape for x in given])
    if None not in found:
        return found
    return _broadcast_sizes(tuple([np.asarray(n, np.int64) if isinstance(n := x.sizes(), tuple) else n for x in given]))


def broadcast_arrays(*arrays: TensorLike) -> list[Tensor]:
    """The tensors, each repeated until it has the shape in which all of them meet; dtypes stay as they are.

    Raises ShapeError when the shapes do not broadcast.

    >>> import limelight as ll
    >>> [x.shape for x in ll.broadcast_arrays(ll.zeros((3, 1)), ll.ones(2))]
    [(3, 2), (3, 2)]
    """
    given = [as_tensor(x) for x in arrays]
    if not given:
        return []
    shape = _common(given)
    return [x.broadcast_to(shape) for x in given]


def broadcast_shapes(*given: int | Sequence[int | None]) -> Shape:
    """The shape in which shapes meet, by NumPy's rules; () of none. An unknown size (None) meets n as n.

    Raises ShapeError when they do not broadcast.

    >>> import limelight as ll
    >>> ll.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    return shapes.broadcast("broadcast_shapes", *[shapes.as_shape(shape) for shape in given])


def meshgrid(*arrays: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid: a tensor for each of `n` vectors, with `n` axes, that varies along one of them.

    With `indexing="ij"` the first vector varies along axis 0, the second along axis 1; with "xy" these two are
    exchanged, as in pictures, which have rows first. Raises ShapeError for anything but vectors and scalars,
    ArgumentError for another indexing.

    >>> import limelight as ll
    >>> x, y = ll.meshgrid(ll.constant([1, 2, 3]), ll.constant([4, 5]))
    >>> x.tolist(), y.tolist()
    ([[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]])
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}')
    given = [as_tensor(x) for x in arrays]
    for x in given:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid: needs vectors, got {x.spec}; reshape it to (-1,) first")
    rank = len(given)
    places = list(range(rank))
    if indexing == "xy" and rank > 1:
        places[:2] = [1, 0]
    return broadcast_arrays(
        *[
            x.reshape([-1 if axis == place else 1 for axis in range(rank)])
            for x, place in zip(given, places, strict=True)
        ]
    )
