"""`HashTable`: values by key, which change as the program goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.core import dispatch, dtypes, shapes
from limelight.core.dtypes import DTypeLike
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, as_tensor, beside, wrap
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.explain.without_effects import put_back
from limelight.lookup.rows import Rows
from limelight.lookup.table_ops import (
    TableRef,
    Texts,
    contains_op,
    export_op,
    insert_op,
    lookup_op,
    remove_op,
    size_op,
)
from limelight.staging.trace_branch import tracing

_TEXT = ("string", "str", str)


@put_back(last_set="_ref")
class HashTable:
    """A table from keys (integers, or strings) to values of one shape and dtype.

    Inserting, looking up and removing happen at once, in eager code and in staged functions: there they act on the
    table as it is when the graph runs, in the order of the program. Each call is atomic where threads share the table.
    In staged code strings are part of the program (no tensor holds text): look texts up where the data is prepared, as
    in `dataset.map(table.lookup)`. `get_state` and `set_state` save and restore the contents.

    Args:
        key_dtype: "string" (or `str`) for strings and bytes, of which "a" and b"a" are two keys; or an integer dtype.
        value_dtype: the dtype of the values; that of `default_value`, or float32.
        default_value: what `lookup` gives for keys that are not there; None makes that an error.
        shape: the shape of one value; that of `default_value`, or ().
        name: what messages and graphs call it.

    Raises:
        DTypeError: keys of another kind, or a default value that does not fit.

    >>> import limelight as ll
    >>> words = ll.lookup.HashTable("string", "int32", default_value=-1)
    >>> words.insert(["the", "cat"], [0, 1])
    >>> words.lookup([["cat", "dog"]]).tolist(), len(words)
    ([[1, -1]], 2)
    """

    __limelight_leaf__ = True

    def __init__(
        self,
        key_dtype: DTypeLike = "int64",
        value_dtype: DTypeLike | None = None,
        default_value: Any = None,
        shape: Any = None,
        name: str = "table",
    ) -> None:
        self._text = key_dtype in _TEXT
        self.key_dtype = None if self._text else dtypes.dtype(key_dtype)
        if self.key_dtype is not None and dtypes.kind(self.key_dtype) != "integer":
            raise DTypeError(f'HashTable: keys are integers or "string", got {key_dtype!r}')
        default = None
        if default_value is not None:
            wanted = None if value_dtype is None else dtypes.dtype(value_dtype)
            default = as_tensor(default_value) if wanted is None else beside(default_value, wanted)
            value_dtype = default.dtype if wanted is None else wanted
        sizes = shapes.as_shape(shape) if shape is not None else () if default is None else default.shape
        self.name = name
        self.value_spec = TensorSpec(sizes, value_dtype or dtypes.float32)
        self._default = None if default is None else self._one("default_value", default)
        self._rows = Rows(tuple(sizes), self.value_spec.dtype)  # type: ignore[arg-type]  # all sizes are known
        self._ref = TableRef(self)

    def _one(self, what: str, value: Any) -> Tensor:
        """A tensor of a value's type."""
        tensor = beside(value, self.value_spec.dtype)
        if tensor.dtype != self.value_spec.dtype:
            raise DTypeError(f"HashTable: {what} is {tensor.spec}, a value of the table is {self.value_spec}")
        if tensor.shape != self.value_spec.shape:
            raise ShapeError(f"HashTable: {what} is {tensor.spec}, a value of the table is {self.value_spec}")
        return tensor

    def _keys(self, keys: Any) -> tuple[tuple[Tensor, ...], Texts | None, Any]:
        """Keys as operands and as a parameter, and their shape."""
        if not self._text:
            tensor = as_tensor(keys)
            if dtypes.kind(tensor.dtype) != "integer":
                raise DTypeError(f"{self!r}: keys are integers, got {tensor.spec}")
            return (tensor,), None, tensor.shape
        if isinstance(keys, Tensor):
            raise DTypeError(f"{self!r}: keys are strings, got {keys.spec}")
        array = np.empty((), object) if isinstance(keys, (str, bytes)) else np.array(keys, object)
        if isinstance(keys, (str, bytes)):
            array[()] = keys
        flat = [x.item() if isinstance(x, np.generic) else x for x in array.ravel().tolist()]
        wrong = next((x for x in flat if not isinstance(x, (str, bytes))), None)
        if wrong is not None:
            raise DTypeError(f"{self!r}: keys are strings, got {wrong!r}")
        return (), Texts(flat, array.shape), array.shape

    def insert(self, keys: Any, values: Any) -> None:
        """Sets the values of keys, new or not; of equal keys the last one counts.

        Args:
            keys: integers (an array or tensor, or nested lists), or strings.
            values: of the table's dtype; of the shape of the keys, with that of one value behind it.

        Raises:
            ShapeError, DTypeError: keys or values do not fit. Then nothing is inserted.

        >>> import limelight as ll
        >>> table = ll.lookup.HashTable("int64", shape=(2,))
        >>> table.insert([7], [[1.0, 2.0]])
        >>> table.lookup(7).tolist()
        [1.0, 2.0]
        """
        operands, texts, sizes = self._keys(keys)
        tensor = beside(values, self.value_spec.dtype)
        if tensor.dtype != self.value_spec.dtype:
            raise DTypeError(f"{self!r}: values are {self.value_spec.dtype.name}, got {tensor.spec}")
        wanted = (*sizes, *self.value_spec.shape)
        if not shapes.compatible(tensor.shape, wanted) and shapes.is_static(tensor.shape):
            raise ShapeError(
                f"{self!r}: {shapes.show(sizes)} keys need values of shape {shapes.show(wanted)}, got {tensor.spec}"
            )
        dispatch.apply(insert_op, (*operands, tensor), (self._ref, texts))

    def lookup(self, keys: Any, default: Any = None) -> Tensor:
        """The values of keys; `default`, or the table's own, for those that are not there.

        Raises MissingKeyError where there is no default. `table[keys]` is the same.

        >>> import limelight as ll
        >>> table = ll.lookup.HashTable("int64", "float32")
        >>> table.insert([1, 2], [0.5, 1.5])
        >>> table.lookup([2, 3], default=0.0).tolist()
        [1.5, 0.0]
        """
        operands, texts, _ = self._keys(keys)
        chosen = self._default if default is None else self._one("default", default)
        given = operands if chosen is None else (*operands, chosen)
        values: Tensor = dispatch.apply(lookup_op, given, (self._ref, texts))
        return values

    __getitem__ = lookup

    def remove(self, keys: Any) -> None:
        """Removes keys; those that are not there are left out.

        >>> import limelight as ll
        >>> table = ll.lookup.HashTable("int64", default_value=0.0)
        >>> table.insert([1, 2], [0.5, 1.5])
        >>> table.remove([1, 9])
        >>> len(table)
        1
        """
        operands, texts, _ = self._keys(keys)
        dispatch.apply(remove_op, operands, (self._ref, texts))

    def contains(self, keys: Any) -> Tensor:
        """For each key whether it is there, as booleans.

        >>> import limelight as ll
        >>> ll.lookup.HashTable("int64").contains([1, 2]).tolist()
        [False, False]
        """
        operands, texts, _ = self._keys(keys)
        found: Tensor = dispatch.apply(contains_op, operands, (self._ref, texts))
        return found

    def size(self) -> Tensor:
        """How many keys there are, an int64 tensor; in a staged function, when it runs.

        >>> import limelight as ll
        >>> ll.lookup.HashTable("int64").size().item()
        0
        """
        size: Tensor = dispatch.apply(size_op, (), (self._ref,))
        return size

    def export(self) -> tuple[Any, Tensor]:
        """All keys, in the order in which they came (strings as a NumPy array of objects), and their values.

        Raises ArgumentError for strings in a staged function.

        >>> import limelight as ll
        >>> table = ll.lookup.HashTable("string", "int32", default_value=0)
        >>> table.insert("a", 5)
        >>> [x.tolist() for x in table.export()]
        [['a'], [5]]
        """
        if self._text and tracing() is not None:
            raise ArgumentError(f"{self!r}: strings cannot be exported in a staged function: no tensor holds text")
        if self._text:
            keys, values = self._rows.all()
            return np.array(keys, object), wrap(values)
        pair: tuple[Any, Tensor] = dispatch.apply(export_op, (), (self._ref,))
        return pair

    def get_state(self) -> dict[str, Any]:
        """The contents: the keys (an array of `key_dtype`, or a list of strings) and an array of their values.

        >>> import limelight as ll
        >>> table = ll.lookup.HashTable("string", "int32", default_value=0)
        >>> table.insert(["a"], [5])
        >>> table.get_state()["keys"]
        ['a']
        """
        keys, values = self._rows.all()
        if not self._text:
            return {"keys": np.array(keys, self.key_dtype), "values": values}
        texts = [key for key in keys if isinstance(key, str)]
        return {
            "keys": [key if isinstance(key, str) else key.decode("latin-1") for key in keys],
            "bytes": [] if len(texts) == len(keys) else [i for i, key in enumerate(keys) if isinstance(key, bytes)],
            "values": values,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes the contents that `get_state` has returned, of this table or of one of its types, instead of its own.

        Raises ArgumentError for the state of anything else; then the contents stay.
        """
        if not {"keys", "values"} <= set(state):
            raise ArgumentError(f"{self!r}: set_state needs what get_state has returned")
        values = np.asarray(state["values"])
        if values.dtype != self.value_spec.dtype or values.shape[1:] != self.value_spec.shape:
            raise ArgumentError(
                f"{self!r}: the saved values are {values.dtype}{list(values.shape[1:])}, those of the table "
                f"{self.value_spec}"
            )
        keys = list(state["keys"]) if self._text else np.asarray(state["keys"]).tolist()
        kinds = set(map(type, keys))
        if any(issubclass(kind, str) is not self._text for kind in kinds) or len(keys) != len(values):
            raise ArgumentError(f"{self!r}: the saved keys are not those of such a table")
        for i in state.get("bytes", ()):
            keys[int(i)] = keys[int(i)].encode("latin-1")
        self._rows.replace(keys, values)

    def __limelight_snapshot__(self) -> Callable[[], None]:
        """What gives it back its contents, for runs of a graph that are to have no effect."""
        changes, (keys, values) = self._rows.changes, self._rows.all()

        def give_back() -> None:
            if self._rows.changes != changes:
                self._rows.replace(keys, values)

        return give_back

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, key: Any) -> bool:
        return bool(self.contains(key))

    def __deepcopy__(self, memo: dict[int, Any]) -> HashTable:
        make, arguments = self.__reduce__()
        memo[id(self)] = clone = make(*arguments)
        return clone

    def __copy__(self) -> HashTable:
        return self.__deepcopy__({})

    def __reduce__(self) -> tuple[Callable[..., HashTable], tuple[Any, ...]]:
        key, spec = "string" if self._text else "int64", self.value_spec
        return (_restored, (self.get_state(), key, spec.dtype, self._default, spec.shape, self.name))

    def __repr__(self) -> str:
        keys = "string" if self._text else "integer"
        return f"<hash table {self.name!r}: {keys} -> {self.value_spec}, {len(self)} keys>"


def _restored(state: dict[str, Any], *arguments: Any) -> HashTable:
    table = HashTable(*arguments)
    table.set_state(state)
    return table
