"""The statements of a cell, by lines: where each begins and ends, and what it stands within."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

_FLOW = (ast.If, ast.While, ast.For)
_HEADED = (*_FLOW, ast.With, ast.Try, ast.Match)
_PYTHON = (ast.Expr, ast.With, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.ClassDef)


class Statement(NamedTuple):
    """A simple statement, or the head of a compound one, on lines `first` to `last`.

    `carried`: it is a part of control flow that the graph runs, although no op of its own may tell, as `best = x`.
    """

    first: int
    last: int
    carried: bool


def statements(body: Iterable[ast.stmt], heads: Set[int], within: bool = False) -> Iterator[Statement]:
    """Every statement; a name or a literal by itself does nothing, and is left out.

    `heads` are the lines of ops that run other graphs; `within`: the statements stand under such a one.
    """
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Name | ast.Constant):
            continue
        first, last = _head(statement)
        yield Statement(first, last, within and not isinstance(statement, _PYTHON))
        staged = isinstance(statement, _FLOW) and not heads.isdisjoint(range(first, last + 1))
        inside = within and not isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for inner in _blocks(statement):
            yield from statements(inner, heads, inside or staged)


def enclosing(body: Iterable[ast.stmt]) -> dict[int, set[int]]:
    """For each line the lines of the heads that it stands under, within one function.

    Converted control flow calls its blocks, so a head is on the stack of all that its block does.
    """
    found: dict[int, set[int]] = {}
    waiting = list(body)
    while waiting:
        statement = waiting.pop()
        blocks = _blocks(statement)
        waiting += [one for block in blocks for one in block]
        if isinstance(statement, _HEADED):
            first, last = _head(statement)
            heads = set(range(first, last + 1))
            for one in (one for block in blocks for one in block):
                for line in range(_head(one)[0], (one.end_lineno or one.lineno) + 1):
                    found.setdefault(line, set()).update(heads)
    return found


def _head(statement: ast.stmt) -> tuple[int, int]:
    """The first and the last line of a statement without its blocks."""
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
    last = statement.end_lineno or statement.lineno
    return first, max(min([last, *(inner[0].lineno - 1 for inner in _blocks(statement))]), first)


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    found = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    found += [part.body for name in ("handlers", "cases") for part in getattr(statement, name, [])]
    return [block for block in found if block]
