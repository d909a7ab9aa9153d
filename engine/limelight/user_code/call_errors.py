"""What Python says of a call whose arguments do not fit, in its own words."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_SELF: Final = inspect.Parameter("_self", inspect.Parameter.POSITIONAL_ONLY)


class Called(NamedTuple):
    """What runs when a function is called: its qualified name, and whether an object is handed to it first."""

    name: str
    is_bound: bool


def words(
    function: Called, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> str | None:
    """The message of the TypeError that Python raises when `function` is called so; None where it raises none.

    Only Python knows it: "takes 2 positional arguments but 3 were given" has other forms for other parameters. So a
    function with the same parameters is called; it has no body.

    Args:
        function: what the message speaks of.
        signature: its parameters, without the object that a method is bound to.
        args: the positional arguments.
        kwargs: the keyword arguments.
    """
    parameters = [_plain(parameter) for parameter in signature.parameters.values()]
    if function.is_bound:  # Python counts the object
        parameters, args = [_SELF, *parameters], (None, *args)
    namespace: dict[str, Any] = {}
    exec(f"def stub{inspect.Signature(parameters)}: pass", namespace)
    stub = namespace["stub"]
    stub.__qualname__ = function.name
    try:
        stub(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter with nothing of the user's."""
    empty = inspect.Parameter.empty
    return parameter.replace(annotation=empty, default=empty if parameter.default is empty else None)


def called(function: Any, name: str) -> Called:
    """What runs when `function` is called, which was staged as `name`."""
    if name != getattr(function, "__name__", type(function).__name__):  # the user's choice
        return Called(name, False)
    while isinstance(function, functools.partial):
        function = function.func
    if hasattr(function, "__limelight_instance__"):  # a method, bound weakly
        return Called(function.__wrapped__.__qualname__, True)
    if not hasattr(function, "__qualname__"):
        return Called(f"{type(function).__qualname__}.__call__", True)
    return Called(function.__qualname__, inspect.ismethod(function))
