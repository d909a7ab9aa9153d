"""Whom a question is about."""

from __future__ import annotations

from typing import Any

from limelight.errors import ArgumentError
from limelight.staging.function import Function


def staged_functions(question: str, F: Any) -> tuple[Function, ...]:
    """`F` and, for a method of a class, those of its living instances. Raises ArgumentError for anything else."""
    if not isinstance(F, Function):
        given = getattr(F, "__name__", "")
        raise ArgumentError(
            f"explain.{question} needs a staged function, got {type(F).__name__}{f' {given!r}' if given else ''}; "
            "stage it first: F = ll.function(fn)"
        )
    return (F, *F.instances)
