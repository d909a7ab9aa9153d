"""Is a call's result dropped? The instruction after it, in the caller's code, says so.

Methods of immutable objects that return a changed copy are often taken for methods that change the object.
"""

from __future__ import annotations

import dis
import sys
from types import FrameType
from typing import Final

from limelight.errors import LostChangeWarning
from limelight.user_code import source_line
from limelight.user_code.warn_at import warn_at

_POP: Final = dis.opmap["POP_TOP"]
_CACHE: Final = dis.opmap.get("CACHE", 0)
_CONVERTED: Final = ".autograph."
_TIMED: Final = ("<timeit-src>", "<magic-timeit>")
"""Files of code that drops every result, since only the time is asked for."""


def is_dropped_in(caller: FrameType) -> bool:
    """Whether the code of `caller` drops the result of the call that it is making."""
    code, place = caller.f_code.co_code, caller.f_lasti + 2
    while place < len(code) and code[place] == _CACHE:  # room for the interpreter's notes
        place += 2
    return place < len(code) and code[place] == _POP


def warn_if_dropped(what: str, instead: str, depth: int = 2) -> None:
    """Warns where the user's line drops the result of a method of ours: LostChangeWarning.

    Args:
        what: what the method does, as a clause.
        instead: the code to write.
        depth: how many frames above this one is the method's caller.
    """
    caller: FrameType | None = sys._getframe(depth)
    while caller is not None and _CONVERTED in caller.f_globals.get("__name__", ""):  # calls made for converted code
        caller = caller.f_back
    if caller is None or source_line.is_library(caller.f_code) or not is_dropped_in(caller):
        return
    if caller.f_code.co_filename in _TIMED:
        return
    line = source_line.Position(caller.f_code, caller.f_lasti).resolve()
    message = f"{what}, but the result is dropped{source_line.at(line)}: write {instead}"
    warn_at(line, message, LostChangeWarning)
