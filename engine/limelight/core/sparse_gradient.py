"""Sparse gradients: the rows of a table that a look-up touched, instead of a table full of zeros.

They come from one op, `embedding`, whatever its table; `take` and indexing stay dense, since their results are used
like any array. They stay sparse in sums and through the read of a variable; any other rule, NumPy, and the boundary of
a staged function take the dense tensor that they stand for. A sparse gradient holds handles, so it means the same
eagerly and in a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dispatch
from limelight.core.devices import Device
from limelight.core.dtypes import DType
from limelight.core.op import get
from limelight.core.shapes import Shape, show
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import DTypeError
from limelight.user_code.tracebacks import in_place_of_python

Part = tuple[Tensor, Tensor]
"""The indices of one look-up, of any shape, and a row for each of them."""


class SparseGradient:
    """The gradient of a table with respect to look-ups of its rows: `values[k]` is added to row `indices[k]`.

    `indices` are integers of shape (n,), from either end and in any order; those that occur again add up. `values`
    have shape (n, *shape[1:]). Wherever a tensor is wanted (arithmetic, `ll.sum`, `np.asarray`) this stands for the
    dense gradient, of `shape` and `dtype`, that `dense()` makes. Sums of sparse gradients, and products with a Python
    number, are sparse.

    >>> import limelight as ll
    >>> table = ll.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> with ll.GradientTape() as tape:
    ...     y = ll.sum(ll.nn.embedding(table, ll.constant([2, 0, 2])))
    >>> g = tape.gradient(y, table)
    >>> g
    <sparse gradient f32[3,2]: rows [2, 0, 2]>
    >>> g.dense().tolist()
    [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    """

    __slots__ = ("__weakref__", "_sizes", "parts")
    __array_ufunc__ = None
    __limelight_leaf__ = True
    parts: tuple[Part, ...]
    _sizes: Any  # as `Tensor.sizes` gives them: a symbolic vector where a size is unknown

    def __init__(self, parts: Sequence[Part], sizes: Any) -> None:
        self.parts = tuple(parts)
        self._sizes = sizes

    @property
    def dtype(self) -> DType:
        return self.parts[0][1].dtype

    @property
    def shape(self) -> Shape:
        """The shape of the whole table; a size that is unknown while tracing is None."""
        if isinstance(self._sizes, tuple):
            return self._sizes
        indices, values = self.parts[0]
        return (None, *values.shape[indices.ndim :])

    @property
    def spec(self) -> TensorSpec:
        """The type of the dense gradient."""
        return known(self.shape, self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and their indices."""
        return sum(x.nbytes for part in self.parts for x in part)

    @property
    def device(self) -> Device:
        return self.parts[0][1].device

    @property
    def indices(self) -> Tensor:
        """Which rows, an integer vector."""
        return _joined([indices.reshape((-1,)) if indices.ndim != 1 else indices for indices, _ in self.parts])

    @property
    def values(self) -> Tensor:
        """What to add to them: one row for each index."""
        return _joined([self._rows(*part) for part in self.parts])

    def dense(self) -> Tensor:
        """The gradient as a tensor of the table's shape: rows that occur again added up, zeros elsewhere."""
        indices, values = self.parts[0] if len(self.parts) == 1 else (self.indices, self.values)
        if isinstance(self._sizes, tuple):
            return _tensor(dispatch.apply(get("take_scatter"), (values, indices), (0, self._sizes)))
        operands, rank = (values, indices, self._sizes), len(self.shape)
        return _tensor(dispatch.apply(get("take_scatter_dynamic"), operands, (0, rank)))

    def coalesced(self) -> SparseGradient:
        """The same with each row once, counted from the start and in order: what an optimiser with state needs."""
        count = self._sizes[0]
        indices = self.indices % (count if isinstance(count, int) else count.astype(self.indices.dtype))
        values, rows, _ = dispatch.apply(get("add_up_rows"), (self.values, indices))
        return SparseGradient([(rows, values)], self._sizes)

    def to(self, device: str | Device) -> SparseGradient:
        """The same on another device."""
        return SparseGradient([(i.to(device), v.to(device)) for i, v in self.parts], self._sizes)

    def map_values(self, fn: Callable[[Tensor], Tensor]) -> SparseGradient:
        """The same rows with `fn(values)`, which must treat each row alike and take zero to zero: scaling, a cast."""
        return SparseGradient([(indices, fn(values)) for indices, values in self.parts], self._sizes)

    def _rows(self, indices: Tensor, values: Tensor) -> Tensor:
        if indices.ndim == 1:
            return values
        rest = values.shape[indices.ndim :]
        if None not in rest and (indices.size is not None or 0 not in rest):
            return values.reshape((-1 if indices.size is None else indices.size, *rest))
        count = as_tensor(values.sizes()[: indices.ndim]).prod().reshape((1,))
        return values.reshape(_joined([count, values.sizes()[indices.ndim :]]))

    # Standing for a tensor

    def __as_tensor__(self) -> Tensor:
        return self.dense()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.dense().__array__(dtype, copy)

    @in_place_of_python
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"a sparse gradient has no attribute {name!r}")
        return getattr(self.dense(), name)

    def __add__(self, other: TensorLike | SparseGradient) -> Any:
        if isinstance(other, SparseGradient) and other.shape == self.shape and other.dtype == self.dtype:
            return SparseGradient(self.parts + other.parts, self._sizes)
        return self.dense() + other

    def __mul__(self, other: TensorLike | SparseGradient) -> Any:
        return self.map_values(lambda v: v * other) if _is_factor(other) else self.dense() * other

    def __rmul__(self, other: TensorLike) -> Any:
        return self.map_values(lambda v: v * other) if _is_factor(other) else self.dense() * other  # they commute

    def __truediv__(self, other: TensorLike | SparseGradient) -> Any:
        return self.map_values(lambda v: v / other) if _is_factor(other) else self.dense() / other

    def __neg__(self) -> SparseGradient:
        return self.map_values(lambda v: -v)

    def __hash__(self) -> int:
        raise DTypeError("sparse gradients compare element by element and so are not hashable")

    def __repr__(self) -> str:
        indices = self.indices
        if type(indices) is not Tensor:
            return f"<symbolic sparse gradient {self.spec}: {show(indices.shape)} rows>"
        ids = indices.tolist()
        rows = str(ids) if len(ids) <= 8 else f"[{', '.join(map(str, ids[:6]))}, ... {len(ids)} in all]"
        return f"<sparse gradient {self.spec}: rows {rows}>"


