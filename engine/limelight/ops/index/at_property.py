"""`x.at[i]`, whose methods `set`, `add`, ... are the ops of `index_update`; and the error for `x[i] = v`."""

from __future__ import annotations

from typing import Any

from limelight.core.tensor import Tensor, TensorLike, method
from limelight.errors import DTypeError

__all__: list[str] = []  # what it adds are attributes of tensors


class Place:
    """`x.at[index]`: a part of a tensor to update. Each method returns a new tensor; `x` stays as it is."""

    __slots__ = ("_index", "_x")

    def __init__(self, x: Tensor, index: Any) -> None:
        self._x = x
        self._index = index

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
        return updated


class _At:
    """`x.at`: waits for an index."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> Place:
        return Place(self._x, index)


setattr(Tensor, "at", property(_At, doc="Updates of parts: x.at[i].set(v), also add, multiply, min, max."))  # noqa: B010


@method("__setitem__")
def _refuse(x: Tensor, index: Any, value: Any) -> None:
    """Raises DTypeError: tensors are immutable."""
    raise DTypeError(
        f"tensors are immutable, and so is this {x.spec}: write x = x.at[i].set(value) for a new one (also .add, "
        ".multiply, .min, .max), or keep the values in an ll.Variable"
    )
