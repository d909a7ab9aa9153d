"""The staged functions that a question is about, and the name by which the user knows one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight.errors import ArgumentError
from limelight.staging.decorator import function
from limelight.staging.function import Function


def called_by(F: Function) -> str:
    """The name by which code calls `F`: its own, or for a lambda that under which its module keeps it."""
    if F.name.isidentifier():
        return F.name
    space = getattr(F.python_function, "__globals__", {})
    names = [name for name, value in list(space.items()) if value is F and not name.startswith("_")]
    return names[0] if names else "F"


def staged_for(question: str, F: Callable[..., Any], name: str | None = None) -> Function:
    """`F`, or for a function, method or module that is not staged a staged one of it, which serves this question alone.

    `name` is what the user calls it; by default it has its own. Views of what the user has staged do not list it.

    Raises ArgumentError, with the name of the question, for what cannot be called and for classes.
    """
    if isinstance(F, Function):
        return F
    if isinstance(F, type):
        raise ArgumentError(
            f"explain.{question}: {F.__name__} is a class, and calling it makes an object, not a graph: make one, "
            "and ask about a call of that"
        )
    if not callable(F):
        raise ArgumentError(f"explain.{question} needs a function or a module to call, got {type(F).__name__}")
    made: Function = function(F, name=name)
    made.is_for_question = True
    return made


def staged_functions(question: str, F: Any) -> tuple[Function, ...]:
    """`F` and, for a method of a class, those of its living instances.

    Raises ArgumentError, with the name of the question, for anything but a staged function.
    """
    if not isinstance(F, Function):
        name = getattr(F, "__name__", "")
        raise ArgumentError(
            f"explain.{question} needs a staged function, got {type(F).__name__}{f' {name!r}' if name else ''}; "
            "stage it first: F = ll.function(fn)"
        )
    return (F, *F.instances)
