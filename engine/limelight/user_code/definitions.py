"""Functions as they were written: the syntax tree of a definition, with the line numbers of its file."""

from __future__ import annotations

import ast
import functools
import linecache
import textwrap
from collections.abc import Collection, Iterator
from types import CodeType, FunctionType
from typing import Final, TypeAlias

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_PARENTHESES: Final = 3
"""How many may close after the last instruction of a definition: on lines of their own, or behind a lambda's body."""


def definition_of(function: FunctionType) -> Definition | None:
    """The definition of `function`, None where the source cannot be had or read."""
    return _definition(function.__code__)


def reads_only(function: object, parameter: str, keys: Collection[object]) -> bool:
    """Whether all that a function does with a parameter is to read these keys of it, as `parameter["key"]`."""
    tree = definition_of(function) if isinstance(function, FunctionType) else None
    if tree is None:
        return False
    nodes = list(ast.walk(tree))
    read = [
        node.value.id
        for node in nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value in keys
    ]
    used = [node.id for node in nodes if isinstance(node, ast.Name)]
    return used.count(parameter) == read.count(parameter)


@functools.lru_cache(maxsize=64)
def _definition(code: CodeType) -> Definition | None:
    positions = [place for place in _places(code) if place[0] >= code.co_firstlineno]
    if not positions:
        return None
    last = max(end for _, end, _, _ in positions)
    lines = [linecache.getline(code.co_filename, n) for n in range(code.co_firstlineno, last + _PARENTHESES + 1)]
    needed = last - code.co_firstlineno + 1
    if not all(lines[:needed]):
        return None
    if code.co_name == "<lambda>":
        return _lambda(code, lines, [place for place in _own_places(code) if place[0] >= code.co_firstlineno])
    for n in range(_PARENTHESES + 1):
        tree = _parsed(textwrap.dedent("".join(lines[: needed + n])))
        found = tree.body[0] if isinstance(tree, ast.Module) and tree.body else None
        if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) and found.name == code.co_name:
            ast.increment_lineno(found, code.co_firstlineno - 1)
            return found
    return None


def _own_places(code: CodeType) -> list[tuple[int, int, int, int]]:
    """Lines and columns (first, last, begin, end) of what the instructions of `code` were written as."""
    found = []
    for first, last, begin, end in code.co_positions():
        if first is not None and last is not None and begin is not None and end is not None and end > 0:
            found.append((first, last, begin, end))
    return found


def _places(code: CodeType) -> Iterator[tuple[int, int, int, int]]:
    """The same, with those of the functions within."""
    yield from _own_places(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _places(constant)


def _lambda(code: CodeType, lines: list[str], places: list[tuple[int, int, int, int]]) -> ast.Lambda | None:
    """The lambda expression whose body lies at `places`: from the word before it to the end of the body."""
    if not places:
        return None
    first, _, begin, _ = min(places, key=lambda place: (place[0], place[2]))
    last, end = max((place[1], place[3]) for place in places)
    rows = [line.encode() for line in lines[: last - code.co_firstlineno + 1]]
    rows[-1] = rows[-1][:end]
    before = b"".join(rows[: first - code.co_firstlineno]) + rows[first - code.co_firstlineno][:begin]
    start = before.rfind(b"lambda")
    if start < 0:
        return None
    line = code.co_firstlineno + before.count(b"\n", 0, start)
    text = b"".join(rows)[start:].decode(errors="replace")
    for n in range(_PARENTHESES + 1):
        tree = _parsed(f"({text}{')' * n}\n)", "eval")
        if isinstance(tree, ast.Expression) and isinstance(tree.body, ast.Lambda):
            ast.increment_lineno(tree, line - 1)
            return tree.body
    return None


def _parsed(text: str, mode: str = "exec") -> ast.AST | None:
    try:
        tree: ast.AST = ast.parse(text, mode=mode)
    except (SyntaxError, ValueError):
        return None
    return tree
