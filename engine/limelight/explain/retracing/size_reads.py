"""A function that reads sizes, written so that they may be unknown while it is traced.

`x.shape[0]` is None then, and `ll.shape_of(x)[0]` a tensor. That serves in a shape that an op of limelight is given,
and in `range`, which `autograph` makes a loop of the graph. What is read in another way may decide something in Python.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

from limelight.user_code.code_uses import reads_sizes
from limelight.user_code.definitions import definition_of

Sizes = Sequence[int | None]
READS: Final = frozenset(["shape", "size", "nbytes"])


class Rewriting(NamedTuple):
    """What to write for what, whether a loop becomes one of the graph, and the whole definition, undecorated."""

    words: tuple[tuple[str, str], ...] = ()
    loops: bool = False
    definition: str = ""

    @property
    def place(self) -> str:
        """The place of a decorator that needs it; empty where nothing has to be written anew."""
        if not self.words:
            return ""
        said = " and ".join(f"`{new}` for `{old}`" for old, new in self.words)
        loop = ", which makes one loop of what Python unrolls for each length" if self.loops else ""
        return f"write {said}{loop}, and above it"


def rewriting(function: Any, sizes: Mapping[str, Sizes]) -> Rewriting | None:
    """The rewriting for parameters that have those sizes, None where it is open; None where there is none."""
    code = getattr(function, "__code__", None)
    if code is None or not reads_sizes(code):
        return Rewriting()
    tree = definition_of(code) if isinstance(function, FunctionType) else None
    library = _library(function)
    if not isinstance(tree, ast.FunctionDef) or not library:
        return None
    return _Reads(tree, sizes, library, function.__globals__).rewriting()


def told(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree but for what is printed, where None serves as well as a number."""
    waiting = [tree]
    while waiting:
        node = waiting.pop(0)
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"):
            yield node
            waiting += ast.iter_child_nodes(node)


def loops_over(function: Any, sizes: Mapping[str, Sizes]) -> bool:
    """Whether Python loops over a parameter whose first size is open: `for row in x`, `enumerate(x)`."""
    code = getattr(function, "__code__", None)
    tree = definition_of(code) if code is not None else None
    over = [node.iter for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension)] if tree else []
    over += [one for call in over if isinstance(call, ast.Call) for one in call.args]
    named = [sizes.get(one.id, ()) for one in over if isinstance(one, ast.Name)]
    return any(len(shape) > 0 and shape[0] is None for shape in named)


def _library(function: Any) -> str:
    """What the function's module calls limelight."""
    home = sys.modules["limelight"]
    return next((name for name, value in getattr(function, "__globals__", {}).items() if value is home), "")


class _Reads:
    def __init__(self, tree: ast.FunctionDef, sizes: Mapping[str, Sizes], library: str, scope: dict[str, Any]) -> None:
        self._tree = copy.deepcopy(tree)
        self._sizes, self._library, self._scope = sizes, library, scope
        self._parents = {child: node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)}

    def rewriting(self) -> Rewriting | None:
        words, loops = dict[str, str](), False
        for node in [one for one in told(self._tree) if isinstance(one, ast.Attribute) and one.attr in READS]:
            axis = self._axis(node)
            if axis is None:
                return None
            name, size = axis
            if self._sizes[name][size] is not None:
                continue
            read = self._parents[node]
            loop = self._is_loop(read)
            if not loop and not self._is_shape(read):
                return None
            old, loops = ast.unparse(read), loops or loop
            words[old] = f"{self._library}.shape_of({name})[{size}]"
            assert isinstance(read, ast.Subscript), "as its axis is known"
            read.value = ast.parse(f"{self._library}.shape_of({name})", mode="eval").body
        self._tree.decorator_list = []
        return Rewriting(tuple(words.items()), loops, ast.unparse(ast.fix_missing_locations(self._tree)))

    def _axis(self, node: ast.Attribute) -> tuple[str, int] | None:
        """The parameter and the axis of `x.shape[0]`."""
        read = self._parents[node]
        if not isinstance(read, ast.Subscript) or read.value is not node or not isinstance(node.value, ast.Name):
            return None
        name = node.value.id
        if node.attr != "shape" or name not in self._sizes:
            return None
        try:
            axis = ast.literal_eval(read.slice)
        except ValueError:
            return None
        rank = len(self._sizes[name])
        is_set = any(isinstance(one, ast.Name) and one.id == name and _is_stored(one) for one in ast.walk(self._tree))
        named = [one for one in ast.walk(self._tree) if isinstance(one, ast.arg) and one.arg == name]
        if type(axis) is not int or not -rank <= axis < rank or is_set or len(named) != 1:
            return None
        return name, axis % rank

    def _is_shape(self, read: ast.AST) -> bool:
        """Whether it is one of the sizes in a shape that an op of limelight is given: `ll.zeros((x.shape[0], 3))`."""
        shape = self._parents[read]
        call = self._parents[shape]
        if not isinstance(shape, ast.Tuple | ast.List) or not isinstance(call, ast.Call) or shape not in call.args:
            return False
        root = call.func
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(root, ast.Name) and root.id == self._library

    def _is_loop(self, read: ast.AST) -> bool:
        """Whether it is the length of a loop that only sets names: `for t in range(x.shape[1])`."""
        call = self._parents[read]
        loop = self._parents[call]
        is_range = isinstance(call, ast.Call) and ast.unparse(call.func) == "range" and call.args == [read]
        if not is_range or not isinstance(loop, ast.For) or loop.iter is not call or "range" in self._scope:
            return False
        return not loop.orelse and all(
            isinstance(one, ast.Assign) and all(isinstance(target, ast.Name) for target in one.targets)
            for one in loop.body
        )


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)
