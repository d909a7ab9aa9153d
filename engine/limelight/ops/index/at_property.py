"""`x.at[i]`, whose methods `set`, `add`, ... are the ops of `index_update`; and the error for `x[i] = v`.

`v.at[i]` of a variable has `assign`, `assign_add` and `assign_sub` too, which change that part of the variable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, variable_updates
from limelight.core.op import Op
from limelight.core.tensor import Tensor, TensorLike, as_tensor, constant, method
from limelight.core.variable import Variable
from limelight.core.variable_updates import static_key
from limelight.errors import ArgumentError, CallError, DTypeError, mark_user_error
from limelight.user_code import equivalents, hints, source_line
from limelight.user_code.dropped_result import warn_if_dropped
from limelight.user_code.tracebacks import in_place_of_python

__all__: list[str] = []  # what it adds are attributes of tensors and variables


class Place:
    """`x.at[index]`: a part of a tensor to update. Each method returns a new tensor; `x` stays as it is.

    They warn (LostChangeWarning) where their result is dropped.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Tensor, index: Any) -> None:
        self._x = x
        self._index = index

    def __getattr__(self, name: str) -> Any:
        hint = equivalents.of_places().get(name, "it has set, add, multiply, min, max")
        error = AttributeError(f"x.at[i] has no method {name!r}: {hints.with_form(hint)}", name=name, obj=self)
        mark_user_error(error)
        raise error

    def __repr__(self) -> str:
        return f"<a place in {self._x.spec}: call .set(v), .add(v), .multiply(v), .min(v) or .max(v) for a new tensor>"

    def set(self, updates: TensorLike, /) -> Tensor:
        """`index_update` here."""
        return self._run("set", updates)

    def add(self, updates: TensorLike, /) -> Tensor:
        """`index_add` here."""
        return self._run("add", updates)

    def multiply(self, updates: TensorLike, /) -> Tensor:
        """`index_multiply` here."""
        return self._run("multiply", updates)

    def min(self, updates: TensorLike, /) -> Tensor:
        """`index_min` here."""
        return self._run("min", updates)

    def max(self, updates: TensorLike, /) -> Tensor:
        """`index_max` here."""
        return self._run("max", updates)

    def _run(self, how: str, updates: TensorLike) -> Tensor:
        updated: Tensor = self._x._updated(how, self._index, updates)
        warn_if_dropped(f"x.at[i].{how}(v) returns a tensor, and x stays as it is", f"x = x.at[i].{how}(v)", 3)
        return updated


for _name in ("set", "add", "multiply", "min", "max"):
    source_line.speak_of(getattr(Place, _name), f"x.at[i].{_name}")


def _refuse_operator(symbol: str, instead: str) -> Any:
    def refused(self: Place, other: Any) -> Any:
        if isinstance(self, VariablePlace):
            raise ArgumentError(f"v.at[i] {symbol}= x changes nothing: write v.at[i].assign(v[i] {symbol} x)")
        raise ArgumentError(f"x.at[i] {symbol}= v changes nothing, as tensors are immutable: write {instead}")

    return refused


for _name, _symbol, _instead in (
    ("iadd", "+", "x = x.at[i].add(v)"),
    ("isub", "-", "x = x.at[i].add(-v)"),
    ("imul", "*", "x = x.at[i].multiply(v)"),
    ("itruediv", "/", "x = x.at[i].multiply(1.0 / v)"),
):
    setattr(Place, f"__{_name}__", _refuse_operator(_symbol, _instead))


