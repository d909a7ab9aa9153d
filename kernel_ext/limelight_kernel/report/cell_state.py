"""What each line of a staged cell changes in place at each run, and what of objects it reads and compares then."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from limelight_kernel.staged.staged_cell import StagedCell

WRITTEN, COMPARED = "\N{LEFTWARDS ARROW WITH HOOK}", "\N{ALMOST EQUAL TO}"


@dataclass(frozen=True, slots=True)
class StateRemark:
    """A remark on the `line` of a cell, 0 for what no line of it names."""

    line: int
    sentence: str
    is_written: bool = False

    def __str__(self) -> str:
        return self.sentence


def state_remarks(staged: StagedCell, entry: Any) -> tuple[StateRemark, ...]:
    """The remarks of one trace: what it writes back, then what calls compare with it."""
    tree = staged.cell.tree
    written = _by_line(
        staged.written_back(entry), lambda path: _lines(tree, path, _changes) or _lines(tree, path, ast.walk)
    )
    compared = _by_line(staged.compared, lambda path: _lines(tree, path, ast.walk))
    return (
        *[StateRemark(line, f"{WRITTEN} written back at each run: {_listed(them)}", True) for line, them in written],
        *[StateRemark(line, f"{COMPARED} compared at each run: {_listed(them)}") for line, them in compared],
    )


def _listed(paths: Iterable[str]) -> str:
    return ", ".join([f"`{path}`" for path in paths])


def _by_line(paths: Iterable[str], lines: Callable[[str], list[int]]) -> list[tuple[int, list[str]]]:
    found: dict[int, list[str]] = {}
    for path in paths:
        for line in lines(path)[:1]:
            found.setdefault(line, []).append(path)
    return sorted(found.items())


def _lines(tree: ast.Module, path: str, nodes: Callable[[ast.AST], Iterable[ast.AST]]) -> list[int]:
    """The lines that mention the path, or at least what it starts with; the former first."""
    exact, near = [], []
    for node in nodes(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            text = ast.unparse(node)
            if text == path:
                exact.append(node.lineno)
            elif isinstance(node, ast.Name) and _root(path) == text:
                near.append(node.lineno)
    return [*sorted(exact), *sorted(near)]


def _root(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _changes(tree: ast.AST) -> Iterator[ast.AST]:
    """What the statements of a cell change in place: targets, and what methods are called on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            yield from ast.walk(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from ast.walk(node.func.value)
        elif isinstance(node, ast.AugAssign):
            yield from ast.walk(node.target)
