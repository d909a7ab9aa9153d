"""Rows looked up in a table, `embedding`, with a gradient that names the rows instead of filling a table with zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry_point, entry_point_of_many
from limelight.core.index_expression import signed_places
from limelight.core.op import defop
from limelight.core.repeated_places import change_at
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError
from limelight.ops.index._scatter_add import checked_places

__all__: list[str] = []  # `embedding` is public as ll.nn.embedding

# embedding


def _embedding_infer(table: TensorSpec, indices: TensorSpec, sparse: bool, negative: bool) -> TensorSpec:
    if not table.shape:
        raise ShapeError(f"embedding: the table must have rows, got {table}; reshape it to (rows, features)")
    return known((*indices.shape, *table.shape[1:]), table.dtype)


def _embedding_kernel(xp: Any, table: Any, indices: Any, sparse: bool, negative: bool) -> Any:
    if (
        not negative
        and type(indices) is np.ndarray
        and indices.dtype.kind == "i"
        and indices.size
        and indices.min() < 0
    ):
        # counted from the end it would be the vector of another word: a label of -1 for "none" is a frequent mistake
        raise IndexError(f"index {indices.min()} is below 0; {_rows_in_words(table, negative)}")
    if xp is not np:
        return xp.take(table, checked_places(indices, len(table), 0, from_end=negative), 0)
    if not negative and not isinstance(indices, np.ndarray | np.generic):  # a stand-in (executors.loops)
        indices = checked_places(indices, len(table), 0, from_end=False)
    try:
        return table.take(signed_places(indices), 0)
    except IndexError:
        lowest = -len(table) if negative else 0
        wrong = indices[(indices < lowest) | (indices >= len(table))][0]
        raise IndexError(f"there is no row {wrong}; {_rows_in_words(table, negative)}") from None


def _rows_in_words(table: Any, negative: bool) -> str:
    size = len(table)
    if not size:
        return "the table has no rows"
    more = f", or -1 to {-size} from the end" if negative else ""
    return f"the table has rows 0 to {size - 1} (size {size}){more}"


_embedding = entry_point(defop(
    "embedding",
    inputs="table indices:integer",
    attrs="sparse negative",
    infer=_embedding_infer,
    kernel=_embedding_kernel,
    vjp={"table": lambda g, indices, table_shape, sparse, negative: _rows_of(g, indices, table_shape, sparse)},
    maths={"table": "table̅[indices] += ȳ, by rows"},
    batching="embedding",
))  # fmt: skip


def _rows_of(g: Tensor, indices: Tensor, sizes: Any, sparse: bool) -> Any:
    gradient = SparseGradient([(indices, g)], sizes)
    return gradient if sparse else gradient.dense()


def embedding(table: TensorLike, indices: TensorLike, /, *, sparse: bool = True, negative: bool = True) -> Tensor:
    """An embedding lookup: the rows of `table` at the integers `indices`.

    Where an index occurs again its gradients add up. The sparse gradient is made dense where it goes on through another
    op (a table that is itself computed) or leaves a staged function that was called under an outer tape; with the tape
    inside the staged function it is sparse all the way to the optimiser.

    Args:
        table: (rows, *rest).
        indices: integers of any shape (...).
        sparse: whether the gradient of `table` is an `ll.SparseGradient`, with the rows that were looked up and no
            others, or else a tensor. True.
        negative: whether negative indices count from the end, or are refused. True.

    Returns:
        (..., *rest), of the dtype of `table`.

    Raises:
        ShapeError: `table` has no axis.
        DTypeError: `indices` are no integers.
        OutOfBoundsError: there is no such row.

    >>> import limelight as ll
    >>> table = ll.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> ll.nn.embedding(table, ll.constant([1, 1, 0])).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    if type(sparse) is not bool:
        sparse = shapes.flag("embedding", "sparse", sparse)
    if type(negative) is not bool:
        negative = shapes.flag("embedding", "negative", negative)
    table = as_tensor(table)
    if not table.ndim:
        _embedding_infer(table.spec, as_tensor(indices).spec, sparse, negative)
    return _embedding((table, indices), bool(sparse), bool(negative))


# add_up_rows: for SparseGradient.coalesced


def _add_up_kernel(xp: Any, values: Any, indices: Any) -> tuple[Any, Any, Any]:
    rows, places = xp.unique(indices, return_inverse=True)
    places = places.reshape(indices.shape)
    sums = xp.zeros((len(rows), *values.shape[1:]), values.dtype)
    if hasattr(sums, "at"):
        return sums.at[places].add(values), rows, places
    change_at(xp, "add", sums, places, values)
    return sums, rows, places


def _add_up_infer(values: TensorSpec, indices: TensorSpec) -> tuple[TensorSpec, ...]:
    if indices.rank != 1 or not shapes.compatible(values.shape[:1], indices.shape):
        raise ShapeError(f"add_up_rows: needs a row for each of a vector of indices, got {values} and {indices}")
    rows = 0 if indices.shape[0] == 0 else None
    return (
        known((rows, *values.shape[1:]), values.dtype),
        known((rows,), indices.dtype),
        known(indices.shape, dtypes.int64),
    )


_add_up_rows = entry_point_of_many(defop(
    "add_up_rows",
    inputs="values indices:integer",
    infer=_add_up_infer,
    kernel=_add_up_kernel,
    accepts="numeric",
    vjp={"values": lambda g, out: None if g[0] is None else g[0][out[2]]},
    maths={"values": "v̄ₖ = ȳ[the row that indices[k] became]"},
    multiple=True,
    batching="loop",
))  # fmt: skip


def add_up_rows(values: Tensor, indices: Tensor, /) -> tuple[Tensor, Tensor, Tensor]:
    """The sums of the rows that share an index, the indices in order and each once, and where each index went."""
    return _add_up_rows((values, indices))  # type: ignore[return-value]
