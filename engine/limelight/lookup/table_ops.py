"""The ops of tables: `table_insert`, `table_lookup`, `table_remove`, `table_contains`, `table_size`, `table_export`.

They stand in one chain with all input and output: in a graph they happen once for each run, in the program's order.
Integer keys are a tensor, the first one; texts, which no tensor holds, are a parameter of the op.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.backends import to_host
from limelight.core.dtypes import DType
from limelight.core.op import Op, defop
from limelight.core.spec import TensorSpec, known
from limelight.errors import DeadVariableError, DTypeError, MissingKeyError, ShapeError

_DATA: Final = "the values of a table are data"


class Texts:
    """Keys that are strings or bytes, of a shape."""

    __limelight_leaf__ = True

    def __init__(self, keys: Sequence[Hashable], shape: tuple[int, ...]) -> None:
        self.keys = list(keys)
        self.shape = shape

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.keys[:3]))
        return f"[{shown}{', ...' * (len(self.keys) > 3)}]"


class TableRef:
    """A table as the parameter of a node, which does not keep it alive."""

    __limelight_leaf__ = True

    def __init__(self, table: Any) -> None:
        self._table = weakref.ref(table)
        self.name = table.name
        self.value: TensorSpec = table.value_spec
        self.keys: DType | None = table.key_dtype

    @property
    def rows(self) -> Any:
        table = self._table()
        if table is None:
            raise DeadVariableError(
                f"the table {self.name!r} is used by a graph, but has been deleted; keep a reference to it as long as "
                "the function is called"
            )
        return table._rows

    def __repr__(self) -> str:
        return f"table {self.name}"


def _host(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(to_host(x))


def _keys(xs: Sequence[Any], texts: Texts | None) -> tuple[list[Any], tuple[int, ...], list[Any]]:
    """The keys, their shape, and the other operands."""
    if texts is not None:
        return texts.keys, texts.shape, list(xs)
    keys = _host(xs[0])
    return keys.ravel().tolist(), keys.shape, list(xs[1:])


def _shape(specs: Sequence[Any], texts: Texts | None) -> Any:
    return specs[0].shape if texts is None else texts.shape


def _insert(xp: Any, *arguments: Any) -> tuple[()]:
    *xs, table, texts = arguments
    keys, shape, (values,) = _keys(xs, texts)
    if table.keys is not None and keys:
        outside = [n for n in (min(keys), max(keys)) if not dtypes.in_range(n, table.keys)]
        if outside:
            raise DTypeError(f"insert: {outside[0]} is no {table.keys.name}, as keys of the table {table.name!r} are")
    if values.shape != (*shape, *table.value.shape):  # where sizes were unknown while tracing
        raise ShapeError(
            f"insert: {shapes.show(shape)} keys of the table {table.name!r} need values of shape "
            f"{shapes.show((*shape, *table.value.shape))}, got {shapes.show(values.shape)}"
        )
    table.rows.put(keys, _host(values).reshape((len(keys), *table.value.shape)))
    return ()


def _lookup(xp: Any, *arguments: Any) -> Any:
    *xs, table, texts = arguments
    keys, shape, default = _keys(xs, texts)
    values, missing = table.rows.get(keys, _host(default[0]) if default else None)
    if missing and not default:
        shown = ", ".join(map(repr, missing[:3])) + ", ..." * (len(missing) > 3)
        raise MissingKeyError(
            f"lookup: {len(missing)} of {len(keys)} keys are not in the table {table.name!r}: {shown}; insert them, or "
            "write lookup(keys, default=...), or make the table with a default_value"
        )
    return xp.asarray(values.reshape((*shape, *table.value.shape)))


def _remove(xp: Any, *arguments: Any) -> tuple[()]:
    *xs, table, texts = arguments
    table.rows.drop(_keys(xs, texts)[0])
    return ()


def _contains(xp: Any, *arguments: Any) -> Any:
    *xs, table, texts = arguments
    keys, shape, _ = _keys(xs, texts)
    return xp.asarray(table.rows.has(keys).reshape(shape))


def _export(xp: Any, *arguments: Any) -> tuple[Any, Any]:
    keys, values = arguments[-1].rows.all()
    return xp.asarray(np.array(keys, arguments[-1].keys)), xp.asarray(values)


def _defop(name: str, kernel: Any, infer: Any, attrs: str = "table texts", multiple: bool = False) -> Op:
    return defop(
        name,
        inputs="*xs:any",
        attrs=attrs,
        infer=infer,
        kernel=kernel,
        multiple=multiple,
        effect="io",
        why_no_gradient=_DATA,
        batching="loop",
    )


insert_op: Final = _defop("table_insert", _insert, lambda *arguments: (), multiple=True)
remove_op: Final = _defop("table_remove", _remove, lambda *arguments: (), multiple=True)
lookup_op: Final = _defop(
    "table_lookup",
    _lookup,
    lambda *arguments: known(
        (*_shape(arguments[:-2], arguments[-1]), *arguments[-2].value.shape), arguments[-2].value.dtype
    ),
)
contains_op: Final = _defop(
    "table_contains",
    _contains,
    lambda *arguments: known(_shape(arguments[:-2], arguments[-1]), dtypes.bool_),
)
size_op: Final = _defop(
    "table_size",
    lambda xp, *arguments: xp.asarray(np.int64(len(arguments[-1].rows))),
    lambda *arguments: known((), dtypes.int64),
    attrs="table",
)
export_op: Final = _defop(
    "table_export",
    _export,
    lambda *arguments: (
        known((None,), arguments[-1].keys),
        known((None, *arguments[-1].value.shape), arguments[-1].value.dtype),
    ),
    attrs="table",
    multiple=True,
)
