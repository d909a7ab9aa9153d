"""What to write for a size that is unknown while tracing, in the names and axes of the user's own line."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import CodeType, TracebackType
from typing import NamedTuple

from limelight.user_code.definitions import definition_of
from limelight.user_code.source_line import is_library, position


class Size(NamedTuple):
    """A size that is read: of which tensor, and along which axis."""

    tensor: str = "x"
    axis: int = 0

    def __str__(self) -> str:
        return f"ll.shape_of({self.tensor})[{self.axis}]"


def here() -> Size:
    """The size that the user's line uses which is being executed; of `x` where that cannot be told."""
    code, instruction = position(sys._getframe(1))
    lines = [] if code is None else [line for begin, end, line in code.co_lines() if begin <= instruction < end]
    return _on_line(code, lines[0] if lines else None)


def behind(trace: TracebackType | None) -> Size:
    """The same for the user's innermost line in a traceback."""
    size = Size()
    while trace is not None:
        if not is_library(trace.tb_frame.f_code):
            size = _on_line(trace.tb_frame.f_code, trace.tb_lineno)
        trace = trace.tb_next
    return size


def _on_line(code: CodeType | None, line: int | None) -> Size:
    """The one size that a line reads, or whose name it uses."""
    tree = None if code is None or line is None else definition_of(code)
    if tree is None:
        return Size()
    on_line = [node for node in ast.walk(tree) if getattr(node, "lineno", None) == line]
    found = {size for node in on_line if (size := _read(node)) is not None}
    if not found:
        named = dict(pair for node in ast.walk(tree) for pair in _named(node))
        found = {named[node.id] for node in on_line if isinstance(node, ast.Name) and node.id in named}
    if not found:
        shapes = [node.value for node in on_line if isinstance(node, ast.Attribute) and node.attr == "shape"]
        found = {Size(ast.unparse(tensor)) for tensor in shapes}
    return found.pop() if len(found) == 1 else Size()


def _read(node: ast.AST) -> Size | None:
    """`x.shape[1]`."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"):
        return None
    try:
        axis = ast.literal_eval(node.slice)
    except ValueError:
        return None
    return Size(ast.unparse(node.value.value), axis) if type(axis) is int else None


def _named(node: ast.AST) -> Iterator[tuple[str, Size]]:
    """The names of sizes: `n = x.shape[0]`, `n, m = x.shape`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name) and (size := _read(value)) is not None:
        yield target.id, size
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Attribute) and value.attr == "shape":
        tensor = ast.unparse(value.value)
        yield from [(one.id, Size(tensor, k)) for k, one in enumerate(target.elts) if isinstance(one, ast.Name)]
