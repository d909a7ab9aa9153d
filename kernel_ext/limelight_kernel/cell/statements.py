"""The statements of a cell, by lines: where each begins and ends, and what it stands within."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from limelight.user_code.source_line import Source, at

_FLOW = (ast.If, ast.While, ast.For)
_HEADED = (*_FLOW, ast.With, ast.Try, ast.Match)
_PYTHON = (ast.Expr, ast.With, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.ClassDef)


class Statement(NamedTuple):
    """The `lines` of a simple statement, or those of a compound one that are not in its blocks (`else:` is one).

    `carried`: it is a part of control flow that the graph runs, although no op of its own may tell, as `best = x`.
    `shows`: it is a name or a literal at the end of the cell, or a tuple of such, whose value is the cell's.
    """

    lines: tuple[int, ...]
    carried: bool
    shows: bool


def statements(
    body: Sequence[ast.stmt], heads: Set[int], within: bool = False, whole: bool = True
) -> Iterator[Statement]:
    """Every statement of a block and of the blocks inside it.

    Args:
        body: the block.
        heads: the lines of ops that run other graphs.
        within: whether the block stands under such a line.
        whole: whether it is the body of the cell.
    """
    for statement in body:
        lines = _own(statement)
        is_plain = isinstance(statement, ast.Expr) and _is_plain(statement.value)
        shows = whole and is_plain and statement is body[-1]
        yield Statement(lines, within and not isinstance(statement, _PYTHON), shows)
        staged = isinstance(statement, _FLOW) and not heads.isdisjoint(lines)
        inside = within and not isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for inner in _blocks(statement):
            yield from statements(inner, heads, inside or staged, False)


def _is_plain(value: ast.expr) -> bool:
    """Whether an expression names values without computing any."""
    if isinstance(value, ast.Tuple | ast.List):
        return all(map(_is_plain, value.elts))
    if isinstance(value, ast.Dict):
        return all(key is not None and _is_plain(key) for key in value.keys) and all(map(_is_plain, value.values))
    return isinstance(value, ast.Name | ast.Constant)


def enclosing_statements(body: Sequence[ast.stmt]) -> dict[int, set[int]]:
    """For each line the lines of the heads that it stands under, within one function.

    Converted control flow calls its blocks, so a head is on the stack of all that its block does.
    """
    heads_of: dict[int, set[int]] = {}
    waiting = list(body)
    while waiting:
        statement = waiting.pop()
        inner = [one for block in _blocks(statement) for one in block]
        waiting += inner
        if isinstance(statement, _HEADED):
            heads = set(_own(statement))
            for line in (line for one in inner for line in _all(one)):
                heads_of.setdefault(line, set()).update(heads)
    return heads_of


def _all(statement: ast.stmt) -> range:
    """The lines of a statement with its decorators."""
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
    return range(first, (statement.end_lineno or statement.lineno) + 1)


def _own(statement: ast.stmt) -> tuple[int, ...]:
    """The lines of a statement that are not in its blocks; all where a block stands on the line of the head."""
    inside = {line for block in _blocks(statement) for one in block for line in _all(one)}
    return tuple(line for line in _all(statement) if line not in inside) or (statement.lineno,)


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [part.body for name in ("handlers", "cases") for part in getattr(statement, name, [])]
    return [block for block in blocks if block]


def where_bound(tree: ast.Module, filename: str, path: str) -> str:
    """The first line of a cell that mentions the name with which a path starts, as a suffix for a message."""
    name = re.match(r"\w*", path)
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if name is not None and name[0] in (getattr(node, "id", None), getattr(node, "name", None))
        if isinstance(node, ast.expr | ast.stmt)
    ]
    return at(Source(filename, min(lines), "")) if lines else ""


def line_of_binding(tree: ast.Module, name: str) -> int:
    r"""The first line of a cell that binds or deletes a name, other than by `with ... as`; 0 for none.

    >>> line_of_binding(ast.parse("x = 1\nfor y in x: pass"), "y")
    2
    """
    entered = {id(x.optional_vars) for x in ast.walk(tree) if isinstance(x, ast.withitem)}
    names = [x for x in ast.walk(tree) if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load)]
    return min([x.lineno for x in names if x.id == name and id(x) not in entered], default=0)


def line_of_mention(tree: ast.Module, name: str) -> int:
    r"""The first line of a cell that mentions a name; 0 for none.

    >>> line_of_mention(ast.parse("x = 1\ny = f(x)"), "f")
    2
    """
    return min([x.lineno for x in ast.walk(tree) if isinstance(x, ast.Name) and x.id == name], default=0)


def line_of_step(tree: ast.Module, path: str) -> int:
    r"""The first line of a cell that makes something of what it was, by `+=` or otherwise; 0 for none.

    >>> line_of_step(ast.parse("cfg.n = 3\ncfg.n += 1"), "cfg.n")
    2
    """
    steps = [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.AugAssign) and ast.unparse(node.target) == path)
        or (
            isinstance(node, ast.Assign)
            and path in map(ast.unparse, node.targets)
            and path in map(ast.unparse, ast.walk(node.value))
        )
    ]
    return min(steps, default=0)
