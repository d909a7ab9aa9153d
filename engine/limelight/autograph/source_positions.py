"""Positions in the source: noted on every node of the user's before the passes, restored on every node after them.

The rewritten tree is compiled as it is, under the file's name and with these positions, and functions that were added
bear the name of the one around them: so nodes, tracebacks and debuggers need no source map.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from malt.pyct import anno

Position = tuple[int, int, int, int]
"""First line, last line, first column, last column; of statements that take several lines the first line alone."""
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def position(node: Any) -> Position:
    if node.end_lineno == node.lineno or isinstance(node, ast.BinOp | ast.Compare | ast.Call):
        return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
    return (node.lineno, node.lineno, 0, 0)


def note_positions(node: ast.AST) -> None:
    for part in ast.walk(node):
        if isinstance(part, ast.stmt | ast.expr | ast.excepthandler | ast.arg | ast.keyword):
            anno.setanno(part, anno.Basic.ORIGIN, position(part))


def place_guards(node: ast.AST, kinds: set[type]) -> None:
    """Statements that were put around others (`if not break_:`) stand where these begin, and know what they are for."""
    for part in ast.walk(node):
        if isinstance(part, ast.stmt) and not anno.hasanno(part, anno.Basic.ORIGIN):
            if isinstance(part, ast.If):
                part.limelight_guard = _guarded(part, kinds)  # type: ignore[attr-defined]  # nodes take attributes
            inside = _first_inside(part)
            if inside is not None:
                anno.setanno(part, anno.Basic.ORIGIN, inside)


def _guarded(guard: ast.If, kinds: set[type]) -> str:
    """Which statements of the user's an added `if` stands for; a `break` has become a flag and a `continue`."""
    if "do_return" in ast.unparse(guard.test):
        return "return"
    return " or ".join(
        f"`{word}`" for word, kind in (("break", ast.Break), ("continue", ast.Continue)) if kind in kinds
    )


def place(node: ast.AST, around: Position) -> None:
    """Gives every node below `node` the position that it was written at, and what is new that of its surroundings."""
    waiting = [(node, around)]
    while waiting:
        part, inherited = waiting.pop()
        here = inherited
        if "lineno" in part._attributes:
            here = anno.getanno(part, anno.Basic.ORIGIN, default=None) or _first_inside(part) or inherited
            if isinstance(part, ast.Attribute) and not anno.hasanno(part, anno.Basic.ORIGIN):
                here = (here[0], here[0], here[2], here[2])  # Python says that a method is called where its name ends
            untyped: Any = part
            untyped.lineno, untyped.end_lineno, untyped.col_offset, untyped.end_col_offset = here
        if isinstance(part, ast.Call):
            part.args = list(part.args)  # the library leaves tuples
        waiting += [(child, here) for child in ast.iter_child_nodes(part)]


def named_position(node: Any) -> tuple[str, Position]:
    return getattr(node, "name", ""), position(node)


def begin(node: ast.AST, first: int, written: set[tuple[str, Position]], whole: bool) -> None:
    """Lets functions that were added begin where the user's function around them does.

    `inspect`, and a notebook by it, shows a frame's lines from the `def` above the first line of its code on, and
    counts them from that first line.

    Args:
        node: the rewritten definition.
        first: the line on which the user's function begins; 1 for a cell.
        written: the functions of the user's.
        whole: whether `node` is a cell, which is a function that was added itself.
    """
    waiting = [(node, first)]
    while waiting:
        part, first = waiting.pop()
        if isinstance(part, FUNCTIONS):
            if named_position(part) in written and not (whole and part is node):
                first = part.lineno
            elif first < part.lineno:
                part.lineno, part.col_offset = first, 0
        waiting += [(child, first) for child in ast.iter_child_nodes(part)]


def _first_inside(node: ast.AST) -> Position | None:
    """For a statement that was added around others: where they begin."""
    if not isinstance(node, ast.stmt):
        return None
    parts = [x for x in ast.walk(node) if isinstance(x, ast.stmt | ast.expr)]  # `Load()` is one object for all trees
    origins = [anno.getanno(x, anno.Basic.ORIGIN, default=None) for x in parts]
    return min((x for x in origins if x is not None), default=None, key=lambda x: (x[0], x[2]))
