"""Where library code that calls the user's functions lets autograph convert them first.

Autograph lies far above `core`, so it registers itself here. Library code that calls what it was given (a module, a
layer's activation, `grad`) calls `maybe_converted(function)` instead: where a function is being traced with
`autograph=True`, that is the function with its control flow staged, as if the user's own code had called it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from limelight.errors import SymbolicValueError
from limelight.with_blocks import Block


class _Conversion:
    """What functions become in a block."""

    __slots__ = ("_block", "_convert")

    def __init__(self, convert: Callable[[Any], Any], block: Block) -> None:
        self._convert = convert
        self._block = block

    def __call__(self, function: Any) -> Any:
        return function if self._block.is_over_here else self._convert(function)


_converters: Final[list[Callable[[Any], Any]]] = []
_convert: Final[ContextVar[_Conversion | None]] = ContextVar("conversion", default=None)


def maybe_converted(function: Any) -> Any:
    """What to call in the place of `function`: converted where the trace at hand asks for it, else as it is."""
    convert = _convert.get()
    return function if convert is None else convert(function)


@contextmanager
def conversion_scope(convert: Callable[[Any], Any] | None) -> Iterator[None]:
    """Within its block `maybe_converted` is `convert`; with None, functions stay as they are."""
    token = _convert.set(None if convert is None else _Conversion(convert, Block(sys._getframe(1))))
    try:
        yield
    finally:
        _convert.reset(token)


@contextmanager
def unconverted(name: str) -> Iterator[None]:
    """Around the trace of the function `name`: what it runs is not converted, unless it says so itself."""
    with conversion_scope(None):
        try:
            yield
        except SymbolicValueError as error:
            error.staged_plainly = getattr(error, "staged_plainly", name)  # type: ignore[attr-defined]  # for autograph
            raise


def register_converter(converter: Callable[[Any], Any]) -> None:
    """Has `converted(function)` answer `converter(function)`; called once, by autograph."""
    _converters[:] = [converter]


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its control flow on tensors staged, for `ll.function(autograph=True)`."""
    converted_function: Callable[..., Any] = _converters[0](function)
    return converted_function
