"""Lines of the user's code, for messages about blocks: where a variable is assigned, and where an error was raised.

Both are asked of code objects: what converted code consists of has no source of its own.
"""

from __future__ import annotations

import dis
from types import CodeType, FunctionType
from typing import Any

from limelight.user_code import source_line


def line_of_assignment(name: str, *blocks: Any) -> str:
    """Where one of `blocks` (functions that converted code made) assigns `name`, as a suffix for a message."""
    for block in blocks:
        if isinstance(block, FunctionType):
            line = _assigned(block.__code__, name)
            if line is not None:
                return source_line.at(source_line.Source(block.__code__.co_filename, line, ""))
    return ""


def _assigned(code: CodeType, name: str) -> int | None:
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        line = (step.positions.lineno if step.positions else None) or line
        if step.opname.startswith("STORE_") and step.argval == name:
            return line
    inner_lines = (_assigned(x, name) for x in code.co_consts if isinstance(x, CodeType))
    return next((x for x in inner_lines if x is not None), None)


def raised_by_user(error: BaseException) -> source_line.Source | None:
    """The line of the `raise` that `error` comes from, if it was one of the user's."""
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None or source_line.is_library(tb.tb_frame.f_code):
        return None
    step = tb.tb_frame.f_code.co_code[tb.tb_lasti]
    if dis.opname[step] != "RAISE_VARARGS":
        return None
    return source_line.Source(tb.tb_frame.f_code.co_filename, tb.tb_lineno, tb.tb_frame.f_code.co_name)
