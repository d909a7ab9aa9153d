"""Containers that a cell only adds to: what they hold makes no difference to it, so it is no part of the key.

`history.append(loss)` at the end of a training step is the commonest of these: the list is longer at each run, and the
trace is the same.
"""

from __future__ import annotations

import ast
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Mapping
from typing import Any, Final

_WAYS: Final[dict[type, frozenset[str]]] = {
    list: frozenset(["append", "extend", "+="]),
    deque: frozenset(["append", "extend", "+="]),
    set: frozenset(["add", "update", "|="]),
    **dict.fromkeys((dict, OrderedDict, defaultdict), frozenset(["[]=", "update", "|="])),
}
_INSIDE: Final = "[]."
_STEPS: Final = {ast.Add: "+=", ast.BitOr: "|="}


class OnlyWritten:
    """Stands for a container that the cell only adds to: any other of its type will do.

    `nested`: the cell adds to the containers in it, which its keys lead to.
    """

    __limelight_leaf__ = True
    __slots__ = ("__weakref__", "_key", "nested")

    def __init__(self, value: Any, nested: bool) -> None:
        inside = [f"{key!r}: {type(x).__name__}" for key, x in value.items()] if nested else []
        self._key = (type(value).__name__, *inside)
        self.nested = nested

    def __limelight_key__(self) -> Any:
        return self._key


def only_written(value: Any, ways: Collection[str], shared: frozenset[int]) -> OnlyWritten | None:
    """What stands for `value`, to which the cell adds in these ways; None where what it holds matters.

    Args:
        value: what the name means.
        ways: how the cell uses it, as `written_only` has found.
        shared: the ids of containers to which more than one way leads.
    """
    known = _WAYS.get(type(value))
    nested = any(way.startswith(_INSIDE) for way in ways)
    if known is None or id(value) in shared or not all(way in known or way.startswith(_INSIDE) for way in ways):
        return None
    if nested and not (isinstance(value, dict) and all(_takes(x, ways) for x in value.values())):
        return None
    if nested and not shared.isdisjoint(map(id, value.values())):
        return None
    return OnlyWritten(value, nested)


def _takes(x: Any, ways: Collection[str]) -> bool:
    return type(x) in (list, deque, set) and all(
        way.removeprefix(_INSIDE) in _WAYS[type(x)] for way in ways if way.startswith(_INSIDE)
    )


def written_only(tree: ast.Module) -> Mapping[str, frozenset[str]]:
    """The names that every mention in a cell adds to, with the ways in which.

    >>> found = written_only(ast.parse("losses.append(y); log['a'].append(y); seen.append(len(seen)); best[k] = y"))
    >>> {name: sorted(ways) for name, ways in found.items()}
    {'losses': ['append'], 'log': ['[].append'], 'best': ['[]=']}
    """
    mentions = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    ways: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            for name, way in _of_statement(node):
                ways.setdefault(name, []).append(way)
    return {name: frozenset(found) for name, found in ways.items() if len(found) == mentions[name]}


def _of_statement(node: ast.stmt) -> list[tuple[str, str]]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return _of(node.value.func.value, node.value.func.attr)
    if isinstance(node, ast.AugAssign):
        return _of(node.target, _STEPS.get(type(node.op), "other"))
    if isinstance(node, ast.Assign):
        return [
            (x.value.id, "[]=") for x in node.targets if isinstance(x, ast.Subscript) and isinstance(x.value, ast.Name)
        ]
    return []


def _of(target: ast.expr, way: str) -> list[tuple[str, str]]:
    if isinstance(target, ast.Name):
        return [(target.id, way)]
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        return [(target.value.id, _INSIDE + way)]
    made = target.func if isinstance(target, ast.Call) else None
    if isinstance(made, ast.Attribute) and made.attr == "setdefault" and isinstance(made.value, ast.Name):
        return [(made.value.id, _INSIDE + way)]
    return []