class _At:
    """`x.at`: waits for an index."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> Place:
        return Place(self._x, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ArgumentError("x.at[i] = v changes nothing, as tensors are immutable: write x = x.at[i].set(v)")

    def __call__(self, *index: Any) -> Place:
        """Raises CallError: the index stands in brackets."""
        raise CallError("x.at: the index stands in brackets; write x.at[i].set(v)")


setattr(Tensor, "at", property(_At, doc="Updates of parts: x.at[i].set(v), also add, multiply, min, max."))  # noqa: B010


@method("__setitem__")
def _refuse(x: Tensor, index: Any, value: Any) -> None:
    """Raises DTypeError: tensors are immutable."""
    raise DTypeError(
        f"tensors are immutable, and so is this {x.spec}: write x = x.at[i].set(value) for a new one (also .add, "
        ".multiply, .min, .max), or keep the values in an ll.Variable"
    )


@method("__delitem__")
def _refuse_deletion(x: Tensor, index: Any) -> None:
    """Raises DTypeError: tensors are immutable."""
    raise DTypeError(
        f"tensors are immutable, and so is this {x.spec}: write x = ll.concat([x[:i], x[i + 1:]]), or x = x[mask] with "
        "a mask of what stays"
    )


# parts of variables

_INSTEAD: Final = {"set": "v.at[i].assign(x)", "add": "v.at[i].assign_add(x)"}

_BY_SLICE: Final = {
    "set": variable_updates.assign_slice,
    "add": variable_updates.assign_slice_add,
    "subtract": variable_updates.assign_slice_sub,
}
_BY_ROWS: Final[dict[str, Callable[..., Tensor]]] = {
    "set": Variable.scatter_update,
    "add": Variable.scatter_add,
    "subtract": Variable.scatter_sub,
}


class VariablePlace(Place):
    """`v.at[index]`: a part of a variable to change. `set`, `add`, ... return a tensor, and `v` stays as it is.

    These warn (LostChangeWarning) where their result is dropped: nothing has been done then.
    """

    __slots__ = ("_variable",)

    def __init__(self, variable: Variable, index: Any) -> None:
        self._variable = variable
        self._index = index

    @in_place_of_python
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"v.at[i] has no method {name!r}: it has assign, assign_add and assign_sub, which change the variable; for "
            "anything else write v.at[i].assign(f(v[i]))",
            name=name,
            obj=self,
        )

    def __repr__(self) -> str:
        return f"<a place in variable {self._variable.name!r}: call .assign(x), .assign_add(x) or .assign_sub(x)>"

    def assign(self, value: TensorLike, /) -> Tensor:
        """Replaces the part by `value`, which broadcasts to it; returns the new value of the whole variable.

        The index is anything that may stand in `v[...]`. Ints and slices, and rows given by integers, are changed in
        one step, which other threads cannot come between. Raises ShapeError or DTypeError where `value` does not fit,
        AxisError or OutOfBoundsError for a place that the variable has not.

        >>> import limelight as ll
        >>> v = ll.Variable([1.0, 2.0, 3.0])
        >>> v.at[0].assign(10.0).tolist()
        [10.0, 2.0, 3.0]
        """
        return self._change("set", value)

    def assign_add(self, delta: TensorLike, /) -> Tensor:
        """Adds `delta` to the part; otherwise as `assign`.

        >>> import limelight as ll
        >>> v = ll.Variable([1.0, 2.0, 3.0])
        >>> v.at[1:].assign_add([10.0, 20.0]).tolist()
        [1.0, 12.0, 23.0]
        """
        return self._change("add", delta)

    def assign_sub(self, delta: TensorLike, /) -> Tensor:
        """Subtracts `delta` from the part; otherwise as `assign`.

        >>> import limelight as ll
        >>> v = ll.Variable([[1.0, 2.0], [3.0, 4.0]])
        >>> v.at[1, 0].assign_sub(1.0).tolist()
        [[1.0, 2.0], [2.0, 4.0]]
        """
        return self._change("subtract", delta)

    def _change(self, how: str, value: TensorLike) -> Tensor:
        v = self._variable
        try:
            key = static_key(self._index, v.ndim)
        except ArgumentError:
            key = None
        if key is not None:
            op: Op = _BY_SLICE[how]
            return v._write(op, value, attrs=(key,))
        if _names_rows(self._index):
            return _BY_ROWS[how](v, self._index, value)
        value = _of_dtype(v, value)
        return v.assign(self.set(value) if how == "set" else self.add(-value if how == "subtract" else value))

    def _run(self, how: str, updates: TensorLike) -> Tensor:
        warn_if_dropped(
            f"v.at[i].{how}(x) returns a tensor, and the variable {self._variable.name!r} stays as it is",
            _INSTEAD.get(how, f"v.assign(v.at[i].{how}(x))"),
            3,
        )
        updated: Tensor = self._variable.read_value()._updated(how, self._index, updates)
        return updated


def _names_rows(index: Any) -> bool:
    """Whether it is one array of integers, or an integer that is a tensor."""
    if isinstance(index, list):
        index = np.asarray(index)
    return hasattr(index, "dtype") and dtypes.kind(dtypes.dtype(index.dtype)) == "integer"


def _of_dtype(variable: Variable, value: TensorLike) -> Tensor:
    """`value` as a tensor; Python numbers take on the variable's dtype. Raises DTypeError for one that has another."""
    part = as_tensor(value) if hasattr(value, "dtype") else constant(value, variable.dtype)
    if part.dtype != variable.dtype:
        raise DTypeError(
            f"v.at[...]: a value of {part.dtype.name} does not fit a variable of {variable.dtype.name}; "
            f"write ll.astype(value, ll.{variable.dtype.name})"
        )
    return part


class _AtOfVariable:
    """`v.at`: waits for an index."""

    __slots__ = ("_variable",)

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def __getitem__(self, index: Any) -> VariablePlace:
        return VariablePlace(self._variable, index)


setattr(Variable, "at", property(_AtOfVariable, doc="Parts to change: v.at[i].assign(x), also assign_add, assign_sub."))  # noqa: B010
