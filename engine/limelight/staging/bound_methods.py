"""Methods bound weakly: what is staged for one instance of a class, and must not keep that alive.

Each instance has a `Function` of its own, with a trace cache that goes when the instance does.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any

from limelight.errors import ArgumentError


def weakly_bound(function: Callable[..., Any], instance: Any) -> Callable[..., Any]:
    """`function` bound to `instance` without keeping it alive. Raises ArgumentError where that is not possible."""
    try:
        reference = weakref.ref(instance)
    except TypeError:
        raise ArgumentError(
            f"{name_of(function)} is a staged method of {type(instance).__name__}, whose objects cannot be referred to "
            'weakly; add "__weakref__" to its `__slots__`'
        ) from None

    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        return function(reference(), *args, **kwargs)

    method.__limelight_instance__ = reference  # type: ignore[attr-defined]  # for those who read its code
    full = inspect.signature(function)
    method.__signature__ = full.replace(parameters=list(full.parameters.values())[1:])  # type: ignore[attr-defined]
    return method


class _NoCode:
    """In place of a function that is written in C, or of an object that is called."""

    __code__ = None


def holder_of_code(function: Callable[..., Any]) -> Any:
    """The function whose `__code__` a call of `function` runs; it may get another one, as IPython's autoreload does."""
    found: Any = function
    while isinstance(found, functools.partial) or hasattr(found, "__limelight_instance__") or inspect.ismethod(found):
        if isinstance(found, functools.partial):
            found = found.func
        else:
            found = found.__func__ if inspect.ismethod(found) else found.__wrapped__
    return found if inspect.isfunction(found) else _NoCode


def name_of(function: Callable[..., Any]) -> str:
    """What to call a function: its name, that of the function within a partial one, or the type of another object."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))
