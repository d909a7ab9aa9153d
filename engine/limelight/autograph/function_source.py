"""From a code object back to the piece of source that it was compiled from."""

from __future__ import annotations

import ast
import os
from types import CodeType
from typing import Final

from limelight.user_code import source_line
from limelight.user_code.definitions import NoDefinitionError, find_definition

Definition = ast.FunctionDef | ast.Lambda


class UnconvertibleError(Exception):
    """Why a function stays plain Python: a sentence, the line that it is about, and what to write instead."""

    def __init__(self, reason: str, file: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = source_line.Source(file, line, "")


def definition(code: CodeType) -> Definition:
    """The syntax tree of the function or lambda whose code is `code`, which is shared: copy it before changing it."""
    file, line = code.co_filename, code.co_firstlineno
    try:
        node = find_definition(code)
    except NoDefinitionError as error:
        reason = _REASONS[error.reason].format(named(code), os.path.basename(file))
        raise UnconvertibleError(reason, file, line) from None
    if isinstance(node, ast.AsyncFunctionDef):
        raise UnconvertibleError("it is a coroutine (`async def`); a graph runs without an event loop", file, line)
    return node


def named(code: CodeType) -> str:
    return "this lambda" if code.co_name == "<lambda>" else f"`{code.co_name}`"


_REASONS: Final = {
    "absent": "the source of {0} is not available (it was typed at a prompt, made by exec, or its file is gone); "
    "define it in a file or a notebook cell",
    "unparsable": "its source cannot be parsed as Python",
    "several": "several lambdas on this line look alike; write it as a function, with def",
    "changed": "{0} is not where {1} says: the file has changed since it was loaded. Reload it",
}
