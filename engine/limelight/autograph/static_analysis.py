"""What a syntax tree tells: whether a body always returns, and what the functions within a function do with its names.

Names that inner functions rebind or read belong to the state of a block as they do in Python: `nonlocal` ones wherever
the block calls something, those read by a function that is older than the block always. What only functions of the
block itself read is shared with them and carried nowhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_INNER = (ast.FunctionDef, ast.Lambda, ast.ClassDef)  # bodies of classes read names as functions do
_BLOCKS = (ast.If, ast.While, ast.For)


class Inner(NamedTuple):
    """What the functions within a function do with names: those that each reads, and those that any rebinds."""

    reads: dict[ast.AST, set[str]]
    rebound: set[str]
    within: dict[ast.AST, set[ast.AST]]

    def read_in(self, block: ast.AST) -> set[str]:
        """The names that functions read which `block` defines."""
        return set().union(*[self.reads[x] for x in self.within.get(block, ())])

    def read_beside(self, block: ast.AST) -> set[str]:
        """The names that functions read which are defined before or after `block`."""
        return set().union(*[read for x, read in self.reads.items() if x not in self.within.get(block, ())])


def inner_functions(function: ast.AST) -> Inner:
    """Of the functions defined within `function`; by its blocks, as they are now."""
    inner: list[Any] = [part for part in ast.walk(function) if isinstance(part, _INNER) and part is not function]
    rebound = {name for part in inner for x in ast.walk(part) if isinstance(x, ast.Nonlocal) for name in x.names}
    blocks = [part for part in ast.walk(function) if isinstance(part, _BLOCKS)] if inner else []
    return Inner({x: _read(x) for x in inner}, rebound, {x: set(ast.walk(x)).intersection(inner) for x in blocks})


def _read(function: ast.FunctionDef | ast.Lambda | ast.ClassDef) -> set[str]:
    names = {x.id for x in ast.walk(function) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load)}
    if isinstance(function, ast.ClassDef):
        return names
    return names - {x.arg for x in ast.walk(function.args) if isinstance(x, ast.arg)}


def always_returns(body: Sequence[ast.stmt]) -> bool:
    """Whether running `body` never comes to its end: it returns, raises, or goes round for ever."""
    return any(map(_ends, body))


def _ends(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Return | ast.Raise):
        return True
    if isinstance(statement, ast.If):
        return always_returns(statement.body) and always_returns(statement.orelse)
    if isinstance(statement, ast.While):
        endless = isinstance(statement.test, ast.Constant) and bool(statement.test.value)
        return endless and not any(isinstance(x, ast.Break) for x in _of_loop(statement.body))
    if isinstance(statement, ast.Try):
        ways = [[*statement.body, *statement.orelse], *[handler.body for handler in statement.handlers]]
        return always_returns(statement.finalbody) or all(map(always_returns, ways))
    return False


def _of_loop(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The statements of a loop's body, without those of loops within it."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.For | ast.While):
            yield from _of_loop(statement.orelse)
        elif not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            blocks = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
            blocks += [handler.body for handler in getattr(statement, "handlers", [])]
            for block in blocks:
                yield from _of_loop(block)
