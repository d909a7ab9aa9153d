"""A call of the user's that runs while tracing alone, written so that it runs each time the graph does."""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final

from limelight.staging.reads import Read
from limelight.tensor import Tensor

_LINES: Final = 12
"""How many lines a call may go on for where its file as a whole cannot be read."""
_INSTANCES: Final = frozenset(["self", "cls"])


def staged(read: Read, plain: Collection[str] = ()) -> str:
    """The call as `ll.py_func(...)`, with the names of its line; with "..." where the source cannot be had.

    Names that are `plain` stand for no tensors.
    """
    called = str(read.use.chain)
    found = _call(read, called)
    if found is None:
        return f"ll.py_func({called}, [...], None)"
    text, call = found
    names = [name for name in _tensors(call, read) if name not in plain]
    if names and not call.keywords and all(isinstance(arg, ast.Name) and arg.id in names for arg in call.args):
        return f"ll.py_func({called}, [{', '.join(arg.id for arg in call.args if isinstance(arg, ast.Name))}], None)"
    listed = ", ".join(names)
    return f"ll.py_func(lambda{' ' * bool(names)}{listed}: {_written(text, call)}, [{listed}], None)"


def _call(read: Read, called: str) -> tuple[str, ast.Call] | None:
    """The source text that holds the call, and the call in it."""
    for text, first in _texts(read):
        tree = _parsed(text)
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.Call):
                continue
            is_there = node.lineno <= read.line.line - first + 1 <= (node.end_lineno or node.lineno)
            if is_there and ast.unparse(node.func) == called:
                return text, node
    return None


def _texts(read: Read) -> Iterator[tuple[str, int]]:
    """The whole file, then ever more lines from the call's own; each with the number of its first line."""
    lines = linecache.getlines(read.code.co_filename)
    yield "".join(lines), 1
    start = read.line.line
    for end in range(start, min(start + _LINES, len(lines) + 1)):
        yield textwrap.dedent("".join(lines[start - 1 : end])), start


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _tensors(call: ast.Call, read: Read) -> list[str]:
    """The names among the arguments that may stand for tensors of the trace, in order."""
    inside = [node for arg in (*call.args, *call.keywords) for node in ast.walk(arg)]
    bound = {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in inside if isinstance(node, ast.arg)} | _INSTANCES
    names = dict.fromkeys(n.id for n in inside if isinstance(n, ast.Name) and n.id not in bound)
    return [name for name in names if _may_be_tensor(name, read)]


def _may_be_tensor(name: str, read: Read) -> bool:
    code = read.code
    return name in code.co_varnames or name in code.co_cellvars or isinstance(read.globals.get(name), Tensor)


def _written(text: str, call: ast.Call) -> str:
    segment = ast.get_source_segment(text, call)
    return segment if segment is not None and "\n" not in segment else ast.unparse(call)
