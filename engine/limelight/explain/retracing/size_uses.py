"""What code does with each size that it reads: a shape for `ll.reshape` takes None for one, Python wants a number."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import NamedTuple

from limelight.explain.retracing.size_reads import READS, told
from limelight.user_code.code_uses import reads_sizes
from limelight.user_code.definitions import definition_of
from limelight.user_code.names_read import Scope, is_users
from limelight.user_code.source_line import Source, is_library

Axes = int | slice | None
"""Which sizes of a tensor are read; None for all."""


class SizeUse(NamedTuple):
    """A read of sizes: as it is written, where, of which axes; `is_shape`: for shapes of `ll.reshape` alone."""

    text: str
    where: Source
    axes: Axes
    is_shape: bool = False

    def __str__(self) -> str:
        what = f"`{self.text}`" if self.text else "a size that is read"
        inside = "" if self.where.is_outermost else f" in `{self.where.function}`"
        return f"{what}{inside} ({self.where})"

    @property
    def instead(self) -> str:
        """What serves for a size that is unknown, where there is such an expression."""
        tensor, _, axis = self.text.rpartition(".shape")
        return f"ll.shape_of({tensor}){axis}" if tensor and type(self.axes) is int else ""


def size_uses(scope: Scope) -> list[SizeUse]:
    """Those of the user's code."""
    code = scope.code
    if is_library(code) or not is_users(code.co_filename) or not reads_sizes(code):
        return []
    tree = definition_of(code) if scope.body is None else ast.Module(list(scope.body), [])
    if tree is None:
        return [SizeUse("", Source(code.co_filename, code.co_firstlineno, code.co_name), None)]
    return list(_Uses(tree, scope).found())


class _Uses:
    """One definition, read."""

    def __init__(self, tree: ast.AST, scope: Scope) -> None:
        self._nodes = list(told(tree))
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._code, self._globals = scope.code, scope.globals
        self._are_kept = scope.body is not None  # the names of a cell, which the notebook has afterwards

    def found(self) -> Iterator[SizeUse]:
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and node.attr in READS:
                yield from self._of(node)

    def _of(self, read: ast.Attribute) -> Iterator[SizeUse]:
        parent = self._parents.get(read)
        if read.attr == "shape" and isinstance(parent, ast.Subscript) and parent.value is read:
            axes = _axes(parent.slice)
            is_shape = type(axes) is int and self._is_shape(parent, read.value)
            yield self._use(parent, axes, is_shape)
        elif read.attr == "shape" and isinstance(parent, ast.Assign) and (names := _names(parent)):
            for axis, name in enumerate(names):
                yield self._use(read, axis, self._is_only_shape(name, read.value), f"[{axis}]")
        else:
            yield self._use(read, None, False)

    def _use(self, node: ast.expr, axes: Axes, is_shape: bool, more: str = "") -> SizeUse:
        where = Source(self._code.co_filename, node.lineno, self._code.co_name)
        return SizeUse(ast.unparse(node) + more, where, axes, is_shape)

    def _is_shape(self, size: ast.expr, tensor: ast.expr) -> bool:
        """Whether an expression for a size of `tensor` goes into shapes alone, by a name or at once."""
        parent = self._parents[size]
        if isinstance(parent, ast.Assign) and parent.value is size:
            target = parent.targets[0]
            return len(parent.targets) == 1 and isinstance(target, ast.Name) and self._is_only_shape(target.id, tensor)
        return self._is_in_shape(size, tensor)

    def _is_only_shape(self, name: str, tensor: ast.expr) -> bool:
        """Whether a name is set once, and each use of it is in a shape."""
        named = [node for node in self._parents if isinstance(node, ast.Name) and node.id == name]
        uses = [node for node in named if isinstance(node.ctx, ast.Load)]
        others = [node for node in self._parents if _binds(node, name)]
        if len(named) - len(uses) != 1 or others or self._are_kept:
            return False
        heard = {id(node) for node in self._nodes}  # but for what is printed
        return all(self._is_in_shape(use, tensor) for use in uses if id(use) in heard)

    def _is_in_shape(self, size: ast.expr, tensor: ast.expr) -> bool:
        shape = self._parents[size]
        call = self._parents[shape] if isinstance(shape, ast.Tuple | ast.List) else shape
        call = self._parents[call] if isinstance(call, ast.keyword) else call
        if not isinstance(call, ast.Call):
            return False
        if self._is_reshape(call.func):
            given = [*call.args[1:2], *[one.value for one in call.keywords if one.arg == "shape"]]
            return any(shape is one for one in given)
        method = call.func if isinstance(call.func, ast.Attribute) and call.func.attr == "reshape" else None
        return method is not None and ast.unparse(method.value) == ast.unparse(tensor)

    def _is_reshape(self, called: ast.expr) -> bool:
        home = sys.modules["limelight"]
        if isinstance(called, ast.Name):
            return self._globals.get(called.id) is home.reshape
        base = called.value if isinstance(called, ast.Attribute) and called.attr == "reshape" else None
        return isinstance(base, ast.Name) and self._globals.get(base.id) is home


def _binds(node: ast.AST, name: str) -> bool:
    """Whether it is a parameter, or a statement that says whose a name is."""
    return getattr(node, "arg", None) == name or name in (getattr(node, "names", None) or ())


def _names(assignment: ast.Assign) -> list[str]:
    """Those of `b, n = x.shape`; none where it is written in another way."""
    target = assignment.targets[0]
    if len(assignment.targets) != 1 or not isinstance(target, ast.Tuple):
        return []
    names = [one.id for one in target.elts if isinstance(one, ast.Name)]
    return names if len(names) == len(target.elts) else []


def _axes(written: ast.expr) -> Axes:
    """A number or a slice of numbers; None for what only running it would tell."""
    try:
        if isinstance(written, ast.Slice):
            ends = [one and ast.literal_eval(one) for one in (written.lower, written.upper, written.step)]
            return slice(*ends) if all(one is None or type(one) is int for one in ends) else None
        number = ast.literal_eval(written)
    except ValueError:
        return None
    return number if type(number) is int else None
