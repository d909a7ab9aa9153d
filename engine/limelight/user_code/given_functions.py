"""Calls of the functions that users give to control flow, derivatives and `vectorize`, and the error of arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from limelight.errors import CallError, LimelightError


def call_user_function(op: str, parameter: str, gets: str, fn: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
    """`fn(*given, **named)`. Raises CallError where the function does not take these arguments.

    It is called plainly; its signature is looked at only after a TypeError.

    Args:
        op: the public function that calls it, for the error, as the next two.
        parameter: the parameter under which the user gave the function.
        gets: what its arguments are, in words.
        fn: the function.
        *given: its arguments.
        **named: those that have a name.
    """
    try:
        return fn(*given, **named)
    except TypeError as error:
        if isinstance(error, LimelightError) or _accepts(fn, given, named):
            raise
        count = len(given) + len(named)
        number = f"{count or 'no'} argument{'' if count <= 1 else 's'}"
        names = ", ".join("abcdefgh"[: len(given)])
        alone = len(given) in range(2, 9) and not named and _accepts(fn, given[:1], {})  # written for the tuple of them
        hint = f"; take them one by one, lambda {names}: ..." if alone else ""
        raise CallError(f"{op}: {parameter} gets {number}{gets and ', '}{gets}, but {error}{hint}") from None


def _accepts(fn: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether `fn` can be called with such arguments; True where its signature is not known."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*given, **named)
    except TypeError:
        return False
    return True
