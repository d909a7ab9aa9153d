"""Variables that are not saved: attributes of objects that are no modules and no records, elements of sets and queues.

Nothing tells when such an object is given another attribute, so what waits for one would wait for ever, and it may be
anything: a logger, a figure, a framework. So it is not walked for state. But it is looked into, and a warning says
what is there and is not saved.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from limelight.checkpoint.object_graph import LEAVES, Attributes, ObjectGraph, children_of, kind_of
from limelight.checkpoint.object_paths import join
from limelight.core.variable import Variable, itself
from limelight.errors import CheckpointWarning
from limelight.user_code.warn_at import warn_here

_MOST: Final = 1000  # objects that are looked into: those of other libraries may lead anywhere
_LIBRARY: Final = ("limelight", "numpy", "builtins", "collections", "functools", "threading", "logging", "typing")
_NO_HOLDERS: Final = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_UNORDERED: Final = (set, frozenset, deque)
_CONTAINERS: Final = (list, tuple, dict, *_UNORDERED)


def unsaved_variables(graph: ObjectGraph) -> list[tuple[str, str, Variable]]:
    """Variables below the modules and containers of a graph, which has no node for what they are in.

    Returns:
        For each of these objects or sets what is to be changed about it, the path of its first such variable, and this.
    """
    told = []
    seen: set[int] = set()
    for node in graph.nodes:
        for edge, x in _further(node.object):
            if kind_of(x) is None and id(x) not in seen and (isinstance(x, _UNORDERED) or _may_hold(x)):
                path = join(node.path, edge)
                variable = next((pair for pair in _variables(path, x, seen) if graph.find(pair[1]) is None), None)
                if variable is not None:
                    told.append((_remedy(x), *variable))
    return told


def _remedy(x: Any) -> str:
    name = type(x).__name__
    if isinstance(x, _UNORDERED):
        return f"a {name} has no edges that a file could name. Make it a list, a tuple or a dictionary"
    return (
        f"a {name} is no module, and its attributes are not state. Make its class a subclass of ll.Module, or a "
        "dataclass"
    )


def warn_of_unsaved(graph: ObjectGraph) -> None:
    """Warns, at the user's line, of variables that are in the program below what is saved, and are not saved."""
    for remedy, path, variable in unsaved_variables(graph):
        said = f"`{path}`, the variable {variable.name!r}, is not saved: {remedy}"
        warn_here(said, CheckpointWarning)


def _further(x: Any) -> Iterable[tuple[Any, Any]]:
    """The edges of a node. Plain objects of a state are values, which a file keeps or refuses."""
    return () if isinstance(x, Attributes) or kind_of(x) in LEAVES else _edges(x)


def _edges(x: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(x, dict):
        return [(key if type(key) in (int, str) else repr(key), value) for key, value in x.items()]
    if isinstance(x, _UNORDERED):
        return enumerate(list(x))
    if kind_of(x) is not None:
        return children_of(x)
    edges: list[tuple[Any, Any]] = []
    with suppress(Exception):  # as it is, since a proxy may compute one; a class may, too, and raise anything
        edges += dict(object.__getattribute__(x, "__dict__")).items()
    for kind in type(x).__mro__:
        for name in _slots(kind):
            with suppress(AttributeError):  # it is not set
                edges.append((name, vars(kind)[name].__get__(x)))
    return edges


def _slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    names = (names,) if isinstance(names, str) else tuple(names)
    return tuple([name for name in names if isinstance(vars(kind).get(name), types.MemberDescriptorType)])


def _variables(path: str, x: Any, seen: set[int]) -> Iterator[tuple[str, Variable]]:
    """The variables below a plain object, with their paths, the nearest first."""
    pending = [(path, x)]
    for at, holder in pending:  # which grows
        if id(holder) in seen:
            continue
        seen.add(id(holder))
        for edge, child in _edges(holder):
            below = join(at, edge)
            if isinstance(child, Variable):
                yield below, itself(child)
            elif len(pending) < _MOST and _leads_on(child):
                pending.append((below, child))


def _leads_on(x: Any) -> bool:
    kind = kind_of(x)
    return isinstance(x, _CONTAINERS) or (_may_hold(x) if kind is None else kind not in LEAVES)


def _may_hold(x: Any) -> bool:
    return not isinstance(x, _NO_HOLDERS) and _is_plain(type(x))


def _is_plain(kind: type) -> bool:
    """Whether objects of a class are somebody's own, with attributes."""
    home = kind.__module__.partition(".")[0]
    own = home not in _LIBRARY and not home.startswith("limelight_")
    return own and (getattr(kind, "__dictoffset__", 0) != 0 or any(map(_slots, kind.__mro__)))
