"""The graph of objects below one object: what has state, and the edges that lead to it (paper section 4.3).

Nodes are modules and other objects with attributes, containers, dataclasses, and leaves: variables, generators, NumPy
arrays, objects that give and take their state, and Python values of a `State`. Edges are names of attributes and
fields, keys and positions.
Everything else (settings, functions, constants) has no node. A node is an object once, however many edges lead to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from limelight.checkpoint.object_paths import SLOTS, Edge, below, join
from limelight.checkpoint.state_protocols import is_stateful
from limelight.core import dtypes
from limelight.core.records import fields_of, is_record
from limelight.core.spec import GENERATOR
from limelight.core.variable import Resource, Variable, itself
from limelight.module import Module

Kind: TypeAlias = str
OBJECT: Final = "object"
CONTAINERS: Final = ("list", "tuple", "dict")
BRANCHES: Final = (OBJECT, *CONTAINERS)
"""The kinds of what has edges in a file."""
RECORD: Final = "record"
"""A dataclass: an object in a file, and among live objects like a container, as nothing tells when a field is set."""
HOLDERS: Final = (*CONTAINERS, RECORD)
LEAVES: Final = ("variable", "generator", "array", "state", "value")
_DTYPES: Final = frozenset(dtypes.ALL)


class Attributes:
    """Base of objects all of whose public attributes are state: plain Python values, too."""


@dataclass(eq=False)
class Value:
    """A plain Python value: an attribute of `owner`, which is given another one when it is restored."""

    owner: Any
    name: str
    value: Any


@dataclass(eq=False)
class Node:
    """An object, how it is reached first, and the numbers of the nodes below it."""

    number: int
    kind: Kind
    object: Any
    path: str
    children: list[tuple[Edge, int]] = field(default_factory=list)
    slots: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    """Of an optimiser: the node of a variable, and those of what is kept for it."""


class ObjectGraph:
    """All nodes below `root`, in the order of their distance from it; the root is the first.

    >>> import limelight as ll
    >>> layer = ll.nn.Dense(2)
    >>> y = layer(ll.ones((1, 3)))
    >>> [(node.path, node.kind) for node in ObjectGraph(layer).nodes]
    [('', 'object'), ('kernel', 'variable'), ('bias', 'variable')]
    """

    def __init__(self, root: Any) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # bound methods and the like would otherwise leave their id to others
        self._pending: deque[Node] = deque()
        self._add(root, kind_of(root) or OBJECT, "")
        self._walk()
        for node in [node for node in self.nodes if has_slots(node.object)]:
            self._add_slots(node)

    def find(self, x: Any) -> Node | None:
        """The node of an object, None where it has none."""
        number = self._numbers.get(_identity(x))
        return None if number is None else self.nodes[number]

    def leaves(self) -> Iterator[Node]:
        """The nodes that have values."""
        return (node for node in self.nodes if node.kind in LEAVES)

    def _walk(self) -> None:
        while self._pending:
            node = self._pending.popleft()
            for edge, child in children_of(node.object):
                kind = kind_of(child)
                if kind is not None:
                    node.children.append((edge, self._add(child, kind, join(node.path, edge))))

    def _add(self, x: Any, kind: Kind, path: str) -> int:
        known = self._numbers.get(_identity(x))
        if known is not None:
            return known
        node = Node(len(self.nodes), kind, x, path)
        self.nodes.append(node)
        self._numbers[_identity(x)] = node.number
        self._kept.append(x)
        if kind not in LEAVES:
            self._pending.append(node)
        return node.number

    def _add_slots(self, node: Node) -> None:
        for variable, slots in node.object.variables_with_slots():
            target = self.find(variable)
            if target is not None:
                numbers = {
                    name: self._add(slot, "variable", below(node.path, [SLOTS, target.path, name]))
                    for name, slot in slots.items()
                }
                node.slots.append((target.number, numbers))


def _identity(x: Any) -> int:
    return x._uid if isinstance(x, Variable) else id(x)


def has_slots(x: Any) -> bool:
    """Whether `x` keeps variables for other variables: an optimiser."""
    return isinstance(x, Module) and hasattr(type(x), "variables_with_slots")


def kind_of(x: Any) -> Kind | None:
    """What `x` is in an object graph; None for what has no state."""
    if isinstance(x, Resource):
        return "generator" if x.spec is GENERATOR else "variable"
    if isinstance(x, Value):
        return "value"
    if isinstance(x, np.ndarray):
        return "array" if x.dtype.newbyteorder("=") in _DTYPES else None
    if isinstance(x, (list, tuple)):
        return "tuple" if isinstance(x, tuple) else "list"
    if isinstance(x, dict):
        return "dict"
    if is_stateful(x):
        return "state"
    if isinstance(x, (Module, Attributes)):
        return OBJECT
    return RECORD if is_record(x) else None


def children_of(x: Any) -> Iterable[tuple[Edge, Any]]:
    """What the edges of a module, a state or a container lead to, things without state included."""
    if isinstance(x, (list, tuple)):
        return enumerate(map(_itself, x))
    if isinstance(x, dict):
        return [(_key(key), _itself(value)) for key, value in x.items() if kind_of(value) is not None]
    if isinstance(x, Attributes):
        return [(name, _state(x, name, value)) for name, value in vars(x).items() if not name.startswith("_")]
    fields = None if isinstance(x, Module) else fields_of(x)
    if fields is not None:
        return [(name, _itself(value)) for name, value in fields.items()]
    untracked = getattr(type(x), "untracked", ())
    return [(name, _itself(value)) for name, value in vars(x).items() if name not in untracked]


def child_of(x: Any, edge: Edge) -> Any:
    """What an edge leads to now; `MISSING` where there is no such edge."""
    if isinstance(x, (list, tuple)):
        return _itself(x[edge]) if isinstance(edge, int) and 0 <= edge < len(x) else MISSING
    if isinstance(x, dict):
        return _itself(x.get(edge, MISSING))
    fields = None if isinstance(x, (Module, Attributes)) else fields_of(x)
    if fields is not None:
        return _itself(fields.get(edge, MISSING)) if isinstance(edge, str) else MISSING
    if not isinstance(edge, str) or edge not in vars(x) or edge in getattr(type(x), "untracked", ()):
        return MISSING
    if isinstance(x, Attributes) and edge.startswith("_"):
        return MISSING
    return _state(x, edge, vars(x)[edge]) if isinstance(x, Attributes) else _itself(vars(x)[edge])


MISSING: Final = object()


def extent(x: Any) -> int:
    """How much is in a container or a record that may be given more; -1 of what is neither."""
    if isinstance(x, (list, tuple, dict)):
        return len(x)
    fields = None if isinstance(x, (Module, Attributes)) else fields_of(x)
    return -1 if fields is None else sum(value is not None for value in fields.values())


def is_reserved(owner: Attributes, name: Edge) -> bool:
    """Whether no file may make an attribute of a state: a private one, or that of a method or a property."""
    if not isinstance(name, str) or name.startswith("_"):
        return True
    of_class = getattr(type(owner), name, None)
    return callable(of_class) or hasattr(type(of_class), "__get__")


def _itself(x: Any) -> Any:
    return itself(x) if isinstance(x, Resource) else x


def _state(owner: Any, name: str, value: Any) -> Any:
    """An attribute of a `State`: as a value unless it is, or holds, something with a node of its own."""
    return _itself(value) if _has_node(value) or _is_unset(value) else Value(owner, name, value)


def _is_unset(x: Any) -> bool:
    """Whether `x` is a record of which no field has a value yet."""
    return is_record(x) and not any(value is not None and not is_empty(value) for value in _values(x))


def is_empty(x: Any) -> bool:
    """Whether `x` is a container without elements."""
    return isinstance(x, (list, tuple, dict)) and not x


def _has_node(x: Any) -> bool:
    kind = kind_of(x)
    if kind not in HOLDERS:
        return kind is not None
    seen, pending = {id(x)}, [x]  # a list may be in several, and in itself
    for container in pending:
        for item in _values(container):
            if type(item) in PLAIN or isinstance(item, np.ndarray):
                continue
            kind = kind_of(item)
            if kind in HOLDERS:
                if id(item) not in seen:
                    seen.add(id(item))
                    pending.append(item)
            elif kind is not None:
                return True
    return False


def _values(x: Any) -> Iterable[Any]:
    if isinstance(x, (list, tuple)):
        return x
    held: dict[Any, Any] = (x if isinstance(x, dict) else fields_of(x)) or {}
    return held.values()


PLAIN: Final = frozenset([int, float, str, bool, bytes, complex, type(None)])


class UnkeepableKey(str):
    """A key that a file cannot keep, as text: it is refused where it leads to state."""

    __slots__ = ()


def _key(key: Any) -> Edge:
    return key if type(key) is int or type(key) is str else UnkeepableKey(repr(key))
