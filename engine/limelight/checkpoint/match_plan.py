"""What one pass over saved and live objects would restore: a plan, of which nothing is done while it is made.

Objects are matched from one to the next along edges of equal names (paper section 4.3), so it does not matter what else
there is in the process. A plan knows the values to assign, what waits since nothing is there yet, what does not fit,
and what one saved object would have to be twice.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from limelight.checkpoint.manifest import Manifest, SavedNode
from limelight.checkpoint.object_graph import (
    BRANCHES,
    HOLDERS,
    LEAVES,
    MISSING,
    OBJECT,
    RECORD,
    Attributes,
    Value,
    child_of,
    extent,
    has_slots,
    is_empty,
    is_reserved,
    kind_of,
)
from limelight.checkpoint.object_paths import Edge, join
from limelight.core import dtypes, shapes
from limelight.core.dtypes import DType
from limelight.core.shapes import Shape

ARRAYS: Final = ("variable", "array")
PLAIN: Final = ("value", "array")
Done = Container[tuple[int, Edge]]


Around = tuple[Any, int, tuple[Edge, ...]]
"""The nearest object, not container, around something: it, its number, and the edges from it."""
Place = tuple[int, int, tuple[Edge, ...]]
"""The same with the id of the object, as a key."""


class Source(Protocol):
    """Where saved values are read: a checkpoint, or weights of others."""

    path: Path
    manifest: Manifest
    casts: bool
    """Whether a floating array may become a variable of another floating dtype."""

    def spec(self, key: str, dtype: str = "") -> tuple[tuple[int, ...], DType]: ...
    def array(self, key: str, dtype: str = "") -> np.ndarray[Any, Any]: ...
    def value_array(self, key: str) -> np.ndarray[Any, Any]: ...
    def place(self, key: str) -> tuple[int, int]: ...
    def reopened(self) -> Source: ...


class Assignment(NamedTuple):
    """A saved value, and what is to have it."""

    number: int
    target: Any
    path: str


class Ambiguity(NamedTuple):
    """A saved object that was matched, and a second one that would be matched with it."""

    number: int
    path: str


@dataclass
class Plan:
    """The result of a pass."""

    assignments: list[Assignment] = field(default_factory=list)
    objects: dict[int, Any] = field(default_factory=dict)
    """Live objects by the number of what was saved: of those with edges, and of leaves."""
    done: set[tuple[int, Edge]] = field(default_factory=set)
    owners: dict[tuple[int, int], Any] = field(default_factory=dict)
    """Objects below which something waits, by id and number: an object may be what two have become."""
    ambiguous: list[Ambiguity] = field(default_factory=list)
    misfits: dict[int, str] = field(default_factory=dict)
    """What does not fit, in words; then nothing is restored."""
    growing: dict[Place, tuple[Any, int]] = field(default_factory=dict)
    """Containers that may grow: the object around each, and its size."""
    renewed: list[tuple[Any, str, int]] = field(default_factory=list)
    """Attributes of states that are not there and can be made: owner, name, number."""


class Planner:
    """Makes one plan.

    Args:
        file: what was saved.
        matched: the live object that a number has been matched with before, None if there is none.
        done: edges that have led to an object before: what is attached there later is another one's successor.
        decided: whether a later restore has given something its value: then it need not fit.
    """

    def __init__(
        self,
        file: Source,
        matched: Callable[[int], Any],
        done: Done,
        decided: Callable[[Any], bool] = lambda x: False,
    ) -> None:
        self.plan = Plan()
        self._file = file
        self._nodes = file.manifest.nodes
        self._matched = matched
        self._done = done
        self._decided = decided
        self._seen: set[tuple[int, int]] = set()
        self._assigned: dict[tuple[int, str], int] = {}  # the number whose value something is to have, by its id
        self._pending: list[tuple[int, Any, str, Around]] = []

    def match(self, number: int, x: Any, path: str = "") -> Plan:
        """Matches `x` with what was saved, and so on along the edges."""
        self._pending.append((number, x, path, (x, number, ())))
        return self._run()

    def match_children(self, number: int, owner: Any, names: Container[Edge], path: str = "") -> Plan:
        """Matches what some edges of an object that was matched before lead to."""
        for edge, child in self._nodes[number].children:
            if edge in names:
                self._follow(number, edge, child, owner, path, (owner, number, ()))
        return self._run()

    def _run(self) -> Plan:
        while self._pending:
            self._visit(*self._pending.pop())
        return self.plan

    def _visit(self, number: int, x: Any, path: str, owner: Around) -> None:
        if (number, id(x)) in self._seen:
            return
        self._seen.add((number, id(x)))
        node, kind = self._nodes[number], kind_of(x)
        if kind is None:
            return  # a function, a setting: nothing that could be given a value
        if kind not in HOLDERS and not self._claim(number, x, path):
            return
        if node.kind in BRANCHES and kind not in LEAVES:
            above = (x, number, ()) if kind == OBJECT else owner
            for edge, child in reversed(node.children):
                self._follow(number, edge, child, x, path, above)
        else:
            self._assign(number, node, kind, x, path)

    def _claim(self, number: int, x: Any, path: str) -> bool:
        """Whether the live object is the one for this number: the first is."""
        other = self.plan.objects.get(number, self._matched(number))
        if other is not None and not _same(other, x):
            self.plan.ambiguous.append(Ambiguity(number, path))
            return False
        self.plan.objects[number] = x
        return other is None

    def _follow(self, number: int, edge: Edge, child: int, x: Any, path: str, owner: Around) -> None:
        if (number, edge) in self._done:
            return
        live = child_of(x, edge)
        node = self._nodes[child]
        if _is_absent(live, node):
            if isinstance(x, Attributes) and is_reserved(x, edge):
                return  # no file may take the place of a method
            if isinstance(x, Attributes) and node.kind in PLAIN:
                self._renew(number, edge, child, x, path)
            else:
                self._wait(x, owner)
            return
        if (
            isinstance(live, np.ndarray)
            and node.kind == "array"
            and not self._takes(live, node)
            and not self._decided(live)
        ):
            self._renew(number, edge, child, x, path)
            return
        if kind_of(live) in (*HOLDERS, None):
            self._wait(None, owner)  # a container may grow, and a setting be replaced by a variable
        else:
            self.plan.done.add((number, edge))
        self._pending.append((child, live, join(path, edge), (*owner[:2], (*owner[2], edge))))

    def _wait(self, x: Any, owner: Around) -> None:
        self.plan.owners[id(owner[0]), owner[1]] = owner[0]
        if kind_of(x) in ("list", "dict", RECORD):
            self.plan.growing[id(owner[0]), *owner[1:]] = (owner[0], extent(x))

    def _takes(self, array: np.ndarray[Any, Any], node: SavedNode) -> bool:
        """Whether a NumPy array can be changed to what was saved, in place."""
        native = array.dtype.newbyteorder("=")
        return array.flags.writeable and self._file.spec(node.array, node.dtype) == (array.shape, native)

    def _renew(self, number: int, edge: Edge, child: int, x: Any, path: str) -> None:
        """Has an attribute made anew, where it is one."""
        if kind_of(x) in HOLDERS:
            node = self._nodes[child]
            self.plan.misfits[child] = (
                f"{shown(node.path)} was saved as {described(self._file, node)}, and cannot be changed to that in place"
            )
        else:
            self.plan.renewed.append((x, str(edge), child))
            self.plan.done.add((number, edge))
            self.plan.objects[child] = Value(x, str(edge), None)

    def _assign(self, number: int, node: SavedNode, kind: str, x: Any, path: str) -> None:
        if self._decided(x):
            self.plan.assignments.append(Assignment(number, x, path))  # which is not carried out
        elif not (node.kind == kind or (node.kind in ARRAYS and kind in ARRAYS)):
            self.plan.misfits[number] = (
                f"{shown(node.path)} was saved as {described(self._file, node)}, and is a {type_of(x)} now"
            )
        elif kind == "variable" and not fits(self._file, node, x.shape, x.dtype):
            self.plan.misfits[number] = (
                f"{shown(node.path)} was saved as {described(self._file, node)}, and the variable is "
                f"{spec_text(x.shape, x.dtype)} now"
            )
        elif kind == "generator" and self._file.spec(node.array) != (x.shape, x.dtype):
            self.plan.misfits[number] = f"{shown(node.path)} is not the state of a generator"
        elif (other := self._assigned.setdefault(_key(x), number)) != number and not self._equal(other, number):
            self.plan.misfits[number] = (
                f"{shown(self._nodes[other].path)} and {shown(node.path)} were saved with two values, and are one "
                f"{type_of(x)} now"
            )
        else:
            self.plan.assignments.append(Assignment(number, x, path))

    def _equal(self, one: int, other: int) -> bool:
        """Whether two saved values are the same: what is one object now may have been two with the same value."""
        a, b = self._nodes[one], self._nodes[other]
        if not (a.array and b.array):
            return a.value == b.value and a.array == b.array
        arrays = self._file.array(a.array, a.dtype), self._file.array(b.array, b.dtype)
        return arrays[0].dtype == arrays[1].dtype and arrays[0].tobytes() == arrays[1].tobytes()


def matched_slots(
    nodes: Sequence[SavedNode], numbers: Iterable[int], live: Callable[[int], Any]
) -> Iterator[tuple[Any, Any, dict[str, int]]]:
    """The slots that were saved of optimisers that have a match, with variables that have one.

    Args:
        nodes: all that was saved.
        numbers: where among them optimisers may be.
        live: the live object for a number, or None.

    Yields:
        The optimiser, the variable, and the numbers of its slots by name.
    """
    for number in numbers:
        slots = nodes[number].slots
        optimizer = live(number) if slots else None
        if optimizer is not None and has_slots(optimizer):
            for to, names in slots:
                variable = live(to)
                if variable is not None:
                    yield optimizer, variable, names


def _key(x: Any) -> tuple[int, str]:
    return (id(x.owner), x.name) if isinstance(x, Value) else (id(x), "")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Value) and isinstance(b, Value):
        return a.owner is b.owner and a.name == b.name
    return a is b


def _is_absent(x: Any, node: SavedNode) -> bool:
    """Whether nothing is there yet, for what was saved; an empty list may still be given elements."""
    if isinstance(x, Value):
        return node.kind != "value" and (x.value is None or is_empty(x.value))
    return x is MISSING or x is None


def fits(file: Source, node: SavedNode, shape: Shape, dtype: DType) -> bool:
    """Whether a saved array can be the value of a variable."""
    saved_shape, saved_dtype = file.spec(node.array, node.dtype)
    cast = file.casts and dtypes.is_floating(saved_dtype) and dtypes.is_floating(dtype)
    return (saved_dtype == dtype or cast) and shapes.compatible(saved_shape, shape)


def described(file: Source, node: SavedNode) -> str:
    """What was saved, in a few words."""
    if node.kind in ARRAYS:
        return spec_text(*file.spec(node.array, node.dtype))
    return {"generator": "a generator", "value": "a plain value"}.get(node.kind, f"a {node.type or node.kind}")


def spec_text(shape: Shape, dtype: DType) -> str:
    """Dtype and shape as in messages.

    >>> spec_text((2, None), dtypes.float32)
    'f32[2,?]'
    """
    return f"{dtypes.short(dtype)}[{','.join('?' if n is None else str(n) for n in shape)}]"


def type_of(x: Any) -> str:
    """The name of the class of a live object, of a plain value that of the value."""
    return type(x.value if isinstance(x, Value) else x).__name__


def shown(path: str) -> str:
    return f"`{path}`" if path else "the root"
