"""The warning for functions that trace again and again, and for staged functions that are made again and again."""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict, deque
from typing import Any, Final

from limelight import source
from limelight.errors import RetracingWarning
from limelight.source import Source
from limelight.staging.history import WINDOW, History

_OFTEN: Final = 5
_AT_MOST: Final = 2
_CODES_KEPT: Final = 1000


class Family:
    """The functions staged from one definition: the histories of the latest, which outlive them, and the warnings."""

    def __init__(self) -> None:
        self.latest: deque[History] = deque(maxlen=WINDOW)
        self.warned = 0

    def joined_by(self, history: History) -> Family:
        """With `history` among the latest."""
        if not any(history is one for one in self.latest):
            self.latest.append(history)
        return self

    @property
    def is_remade_often(self) -> bool:
        """Whether the last five functions were called ten times or fewer in all."""
        calls = [history.calls for history in self.latest]
        return len(calls) >= _OFTEN and sum(calls[-_OFTEN:]) <= WINDOW


_staged: Final[OrderedDict[Source, Family]] = OrderedDict()
"""By definition."""


def forget() -> None:
    """Begins anew, as if nothing had been staged before."""
    _staged.clear()


def definition(function: Any) -> Source | None:
    """Where the Python function was written; None for what has no code of its own, and for a method of one instance."""
    code = getattr(function.python_function, "__code__", None)
    if code is None or source.is_library(code):
        return None
    return Source(code.co_filename, code.co_firstlineno, code.co_qualname)


def staged_before(function: Any) -> int:
    """From how many other staged functions of the same definition calls have traced."""
    where = definition(function)
    mine = function.trace_cache.history
    family = None if where is None else _staged.get(where)
    return 0 if family is None else sum([history is not mine for history in family.latest])


def warn(function: Any, story: str) -> None:
    """To be called once for each call that traced. Warns when five of the last ten did so, at most twice."""
    history = function.trace_cache.history
    family = _family(function)
    traced = history.recent_traces()
    if history.warned < _AT_MOST and traced >= _OFTEN:
        history.warned += 1
        calls = min(WINDOW, history.calls)
        _warn(f"`{function.name}` traced in {traced} of its last {calls} calls, which costs more than running. {story}")
    elif history.made == 1 and family.warned < _AT_MOST and family.is_remade_often:
        family.warned += 1
        _warn(f"`{function.name}` was staged anew in {_OFTEN} of its last {WINDOW} calls or fewer. {story}")


def _family(function: Any) -> Family:
    """The family of this definition, which the function joins; an empty one without a definition."""
    where = definition(function)
    if where is None:
        return Family()
    family = _staged.setdefault(where, Family())
    _staged.move_to_end(where)
    if len(_staged) > _CODES_KEPT:
        _staged.popitem(last=False)
    return family.joined_by(function.trace_cache.history)


def _warn(message: str) -> None:
    line = source.user_line() or Source("<unknown>", 1, "")
    warnings.warn_explicit(message, RetracingWarning, line.file, line.line, module=inspect.getmodulename(line.file))
