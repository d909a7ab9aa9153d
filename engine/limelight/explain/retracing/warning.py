"""The warning for functions that trace again and again, and for staged functions that are made again and again."""

from __future__ import annotations

from typing import Any, Final

from limelight.errors import RetracingWarning
from limelight.explain.retracing import restaging
from limelight.explain.retracing.restaging import Family
from limelight.staging.trace_cache import WINDOW, History
from limelight.user_code import source_line
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import warn_at

_OFTEN: Final = 5
_AT_MOST: Final = 2


def warn_if_retracing(function: Any) -> None:
    """To be called once after each call that traced: warns when most calls do, with the reason of the latest.

    The inner calls of a recursion are part of one call, rather than calls that could be spared.
    """
    misses = function.trace_cache.history.misses
    if len(function._in_progress) < 2:
        _warn_if_due(function, misses[-1] if misses else "")


def _warn_if_due(function: Any, story: object) -> None:
    """Warns when five of the last ten calls traced.

    At most twice, and the second time after ten more calls: what the next call would say is much the same.
    """
    history = function.trace_cache.history
    family = restaging.family_of(function)
    traced = history.recent_traces()
    if traced >= _OFTEN and _is_due(history, history.calls):
        calls = min(WINDOW, history.calls)
        _warn(f"`{function.name}` traced in {traced} of its last {calls} calls, which costs more than running. {story}")
    elif history.made == 1 and family.is_remade_often and _is_due(family, family.joined):
        _warn(f"`{function.name}` was staged anew in {_OFTEN} of its last {WINDOW} calls or fewer. {story}")


def _is_due(told: History | Family, now: int) -> bool:
    """Whether a warning is due; it is counted if so."""
    due = told.warned == 0 or (told.warned < _AT_MOST and now >= told.warned_at + WINDOW)
    if due:
        told.warned, told.warned_at = told.warned + 1, now
    return due


def _warn(message: str) -> None:
    line = source_line.user_line() or Source("<unknown>", 1, "")
    warn_at(line, message, RetracingWarning)
