"""Repairs for a line of code that cuts a gradient, as code."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from limelight import ops
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.explain.fix import called, replaced, rewritten, stored_names
from limelight.user_code.definitions import parsed
from limelight.user_code.source_line import Source

_DEPTH: Final = 3
_MOST_HOLDERS: Final = 1000
"""Of how many objects is looked whether they hold what is to be named."""
_OPAQUE: Final = (type, ModuleType, FunctionType, MethodType, Tensor, Resource, str, bytes, np.ndarray, int, float)
_STEPS: Final = ("floor", "ceil", "round", "trunc")


def name_of(x: Any, scopes: Sequence[Mapping[str, Any]], otherwise: str) -> str:
    """What the first of `scopes` that knows `x` calls it, by a name of its own or by that of what holds it."""
    visible = [{name: value for name, value in scope.items() if name[:1].isalpha()} for scope in scopes]
    named = (name for scope in visible for name, value in scope.items() if value is x)
    held = (path for scope in visible for path, value in _within(scope) if value is x)
    return next(named, None) or next(held, otherwise)


def _within(scope: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What objects and containers hold, the shallow first; each once, and nothing of modules, classes, functions."""
    waiting, seen = deque(scope.items()), set[int]()
    while waiting and len(seen) < _MOST_HOLDERS:
        path, holder = waiting.popleft()
        if isinstance(holder, _OPAQUE) or id(holder) in seen:
            continue
        seen.add(id(holder))
        for one, value in _parts(path, holder):
            yield one, value
            if path.count(".") + path.count("[") < _DEPTH:
                waiting.append((one, value))


def _parts(path: str, holder: Any) -> list[tuple[str, Any]]:
    if isinstance(holder, list | tuple):
        return [(f"{path}[{i}]", value) for i, value in enumerate(holder[:_MOST_HOLDERS])]
    if isinstance(holder, dict):
        return [(f"{path}[{key!r}]", value) for key, value in list(holder.items()) if type(key) in (str, int)]
    attributes = getattr(holder, "__dict__", None)
    attributes = attributes if type(attributes) is dict else {}
    return [(f"{path}.{name}", value) for name, value in list(attributes.items()) if not name.startswith("_")]


def advice(op: str) -> str:
    """What to do where an op gives integers, as the end of a sentence."""
    said = {
        "astype": "differentiate what comes before the cast, and cast only what is shown",
        "argmax": "use ll.max for the value, or weights that are smooth, ll.nn.softmax",
        "argmin": "use ll.min for the value, or weights that are smooth, ll.nn.softmax",
    }.get(op)
    if op in ("greater", "greater_equal", "less", "less_equal"):
        said = "a smooth comparison is ll.sigmoid(x - y); ll.where(condition, a, b) has gradients for a and b"
    return f"; {said}" if said else ""


def of_cut(cause: str, line: Source | None, op: str = "") -> str:
    """What to write instead of `line`, for a cause that a line can mend; empty where it cannot."""
    change = {"stop_gradient": _without_stop, "left through NumPy": _without_numpy, "assign": _before_assign}.get(cause)
    if op in _STEPS:
        change = _straight_through
    tree = None if line is None or change is None else parsed(line.text)
    return "" if tree is None or change is None else change(tree)  # None for a line of a longer statement


def assigned(line: str) -> frozenset[str]:
    """The names that a line assigns; none of one that is no statement by itself."""
    tree = parsed(line.strip())
    return frozenset() if tree is None else stored_names(tree)


def _without_stop(tree: ast.Module) -> str:
    """`ll.stop_gradient(x)` as `x`."""

    def change(node: ast.expr) -> ast.expr | None:
        return node.args[0] if isinstance(node, ast.Call) and called(node) == "stop_gradient" and node.args else None

    return rewritten(tree, change)


def _straight_through(tree: ast.Module) -> str:
    """`ll.floor(x)` as `x + ll.stop_gradient(ll.floor(x) - x)`, whose gradient is that of x (Bengio et al. 2013)."""

    def change(node: ast.expr) -> ast.expr | None:
        if not isinstance(node, ast.Call) or called(node) not in _STEPS or len(node.args) != 1:
            return None
        x = node.args[0]
        return ast.BinOp(x, ast.Add(), ast.Call(_of_limelight("stop_gradient"), [ast.BinOp(node, ast.Sub(), x)], []))

    return rewritten(tree, change)


def _without_numpy(tree: ast.Module) -> str:
    """`np.sin(x.numpy())` as `ll.sin(x)`, for functions that limelight has; `x.numpy()` and `float(x)` as `x`.

    Empty for a line on which nothing but the module's name would change: no value leaves there.
    """

    def change(node: ast.expr) -> ast.expr | None:
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Name) and node.func.id == "float" and len(node.args) == 1:
            return node.args[0]
        if called(node) in ("numpy", "item", "tolist") and isinstance(node.func, ast.Attribute) and not node.args:
            return node.func.value
        if _module(node) in ("np", "numpy"):
            name = {"array": "constant", "asarray": "constant"}.get(called(node), called(node))
            if hasattr(ops, name) or name == "constant":
                node.func = _of_limelight(name)
        return None

    return rewritten(tree, change)


def _before_assign(tree: ast.Module) -> str:
    """`v.assign(f(x))` as `value = f(x)` and `v.assign(value)`: the value keeps the connection."""
    call = next((node for node in ast.walk(tree) if _is_assign(node)), None)
    if not isinstance(call, ast.Call):
        return ""
    value = call.args[0]
    if isinstance(value, ast.Name):
        return f"use `{value.id}` itself in place of the variable"
    return f"value = {ast.unparse(value)}; {replaced(tree, value, ast.Name('value'))}"


def _is_assign(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node).startswith("assign") and bool(node.args)


def _of_limelight(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name("ll", ast.Load()), name, ast.Load())


def _module(call: ast.Call) -> str:
    """The name before the dot."""
    function = call.func
    return function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
