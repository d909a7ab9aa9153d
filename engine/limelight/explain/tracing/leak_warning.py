"""A symbolic tensor that a staged function's code has stored: the warning at the first call, where it is stored."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from limelight.errors import LostChangeWarning
from limelight.explain.tracing.side_effects import side_effects
from limelight.staging.concrete_function import is_capture
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code import source_line
from limelight.user_code.holders import Holder, first_holder
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import warn_at

_STORING: Final = frozenset(["mutation", "attribute write", "global write", "closure write"])
_WORD: Final = re.compile(r"[^\W\d]\w*")
_TRIED: Final = 2
"""Of tensors that outlive a trace, how many are looked for: the others go the same way, or are garbage."""


def warn_of_leaks(function: Any, tracer: Callable[[], Any]) -> None:
    """Warns of a symbolic tensor that the code of a staged function has stored where the user can get at it.

    It has no value once the trace has ended, and calls that find the trace store nothing: LostChangeWarning.
    Tensors that a trace of an inner function has captured are no leak: that trace is made anew when it is needed.

    Args:
        function: the staged function.
        tracer: a weak reference to the tracer: its symbolic tensors refer to it, and nothing else does by now.
    """
    owner = tracer()
    if owner is None:
        return
    kept = [x for x in gc.get_referrers(owner) if isinstance(x, SymbolicTensor)]
    kept.sort(key=lambda x: x.line.line if x.line else 0)
    for _ in range(min(len(kept), _TRIED)):
        x = kept.pop(0)  # from the list, which would be a holder
        if (around := {*map(is_capture, _around(x))}) and all(around):
            continue  # the usual case, for which a search would look at all that there is
        holder = first_holder(x)
        if holder is not None and "._captures[" not in holder.path:
            _warn(function, x, holder)
            return


def _around(x: object) -> list[object]:
    """What refers to `x`, but for code that runs."""
    return [one for one in gc.get_referrers(x) if not isinstance(one, FrameType)]


def _warn(function: Any, x: SymbolicTensor, holder: Holder) -> None:
    line = _storing(function, holder) or x.line or source_line.user_line() or Source("<unknown>", 1, "")
    message = (
        f"`{function.name}` leaves a symbolic tensor behind: {x.name}, {x.spec}, is kept as {holder}"
        f"{source_line.at(line)}. It has no value once the trace has ended, and calls that find the trace store "
        "nothing. Return it, and store it outside the function; to keep a value between calls use ll.Variable"
    )
    warn_at(line, message, LostChangeWarning)


def _storing(function: Any, holder: Holder) -> Source | None:
    """The line of the code that stores something under one of the holder's names, as far as its source shows it."""
    writes = [one for one in side_effects(function).records if one.kind in _STORING and one.line is not None]
    for word in reversed(_WORD.findall(holder.path)):
        for one in writes:
            if word in _WORD.findall(one.what):
                return one.line
    return None
