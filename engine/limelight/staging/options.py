"""The options of `ll.function`: what each may be. `function` says what they mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from limelight.errors import ArgumentError, CallError
from limelight.executors import base as executors
from limelight.user_code import equivalents

_NO_JAX: Final = (
    "ll.function: jit_compile=True needs JAX, which is not installed: pip install 'limelight[xla]'; or leave it out, "
    "and the function runs on the executor {chosen!r}"
)


def check_flags(autograph: object, jit_compile: object) -> None:
    """Raises ArgumentError for values that are no such option, and for `jit_compile=True` without JAX."""
    for name, value in (("autograph", autograph), ("jit_compile", jit_compile)):
        if value is not None and not isinstance(value, bool):
            raise ArgumentError(f"ll.function: {name} must be True, False or None, got {value!r}")
    if jit_compile and executors.COMPILED not in executors.names():
        raise ArgumentError(_NO_JAX.format(chosen=executors.chosen.get()))


def executor_for(jit_compile: bool | None) -> str:
    """The executor of functions that are traced now: the chosen one, but as far as `jit_compile` says otherwise."""
    chosen = executors.chosen.get()
    if jit_compile is None:
        return chosen
    if jit_compile:
        return executors.COMPILED
    return executors.DEFAULT if chosen == executors.COMPILED else str(chosen)  # no longer one that was not asked for


def check_function(function: Any) -> None:
    """Raises ArgumentError for what cannot be called, and for functions that hand out results one by one, or wait."""
    if isinstance(function, classmethod):
        raise ArgumentError("ll.function got a classmethod; write @classmethod first, and @ll.function below it")
    if not callable(function):
        raise ArgumentError(f"ll.function needs something callable, got {type(function).__name__}")
    refuse_waiting("ll.function", function)


def refuse_waiting(what: str, function: Any) -> None:
    """Raises ArgumentError for a generator or coroutine function, calling which does no more than making an object."""
    name = getattr(function, "__name__", type(function).__name__)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ArgumentError(
            f"{what}: {name} is a generator function (`yield`), whose values a graph cannot hand out one by one. "
            "Return a list or tuple; or give it what computes one step, and call that from a plain generator"
        )
    if inspect.iscoroutinefunction(function):
        raise ArgumentError(
            f"{what}: {name} is a coroutine function (`async def`), and a graph runs without an event loop. Give it a "
            "plain function with what it computes, and call that from the coroutine"
        )


def check_names(maker: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raises CallError for a name that `maker` does not take, with the one that was meant."""
    parameters = inspect.signature(maker).parameters.values()
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            hint = equivalents.setting_hint(name, known, equivalents.function_options())
            raise CallError(f"ll.function has no option {name!r}{hint} It has {', '.join(known)}")


def check_bounds(**bounds: object) -> None:
    """Raises ArgumentError for a bound that is neither None nor a positive whole number."""
    for name, value in bounds.items():
        if value is not None and (type(value) is not int or value < 1):
            raise ArgumentError(f"ll.function: {name} must be None (no bound) or a positive int, got {value!r}")
