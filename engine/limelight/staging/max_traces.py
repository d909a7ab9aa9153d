"""How many traces a function may have: `ll.function(max_traces=...)`."""

from __future__ import annotations

from typing import Any

from limelight.errors import TraceBudgetError


def is_spent(function: Any) -> bool:
    """Whether another trace of `function` would exceed its `max_traces`."""
    most = function._options["max_traces"]
    return most is not None and function.trace_cache.history.made_since_clearing >= most


def check(function: Any, record: Any) -> None:
    """Raises TraceBudgetError, with the `Miss` that was about to be traced, where the budget is spent."""
    if is_spent(function):
        raise TraceBudgetError(exceeded(function, record), record)


def exceeded(function: Any, record: Any) -> str:
    """What the error says: the budget, the call, and why it would trace."""
    most = function._options["max_traces"]
    plural = "" if most == 1 else "s"
    return (
        f"`{function.name}` has its {most} trace{plural} (max_traces={most}), and the call at {record.where} needs "
        f"another: {record.story}"
    )
