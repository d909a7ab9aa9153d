"""The user's functions on their way back to him: as they are, or as the trace at hand wants them.

Library code that calls what it was given (a module, a layer's activation, `grad`) asks `handed` for it. Where a
function is being traced with `autograph=True`, that is the function with its control flow staged, as if his own code
called it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from limelight.errors import SymbolicValueError

_converters: Final[list[Callable[[Any], Any]]] = []
_convert: Final[ContextVar[Callable[[Any], Any] | None]] = ContextVar("handing", default=None)


def handed(function: Any) -> Any:
    """What to call in the place of `function`."""
    convert = _convert.get()
    return function if convert is None else convert(function)


@contextmanager
def handing(convert: Callable[[Any], Any] | None) -> Iterator[None]:
    """Within its block `handed` is `convert`, None for functions as they are."""
    token = _convert.set(convert)
    try:
        yield
    finally:
        _convert.reset(token)


@contextmanager
def plainly(name: str) -> Iterator[None]:
    """Around the trace of the function `name`: what it runs is not converted, unless it says so itself."""
    with handing(None):
        try:
            yield
        except SymbolicValueError as error:
            error.staged_plainly = getattr(error, "staged_plainly", name)  # type: ignore[attr-defined]  # for autograph
            raise


def convert_by(converter: Callable[[Any], Any]) -> None:
    """Has `converted` answer `converter(function)`: autograph, which lies above staging, registers itself so."""
    _converters[:] = [converter]


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its control flow on tensors staged, for `ll.function(autograph=True)`."""
    made: Callable[..., Any] = _converters[0](function)
    return made
