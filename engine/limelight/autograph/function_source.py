"""From a code object back to the piece of source that it was compiled from."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
from types import CodeType
from typing import Final

from limelight.user_code import source_line

Definition = ast.FunctionDef | ast.Lambda

_PROMPT: Final = "<string>"
"""The file of whatever exec runs; from Python 3.13 on it has lines, those of `python -c`."""
_KEPT: Final = 8
_modules: dict[str, tuple[str, ast.Module]] = {}
"""The sources parsed last, by file name: the functions of one file are mostly converted together."""


class UnconvertibleError(Exception):
    """Why a function stays plain Python: a sentence, the line that it is about, and what to write instead."""

    def __init__(self, reason: str, file: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = source_line.Source(file, line, "")


def definition(code: CodeType) -> Definition:
    """A fresh syntax tree of the function or lambda whose code is `code`, with the line numbers of its file."""
    file, line = code.co_filename, code.co_firstlineno
    text = "" if file == _PROMPT else "".join(linecache.getlines(file))
    if not text:
        raise UnconvertibleError(
            f"the source of {named(code)} is not available (it was typed at a prompt, made by exec, or its file is "
            "gone); define it in a file or a notebook cell",
            file,
            line,
        )
    found = [node for node in ast.walk(_module(file, text, line)) if _matches(node, code)]
    if len(found) != 1:
        raise UnconvertibleError(_not_found(code, found), file, line)
    node = found[0]
    if isinstance(node, ast.AsyncFunctionDef):
        raise UnconvertibleError("it is a coroutine (`async def`); a graph runs without an event loop", file, line)
    assert isinstance(node, ast.FunctionDef | ast.Lambda), "nothing else matches"
    return node


def named(code: CodeType) -> str:
    return "this lambda" if code.co_name == "<lambda>" else f"`{code.co_name}`"


def _not_found(code: CodeType, found: list[ast.AST]) -> str:
    if found:
        return "several lambdas on this line look alike; write it as a function, with def"
    where = os.path.basename(code.co_filename)
    return f"{named(code)} is not where {where} says: the file has changed since it was loaded. Reload it"


def _module(file: str, text: str, line: int) -> ast.Module:
    known = _modules.get(file)
    if known is None or known[0] != text:
        try:
            tree = ast.parse(text, file)
        except SyntaxError:  # a cell with magics, or a file that is being edited
            raise UnconvertibleError("its source cannot be parsed as Python", file, line) from None
        known = _modules[file] = (text, tree)
        while len(_modules) > _KEPT:
            _modules.pop(next(iter(_modules)))
    return known[1]


def _matches(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        return first == code.co_firstlineno and node.name == code.co_name and _parameters(node.args) == _names(code)
    if isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
        return _parameters(node.args) == _names(code) and _holds(node.body, code)
    return False


def _holds(body: ast.expr, code: CodeType) -> bool:
    """Whether the instructions of `code` lie within `body`: this tells the lambdas of a line apart."""
    last = (body.end_lineno or body.lineno, body.end_col_offset or 0)
    spans = [
        ((start, left), (end, right))
        for start, end, left, right in code.co_positions()
        if start is not None and end is not None and left is not None and right is not None and right > 0
    ]
    if not spans:  # Python was told to leave columns out
        return True
    return min(s for s, _ in spans) >= (body.lineno, body.col_offset) and max(e for _, e in spans) == last


def _parameters(given: ast.arguments) -> list[str]:
    stars = [x for x in (given.vararg, given.kwarg) if x is not None]
    return [x.arg for x in (*given.posonlyargs, *given.args, *given.kwonlyargs, *stars)]


def _names(code: CodeType) -> list[str]:
    n = code.co_argcount + code.co_kwonlyargcount
    n += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return list(code.co_varnames[:n])
