"""Staged functions that are the user's own: the library stages some, too."""

from __future__ import annotations

from typing import Any

from limelight.user_code import source_line


def is_user_function(function: Any) -> bool:
    """Whether a staged function was made of the user's code; one without code, as from a file, counts as theirs."""
    if getattr(function, "is_for_question", False):
        return False
    code = getattr(getattr(function, "python_function", None), "__code__", None)
    return code is None or not source_line.is_library(code)


def has_had_traces(function: Any) -> bool:
    """Whether it has had a trace; one that failed is none."""
    history = getattr(function.trace_cache, "history", None)
    return history is not None and history.made > 0
