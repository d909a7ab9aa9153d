"""Whether what a line magic returns will be seen: IPython shows the value of a cell's last expression alone.

The instruction after the call, in the caller's code, says so. Asking IPython for the cell's last expression would get
loops, assignments and `%time` wrong.
"""

from __future__ import annotations

import sys
from types import FrameType

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell

from limelight.user_code import dropped_result

_RUN_LINE = InteractiveShell.run_line_magic.__code__


def is_dropped() -> bool:
    """Whether the line magic that is running stands where its value is dropped, and no `;` asks for silence.

    So it is above the last line of a cell, and in a loop or a branch; not where its value is assigned or passed on.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _RUN_LINE:
        frame = frame.f_back
    if frame is None or frame.f_back is None:
        return False
    if DisplayHook.semicolon_at_end_of_expression(str(frame.f_locals.get("line", ""))):
        return False
    caller = frame.f_back
    if caller.f_code.co_filename.startswith("<magic-timeit"):  # it would be shown thousands of times
        return False
    return dropped_result.is_dropped_in(caller)
