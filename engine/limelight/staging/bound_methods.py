"""Python functions on their way to being staged: methods bound weakly, and what is said of endless recursion."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any

from limelight.errors import ArgumentError, mark_user_error
from limelight.user_code import source_line


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


def name_of(function: Callable[..., Any]) -> str:
    """What to call a function: its name, that of the function within a partial one, or the type of another object."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _of_user(words: str) -> RecursionError:
    error = RecursionError(words)
    mark_user_error(error)
    return error


def endless(name: str) -> RecursionError:
    """The error for a function that calls itself while it is traced, with nothing to tell when to stop."""
    return _of_user(
        f"{name} calls itself with arguments of the same types while it is traced, which would go on for ever"
        f"{source_line.here()}. A recursion ends while tracing only if a plain Python argument, or a shape, "
        "tells when: f(x, n - 1). Where a tensor's value decides, use ll.while_loop, or ll.py_func around Python code"
    )


def too_deep(name: str, levels: int) -> RecursionError:
    """The error for a recursion that would end, and that Python's stack cannot hold."""
    return _of_user(
        f"{name} called itself {levels:,} levels deep while it was traced, each with a graph of its own, and the stack "
        f"was full{source_line.here()}. Write the repetition as a loop: ll.while_loop, ll.scan, or Python's "
        "`for`"
    )
