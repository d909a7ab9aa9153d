"""Looking at values while a program runs, staged or not: `print`, `check`, `check_numerics`.

In a staged function Python's `print` and `assert` run while tracing, and see no values. These are nodes of the graph:
they run in each call, in the order in which they were written, also where nothing that they return is used, in
branches, loops and under `ll.vectorize` (example by example).
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.core import dispatch, dtypes, nest
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, DTypeError
from limelight.ops import debugging
from limelight.user_code import hints

__all__ = ["check", "check_numerics", "print"]


class _Text:
    """A format with its arguments: tensors, whose values come when it is run, and anything else."""

    __limelight_leaf__ = True

    def __init__(self, function: str, form: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not isinstance(form, str):
            raise ArgumentError(
                f"{function}: the first argument is the text, with {{}} where a value goes, got {type(form).__name__}; "
                f'write ll.{function}("x = {{}}", x)'
            )
        leaves, self._structure = nest.flatten((given, named))
        self._form = form
        self._leaves = [None if _is_tensor(x) else x for x in leaves]
        self._places = [i for i, x in enumerate(leaves) if _is_tensor(x)]
        self.tensors = [as_tensor(leaves[i]) for i in self._places]
        blank = [np.zeros(()) if _is_tensor(x) else x for x in leaves]
        self._check(function, blank)

    def _check(self, function: str, leaves: list[Any]) -> None:
        """Raises ArgumentError now, not when it runs, for a value that is not given, or for which there is no place."""
        given, named = nest.unflatten(self._structure, leaves)
        reader = _Used()
        try:
            reader.vformat(self._form, given, named)
        except (TypeError, ValueError, AttributeError):
            return  # about a value, of which this is not one
        except LookupError:
            if isinstance(reader.missing, str):
                raise ArgumentError(
                    f"{function}: {self._form!r} asks for {reader.missing!r}, which is not given; write "
                    f"{reader.missing}=x after the text"
                ) from None
            if reader.missing is not None:
                raise ArgumentError(
                    f"{function}: {self._form!r} asks for more values than are given by place, {len(given)}; write one "
                    "for each {} after the text"
                ) from None
            return  # about an element of a value
        unused = [f"{i}" for i in range(len(given)) if i not in reader.used]
        unused += [name for name in named if name not in reader.used]
        if unused:
            raise ArgumentError(
                f"{function}: {self._form!r} has no place for the value {', '.join(unused)}, which would not be shown; "
                f'write {{}} where a value goes, as in ll.{function}("x = {{}}", x)'
            )

    def _formatted(self, leaves: list[Any]) -> str:
        given, named = nest.unflatten(self._structure, leaves)
        return self._form.format(*given, **named)

    def __call__(self, values: list[Any]) -> str:
        leaves = list(self._leaves)
        for i, value in zip(self._places, values, strict=True):
            leaves[i] = value
        return self._formatted(leaves)

    def __repr__(self) -> str:
        return repr(self._form)


class _Used(string.Formatter):
    """Notes which values a text asks for, and which one of them is not given."""

    def __init__(self) -> None:
        self.used: set[int | str] = set()
        self.missing: int | str | None = None

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self.used.add(key)
        try:
            return super().get_value(key, args, kwargs)
        except LookupError:
            self.missing = key
            raise


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor) or hasattr(x, "__as_tensor__")


def print(text: str, /, *args: Any, **named: Any) -> None:
    """Prints `text.format(*args, **named)` when the program runs; tensors are printed as NumPy prints arrays.

    Args:
        text: with {} where a value goes, as `str.format` takes it.
        *args: tensors, nests of them, or other values.
        **named: the same by name.

    Raises:
        ArgumentError: the text asks for what is not given, or has no {} for what is.

    >>> import limelight as ll
    >>> @ll.function
    ... def squared(x):
    ...     ll.debug.print("x is {}, its double {:.1f}", x, 2.0 * x)
    ...     return x * x
    >>> y = squared(ll.constant(3.0))
    x is 3.0, its double 6.0
    """
    writer = _Text("debug.print", text, args, named)
    dispatch.apply(debugging.print_op, tuple(writer.tensors), (writer,))


def check(condition: TensorLike, message: str, /, *args: Any, **named: Any) -> None:
    """Raises CheckError when the program runs, unless all elements of `condition` are true.

    Args:
        condition: booleans of any shape.
        message: what is wrong, with {} where a value goes, as `str.format` takes it.
        *args: tensors, nests of them, or other values.
        **named: the same by name.

    Raises:
        CheckError: an element is false.
        DTypeError: `condition` is not boolean.
        ArgumentError: the message asks for what is not given, or has no {} for what is.

    >>> import limelight as ll
    >>> ll.debug.check(ll.constant(2.0) > 0.0, "x must be positive")
    """
    writer = _Text("debug.check", message, args, named)
    condition = as_tensor(condition)
    if condition.dtype != dtypes.bool_:
        raise DTypeError(f"debug.check needs a bool condition, got {condition.dtype.name}; compare it, as in x > 0")
    dispatch.apply(debugging.check_op, (condition, *writer.tensors), (writer,))


def check_numerics(x: TensorLike, /, message: str = "") -> Tensor:
    """`x`; raises CheckError, with `message`, when the program runs and `x` has NaN or infinite elements.

    `x` is floating or complex. The gradient passes through. `ll.explain.nan` finds the op that made them.

    >>> import limelight as ll
    >>> ll.debug.check_numerics(ll.constant([1.0, 2.0]), "the loss").tolist()
    [1.0, 2.0]
    """
    return debugging.check_numerics((x,), str(message))


if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("debug")
__dir__ = hints.listing(__all__)
