"""Fixes: code for the user to paste, and the rewriting of statements that all who propose fixes share.

Each proposer knows one subject: `retracing.fixes` (the call, the decorator), `none_gradients.fixes` (the line that cuts
a gradient), `nonfinite.fixes` (the line whose op leaves its domain), `tracing.staged_calls` (the call that runs while
tracing alone), and the kernel extension (the line of a staged cell). What it proposes is printed only where it works:
where the source is not understood, there is advice in words, or nothing.
"""

from __future__ import annotations

import ast
import copy
import linecache
import textwrap
from collections.abc import Callable, Iterator
from typing import NamedTuple

from limelight.user_code.definitions import parsed
from limelight.user_code.source_line import Source


class Fix(NamedTuple):
    """`code` to write `place` ("" for the decorator, "call with", "once, before the loop"), which mends `paths`.

    `cell` is more code around it, if known, with which it can run alone: a decorator's function, a cell's body.
    `is_inside`: it is a part of other code: a line of a function, whose names it needs, or what a call is given.
    """

    code: str
    place: str
    paths: tuple[str, ...]
    cell: str = ""
    is_inside: bool = False

    @staticmethod
    def of_line(code: str, line: Source | None) -> tuple[Fix, ...]:
        """The fix that is `code` for the user's `line`; none where there is no code."""
        return (Fix(code, "", (), is_inside=line is not None and not line.is_outermost),) if code else ()

    @property
    def as_cell(self) -> str:
        """Code that a notebook's cell can have; empty where the code is part of something else.

        >>> Fix("y = x * 2", "", ()).as_cell, Fix("return x", "", ()).as_cell
        ('y = x * 2', '')
        """
        if self.is_inside:
            return self.cell
        try:
            compile(self.code, "<fix>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError):  # a decorator, a `return`, the first line of a cell
            return self.cell
        return self.cell or self.code

    def __str__(self) -> str:
        return f"{self.place} {self.code}" if self.place else self.code


# Syntax trees


def expression(text: str) -> ast.expr:
    """The tree of an expression, which may span lines."""
    return ast.parse(f"({text}\n)", mode="eval").body


def called(node: ast.AST | None) -> str:
    """The last name of what is called; empty for anything but a call."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def replaced(tree: ast.AST, old: ast.expr, new: ast.expr) -> str:
    """The code of `tree` with another expression in the place of `old`, which is one of its nodes."""
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(tree, {id(old): new})))


def rewritten(tree: ast.AST, change: Callable[[ast.expr], ast.expr | None]) -> str:
    """The code of `tree` with other expressions in the place of some; empty where none changes.

    Args:
        tree: is left as it is.
        change: is given each expression, the inner ones first, and returns another one for it, or None to keep it.
    """
    rewriter = _Rewriter(change)
    changed = rewriter.visit(copy.deepcopy(tree))
    return ast.unparse(ast.fix_missing_locations(changed)) if rewriter.has_changed else ""


class _Rewriter(ast.NodeTransformer):
    """Applies `change` to expressions, inner ones first."""

    def __init__(self, change: Callable[[ast.expr], ast.expr | None]) -> None:
        self.has_changed = False
        self._change = change

    def visit(self, node: ast.AST) -> ast.AST:
        node = self.generic_visit(node)
        new = self._change(node) if isinstance(node, ast.expr) else None
        self.has_changed = self.has_changed or new is not None
        return node if new is None else new


# Statements of the user's files


def statement_at(line: Source | None) -> ast.stmt | None:
    """The simple statement that a line is in."""
    if line is None:
        return None
    around = [one for one in statements(line.file) if _covers(one, line.line)]
    if not around:  # a line of a file that cannot be read as Python, such as a cell with a magic
        return next(_simple(parsed(line.text)), None)
    return min(around, key=lambda one: (one.end_lineno or one.lineno) - one.lineno)


def statements(file: str) -> Iterator[ast.stmt]:
    """The simple statements of a file, which are those that have no others in them."""
    return _simple(_module(file))


def names_around(line: Source) -> set[str]:
    """The names in the function that a line is in, or in the file outside of one."""
    tree = _module(line.file) or ast.Module([], [])
    around = next((one for one in tree.body if hasattr(one, "body") and _covers(one, line.line)), tree)
    names = {node.id for node in ast.walk(around) if isinstance(node, ast.Name)}
    return names | {node.arg for node in ast.walk(around) if isinstance(node, ast.arg)}


def stored_names(tree: ast.AST) -> frozenset[str]:
    """The names that code assigns."""
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def whole_lines(line: Source, statement: ast.stmt, code: str) -> str:
    """`code` for a statement, with what else its lines have: the head of an `if` or a `def`, other statements.

    Empty where the parts cannot be told.

    Args:
        line: a line of the statement.
        statement: as it was written.
        code: what is to stand in its place.
    """
    in_file = _covers(statement, line.line)
    lines = linecache.getlines(line.file)[statement.lineno - 1 : statement.end_lineno] if in_file else [line.text]
    if not lines or not code:
        return code
    head = lines[0].encode()[: statement.col_offset].decode().strip()
    rest = lines[-1].encode()[statement.end_col_offset :].decode().strip()
    body = f"{code}\n{rest[1:].strip()}" if rest.startswith(";") and rest[1:].strip() else code
    if not head:
        return body
    if head.endswith(":"):  # also an `else:`, which is no Python alone
        return f"{head}\n{textwrap.indent(body, '    ')}"
    tree = parsed(head.removesuffix(";"))
    if tree is None:
        return ""
    inner = hasattr(tree.body[-1], "body") if tree.body else False
    return f"{ast.unparse(tree)}\n{textwrap.indent(body, '    ' if inner else '')}"


def _module(file: str) -> ast.Module | None:
    return parsed("".join(linecache.getlines(file)))


def _covers(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _simple(tree: ast.Module | None) -> Iterator[ast.stmt]:
    nodes = ast.walk(tree or ast.Module([], []))
    return (node for node in nodes if isinstance(node, ast.stmt) and not hasattr(node, "body"))