def _is_factor(x: Any) -> bool:
    """Whether multiplying by `x` leaves zeros alone and shapes as they are: a number, or a tensor with no axes."""
    return type(x) in (int, float) or (isinstance(x, Tensor) and not x.ndim)


def _joined(tensors: Sequence[Any]) -> Tensor:
    if len(tensors) == 1:
        return _tensor(tensors[0])
    tensors = _of_one_dtype([as_tensor(x) for x in tensors])
    return _tensor(dispatch.apply(get("concat"), tuple(tensors), (0,)))


def _of_one_dtype(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Indices of several look-ups may be int32 here and int64 there."""
    widest = max((x.dtype for x in tensors), key=lambda d: d.itemsize)
    return [x if x.dtype == widest else x.astype(widest) for x in tensors]


def _tensor(x: Any) -> Tensor:
    assert isinstance(x, Tensor)
    return x


_AS_DENSE: Final = (
    "radd", "sub", "rsub", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul", "rmatmul",
    "pos", "abs", "lt", "le", "gt", "ge", "eq", "ne", "getitem", "bool", "float", "complex", "len", "iter", "format",
)  # fmt: skip


def _forward(name: str) -> Callable[..., Any]:
    def forwarded(self: SparseGradient, *args: Any) -> Any:
        return getattr(self.dense(), name)(*args)

    return forwarded


for _name in _AS_DENSE:
    setattr(SparseGradient, f"__{_name}__", _forward(f"__{_name}__"))
