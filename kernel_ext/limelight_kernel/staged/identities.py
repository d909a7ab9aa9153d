"""Which tensors, variables and arrays of a cell's inputs are one and the same, for cells that ask: `xs[0] is a`.

To a trace each input is a symbolic tensor of its own. Where the code compares identities, one that can be reached in
several ways is one symbolic tensor (`BorrowedState`), and the trace holds for inputs that are the same in this, too: a
sentence of it is part of the key. Other cells pay nothing for it.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight_kernel.inputs.contents import ATOMS, MOST, children

_TENSORS: Final = (Tensor, Resource, np.ndarray)
_HAVE_IDS: Final = (*_TENSORS, list, tuple, dict)
_ASKS: Final = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


class Question(NamedTuple):
    """A comparison by identity: the names on its sides, empty for what is no name, or makes no difference."""

    left: str
    right: str


def questions(tree: ast.Module) -> tuple[Question, ...]:
    """The comparisons in a cell by which identities may show.

    >>> questions(ast.parse("same = xs[0] is a; x is None; 'k' in d; f(x) is y"))
    (Question(left='', right='a'), Question(left='', right='y'))
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, how, right in zip(sides, node.ops, sides[1:], strict=False):
                if isinstance(how, _ASKS) and not isinstance(left, ast.Constant) and not _is_constant(how, right):
                    found.append(Question(_name(left), _name(right) if isinstance(how, ast.Is | ast.IsNot) else ""))
        elif isinstance(node, ast.Call) and (_is_id(node.func) or _is_watch(node.func)):
            found.append(Question("", ""))
    return tuple(found)


def _is_id(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id == "id"


def _is_watch(function: ast.expr) -> bool:
    """Whether a tape watches a tensor: then it has a gradient by whichever way the code reaches it."""
    return isinstance(function, ast.Attribute) and function.attr == "watch"


def _is_constant(how: ast.cmpop, right: ast.expr) -> bool:
    return isinstance(how, ast.Is | ast.IsNot) and isinstance(right, ast.Constant)


def _name(x: ast.expr) -> str:
    return x.id if isinstance(x, ast.Name) else ""


def identities(asked: Iterable[Question], values: Mapping[str, Any], written: Collection[str]) -> str | None:
    """Says which tensors, variables and arrays can be reached in several ways: "a is xs[0]"; None if none is compared.

    Args:
        asked: what the cell compares.
        values: its inputs.
        written: the names that it assigns: these may mean something else by then.
    """

    def may_be_tensor(name: str) -> bool:
        return name not in values or name in written or isinstance(values[name], _TENSORS)

    if not any(may_be_tensor(one.left) and may_be_tensor(one.right) for one in asked):
        return None
    return _said(values)


def ids(values: Mapping[str, Any]) -> str:
    """Stands for which tensors, variables, arrays and containers inputs lead to, for cells that ask `id(x)`."""
    met: dict[int, Any] = {}
    waiting = deque(x for x in values.values() if type(x) not in ATOMS)
    while waiting and len(met) < MOST:
        x = waiting.popleft()
        if id(x) not in met:
            met[id(x)] = x
            waiting += [child for _, child in children(x)]
    return f"ids {hash(tuple([key for key, x in met.items() if isinstance(x, _HAVE_IDS)])):#x}"


def _said(values: Mapping[str, Any]) -> str:
    met: dict[int, tuple[Any, str]] = {}
    said = []
    waiting = deque((name, x) for name, x in values.items() if type(x) not in ATOMS and name[:1] != "_")
    while waiting and len(met) < MOST:
        path, x = waiting.popleft()
        known = met.get(id(x))
        if known is None:
            met[id(x)] = x, path
            waiting += [(step.after(path), child) for step, child in children(x)]
        elif isinstance(x, _TENSORS):
            said.append(f"{known[1]} is {path}")
    return ", ".join(said)
