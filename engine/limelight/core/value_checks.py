"""What kernels refuse because of values: a place that is not there, a number that is not finite.

A kernel that sees arrays asks, and raises. In a program that is being made of a graph there are no values yet, and the
program itself cannot raise: so the question is kept for whoever makes it, who has the program answer it as well.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final

_kept: Final[ContextVar[list[Any] | None]] = ContextVar("kept", default=None)


def any_wrong(x: Any, wrong: Callable[[], Any]) -> bool:
    """Whether `wrong()`, an array of booleans, has a True in it.

    Args:
        x: an array that it is computed from, of any library.
        wrong: computes it.

    Returns:
        The answer; False where `x` is traced by JAX: then `wrong()` is kept, if anybody `keeps` it.
    """
    if not is_traced(x):
        return bool(wrong().any())
    questions = _kept.get()
    if questions is not None:
        questions.append(wrong().any())
    return False


def is_traced(x: Any) -> bool:
    """Whether `x` stands for an array in a program that JAX is making."""
    jax = sys.modules.get("jax")  # where it is not imported nothing is
    return jax is not None and isinstance(x, jax.core.Tracer)


def ask(wrong: Any) -> None:
    """Keeps a traced boolean, if anybody does."""
    questions = _kept.get()
    if questions is not None:
        questions.append(wrong)


def is_kept() -> bool:
    """Whether anybody keeps questions."""
    return _kept.get() is not None


@contextlib.contextmanager
def keeps() -> Iterator[list[Any]]:
    """In its block, questions of traced arrays are kept, in the list that it gives: booleans without an axis."""
    questions: list[Any] = []
    token = _kept.set(questions)
    try:
        yield questions
    finally:
        _kept.reset(token)
