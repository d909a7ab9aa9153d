"""One-hot vectors: `one_hot`."""

from __future__ import annotations

from limelight.core import dtypes, shapes
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike
from limelight.errors import ArgumentError

__all__ = ["one_hot"]

# one_hot


def _one_hot_infer(indices: TensorSpec, depth: int, dtype: DType) -> TensorSpec:
    return known((*indices.shape, depth), dtype)


_one_hot = entry_point(defop(
    "one_hot",
    inputs="indices",
    attrs="depth dtype",
    infer=_one_hot_infer,
    kernel=lambda xp, indices, depth, dtype: (xp.asarray(indices)[..., None] == xp.arange(depth)).astype(dtype),
    accepts="integer",
    why_no_gradient="it is a function of integers",
    fresh=True,
    batching="last_axes",
))  # fmt: skip


def one_hot(indices: TensorLike, /, depth: int, *, axis: int = -1, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """One-hot vectors: a new axis with 1 at each index and 0 elsewhere.

    Args:
        indices: integers of any shape. Out of bounds, which negative ones are, they give zeros, as in JAX and
            TensorFlow.
        depth: the size of the new axis.
        axis: its place in the result; the last by default.
        dtype: that of the result; float32.

    Returns:
        A tensor of the shape of `indices` with an axis more.

    Raises:
        ArgumentError: the depth is negative, or the result has no such axis.

    >>> import limelight as ll
    >>> ll.one_hot(ll.constant([0, 2]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> ll.one_hot(ll.constant([0, 2]), 3, axis=0, dtype=ll.int32).tolist()
    [[1, 0], [0, 0], [0, 1]]
    """
    depth = shapes.whole("one_hot", "depth", depth)
    if depth < 0:
        raise ArgumentError(f"one_hot: depth must not be negative, got {depth}")
    vectors = _one_hot(indices, depth, dtypes.dtype(dtype))
    if axis == -1:
        return vectors
    rank = vectors.ndim
    order = list(range(rank - 1))
    order.insert(shapes.one_axis("one_hot", rank, axis), rank - 1)
    return vectors.transpose(order)
