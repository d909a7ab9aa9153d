"""Repairs for a line of code that cuts a gradient, as code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from limelight import ops
from limelight.user_code.source_line import Source

_STEPS: Final = ("floor", "ceil", "round", "trunc")


def name_of(x: Any, scopes: Sequence[Mapping[str, Any]], otherwise: str) -> str:
    """What the first of `scopes` that knows `x` calls it."""
    for scope in scopes:
        for name, value in scope.items():
            if value is x and not name.startswith("_"):
                return name
    return otherwise


def advice(op: str) -> str:
    """What to do where an op gives integers, as the end of a sentence."""
    found = {
        "astype": "differentiate what comes before the cast, and cast only what is shown",
        "argmax": "use ll.max for the value, or weights that are smooth, ll.nn.softmax",
        "argmin": "use ll.min for the value, or weights that are smooth, ll.nn.softmax",
    }.get(op)
    if op in ("greater", "greater_equal", "less", "less_equal"):
        found = "a smooth comparison is ll.sigmoid(x - y); ll.where(condition, a, b) has gradients for a and b"
    return f"; {found}" if found else ""


def of_cut(cause: str, line: Source | None, op: str = "") -> str:
    """What to write instead of `line`, for a cause that a line can mend; empty where it cannot."""
    change = {"stop_gradient": _without_stop, "left through NumPy": _without_numpy, "assign": _before_assign}.get(cause)
    if op in _STEPS:
        change = _straight_through
    if line is None or change is None:
        return ""
    try:
        tree = ast.parse(line.text)
    except SyntaxError:  # a line of a longer statement
        return ""
    return change(tree)


def assigned(line: str) -> frozenset[str]:
    """The names that a line assigns; none of one that is no statement by itself."""
    try:
        tree = ast.parse(line.strip())
    except SyntaxError:
        return frozenset()
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and type(node.ctx) is ast.Store)


def _rewritten(tree: ast.Module, change: Callable[[ast.Call], ast.expr | None]) -> str:
    """The code with calls replaced by what `change` makes of them; empty where it changes none."""
    found = False

    class Calls(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.expr:
            nonlocal found
            self.generic_visit(node)
            new = change(node)
            found = found or new is not None
            return node if new is None else new

    changed = Calls().visit(tree)
    return ast.unparse(changed) if found else ""


def _without_stop(tree: ast.Module) -> str:
    """`ll.stop_gradient(x)` as `x`."""
    return _rewritten(tree, lambda call: call.args[0] if _called(call) == "stop_gradient" and call.args else None)


def _straight_through(tree: ast.Module) -> str:
    """`ll.floor(x)` as `x + ll.stop_gradient(ll.floor(x) - x)`, whose gradient is that of x (Bengio et al. 2013)."""

    def change(call: ast.Call) -> ast.expr | None:
        if _called(call) not in _STEPS or len(call.args) != 1:
            return None
        x = call.args[0]
        stopped = ast.Call(
            ast.Attribute(ast.Name("ll", ast.Load()), "stop_gradient", ast.Load()), [ast.BinOp(call, ast.Sub(), x)], []
        )
        return ast.BinOp(x, ast.Add(), stopped)

    return _rewritten(tree, change)


def _without_numpy(tree: ast.Module) -> str:
    """`np.sin(x.numpy())` as `ll.sin(x)`, for functions that limelight has; `x.numpy()` and `float(x)` as `x`."""

    def change(call: ast.Call) -> ast.expr | None:
        if isinstance(call.func, ast.Name) and call.func.id == "float" and len(call.args) == 1:
            return call.args[0]
        if _called(call) in ("numpy", "item", "tolist") and isinstance(call.func, ast.Attribute) and not call.args:
            return call.func.value
        if _module(call) in ("np", "numpy"):
            name = {"array": "constant", "asarray": "constant"}.get(_called(call), _called(call))
            if hasattr(ops, name) or name == "constant":
                call.func = ast.Attribute(ast.Name("ll", ast.Load()), name, ast.Load())
        return None

    return _rewritten(tree, change)


def _before_assign(tree: ast.Module) -> str:
    """`v.assign(f(x))` as `value = f(x)` and `v.assign(value)`: the value keeps the connection."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node).startswith("assign") and node.args:
            value = node.args[0]
            if isinstance(value, ast.Name):
                return f"use `{value.id}` itself in place of the variable"
            node.args[0] = ast.Name("value", ast.Load())
            return f"value = {ast.unparse(value)}; {ast.unparse(tree)}"
    return ""


def _called(call: ast.Call) -> str:
    """The last name of what is called."""
    found = call.func
    return found.attr if isinstance(found, ast.Attribute) else found.id if isinstance(found, ast.Name) else ""


def _module(call: ast.Call) -> str:
    """The name before the dot."""
    found = call.func
    return found.value.id if isinstance(found, ast.Attribute) and isinstance(found.value, ast.Name) else ""
