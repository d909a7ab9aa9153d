"""The nodes of a described graph by columns: few kinds of them, and for each node its kind and what is its own.

A large graph has many nodes and few kinds: what nodes of one op, spec and line have in common is described, compared,
sent and drawn once. `Nodes` is the list of records that everybody else sees; each is made when somebody asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Final, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt

from limelight_widgets.folds.fold import State
from limelight_widgets.format import UNSIZED

T = TypeVar("T")
Integers = npt.NDArray[np.int64]
NOBODY: Final = -1


class NodeColumns:
    """Described nodes by columns.

    Args:
        kinds: what nodes of one kind have in common, by the number of the kind: `op`, `out`, `stack` and so on.
        kind: the kind of each node.
        inputs: how many inputs the graph has; values are numbered, these first.
        reads: for each node the numbers of the values that it reads.

    `group` has the innermost group of each node, -1 for none, and `bytes` those that it makes (see
    `format.UNSIZED`). `notes` has what only some nodes have, by key and node.
    """

    def __init__(
        self, kinds: Sequence[State], kind: Sequence[int], inputs: int, reads: Sequence[Sequence[int]]
    ) -> None:
        self.kinds = list(kinds)
        self.kind = np.array(kind, np.int64)
        self.inputs = inputs
        self.reads = reads
        self.group: Integers = np.full(len(self.kind), NOBODY)
        self.bytes: npt.NDArray[np.float64] = np.zeros(len(self.kind))
        self.notes: dict[str, dict[int, Any]] = {}

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def of(cls, graph: State) -> NodeColumns:
        """Those of a described graph, made of its records where these came from elsewhere."""
        nodes = graph["nodes"]
        if isinstance(nodes, Nodes):
            return nodes.columns
        own = {"in", "group", *_NOTES}
        kinds = [{key: value for key, value in node.items() if key not in own} for node in nodes]
        columns = cls(kinds, range(len(kinds)), len(graph["inputs"]), [node.get("in", ()) for node in nodes])
        columns.group = np.array([node.get("group", NOBODY) for node in nodes], np.int64)
        for key in _NOTES:
            found = {k: node[key] for k, node in enumerate(nodes) if key in node}
            if found:
                columns.notes[key] = found
        return columns

    def kind_of(self, node: int) -> State:
        """What a node has in common with others."""
        return self.kinds[int(self.kind[node])]

    def by_kind(self, tell: Callable[[State], T]) -> list[T]:
        """For each node what is told of its kind."""
        told = [tell(kind) for kind in self.kinds]
        return [told[k] for k in self.kind.tolist()]

    def count(self, tell: Callable[[State], T]) -> Counter[T]:
        """How many nodes there are of which the same is told."""
        result: Counter[T] = Counter()
        for kind, number in zip(self.kinds, np.bincount(self.kind, minlength=len(self.kinds)).tolist(), strict=True):
            result[tell(kind)] += number
        return result

    def where(self, test: Callable[[State], object]) -> list[int]:
        """The nodes whose kind passes a test, in order."""
        passed = np.array([bool(test(kind)) for kind in self.kinds], bool)
        return np.flatnonzero(passed[self.kind]).tolist() if passed.any() else []

    def by_group(self, chosen: npt.NDArray[np.bool_]) -> dict[int, list[int]]:
        """The chosen nodes by their innermost group, in order."""
        nodes = np.flatnonzero(chosen)
        nodes = nodes[np.argsort(self.group[nodes], kind="stable")]
        found, starts = np.unique(self.group[nodes], return_index=True)
        parts = np.split(nodes, starts[1:]) if len(found) else []
        return {group: part.tolist() for group, part in zip(found.tolist(), parts, strict=True)}

    def note(self, key: str) -> dict[int, Any]:
        """What some nodes have under that key, by node, to be added to."""
        return self.notes.setdefault(key, {})

    def noted(self, key: str) -> dict[int, Any]:
        """The same, to be read."""
        return self.notes.get(key, {})

    def flags(self, nodes: Iterable[int]) -> npt.NDArray[np.bool_]:
        """For each node whether it is among these."""
        result = np.zeros(len(self), bool)
        result[list(nodes)] = True
        return result

    @property
    def boxes(self) -> Integers:
        """For each node the one on whose box it is told: what it is folded into, or itself."""
        result = np.arange(len(self))
        into = self.noted("folded_into")
        result[list(into)] = list(into.values())
        return result

    def split(self, by: Sequence[Any]) -> None:
        """Has nodes of one kind that differ in `lane` be of kinds of their own, which have it."""
        names = list(dict.fromkeys(by))
        number = {name: k for k, name in enumerate(names)}
        lane = np.array([number[name] for name in by], np.int64)
        found, self.kind = np.unique(self.kind * max(len(names), 1) + lane, return_inverse=True)
        self.kinds = [self.kinds[k // len(names)] | {"lane": names[k % len(names)]} for k in found.tolist()]

    # Values

    @cached_property
    def firsts(self) -> Integers:
        """The number of the first value that each node makes, and behind the last one that of all values."""
        counts = np.array([len(kind.get("out", ())) for kind in self.kinds], np.int64)[self.kind]
        return self.inputs + np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])

    @cached_property
    def makers(self) -> Integers:
        """The node that makes each value, -1 for inputs."""
        made = np.repeat(np.arange(len(self)), np.diff(self.firsts))
        return np.concatenate([np.full(self.inputs, NOBODY), made])

    @cached_property
    def wires(self) -> tuple[Integers, Integers]:
        """Everything that is read: the node that reads, and the value."""
        counts = np.fromiter(map(len, self.reads), np.int64, len(self))
        values = np.fromiter(chain.from_iterable(self.reads), np.int64, int(counts.sum()))
        return np.repeat(np.arange(len(self)), counts), values

    @cached_property
    def readers(self) -> Readers:
        """For each value the nodes that read it."""
        return Readers(*self.wires, int(self.firsts[-1]))

    def sources(self, but: Iterable[int] = ()) -> list[list[int]]:
        """For each node the nodes that it reads from, -1 for an input, without those of `but`."""
        reader, value = self.wires
        source = self.makers[value]
        left_out = list(but)
        if left_out:
            kept = ~np.append(self.flags(left_out), False)[source]
            reader, source = reader[kept], source[kept]
        ends = np.cumsum(np.bincount(reader, minlength=len(self))).tolist()
        flat = source.tolist()
        return [flat[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def names(self) -> list[list[str]]:
        """For each node the names of what it makes."""
        firsts = self.firsts.tolist()
        if firsts[-1] - firsts[0] == len(self) == len(firsts) - 1 and (np.diff(self.firsts) == 1).all():
            return [[f"%{k}"] for k in firsts[:-1]]
        return [[f"%{k}" for k in range(start, end)] for start, end in pairwise(firsts)]

    # Records

    def row(self, node: int) -> State:
        """The record of a node."""
        start, end = self.firsts[node : node + 2].tolist()
        return self._row(node, int(self.kind[node]), [f"%{k}" for k in range(start, end)], int(self.group[node]))

    def rows(self) -> list[State]:
        """The records of all nodes."""
        own = zip(range(len(self)), self.kind.tolist(), self.names(), self.group.tolist(), strict=True)
        return [self._row(*one) for one in own]

    def _row(self, node: int, kind: int, names: list[str], group: int) -> State:
        reads = self.reads[node]
        row = self.kinds[kind] | {"in": reads, "names": names} if reads else self.kinds[kind] | {"names": names}
        if group >= 0:
            row["group"] = group
        for key, noted in self.notes.items():
            if node in noted:
                row[key] = noted[node]
        return row


_NOTES: Final = ("inline", "operands", "fused", "folded_into", "tags", "became")


class Readers:
    """For each value the nodes that read it, in order; made of everything that is read, a pair each."""

    def __init__(self, reader: Integers, value: Integers, count: int) -> None:
        self._readers: list[int] = reader[np.argsort(value, kind="stable")].tolist()
        self._ends: list[int] = np.cumsum(np.bincount(value, minlength=count)).tolist()

    def __getitem__(self, value: int) -> list[int]:
        return self._readers[self._ends[value - 1] if value else 0 : self._ends[value]]


class Nodes(list[State]):
    """The records of nodes, each made when it is asked for. What is changed in a record is seen by all who ask later.

    Who reads a list without its methods, as `json` does, must have it filled first (`fill`).
    """

    def __init__(self, columns: NodeColumns) -> None:
        super().__init__([_UNMADE] * len(columns))
        self.columns = columns
        self.is_filled = not len(columns)

    def fill(self) -> None:
        """Makes all records."""
        if not self.is_filled:
            self.is_filled = True
            made = self.made()
            super().__setitem__(slice(None), self.columns.rows())
            for index, row in made.items():
                super().__setitem__(index, row)

    def note(self, node: int, key: str, value: Any) -> None:
        """Adds to the record of a node, made or not."""
        self.columns.note(key)[node] = value
        row = super().__getitem__(node)
        if row is not _UNMADE:
            row[key] = value

    def made(self) -> dict[int, State]:
        """The records that have been made, by their nodes: these may have been changed."""
        return {k: row for k, row in enumerate(super().__iter__()) if row is not _UNMADE}

    @overload
    def __getitem__(self, at: SupportsIndex) -> State: ...
    @overload
    def __getitem__(self, at: slice) -> list[State]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> State | list[State]:
        if isinstance(at, slice):
            return [self[k] for k in range(*at.indices(len(self)))]
        row = super().__getitem__(at)
        if row is _UNMADE:
            index = range(len(self))[at]
            row = self.columns.row(index)
            super().__setitem__(index, row)
        return row

    def __iter__(self) -> Iterator[State]:
        self.fill()
        return super().__iter__()

    def __eq__(self, other: object) -> bool:
        self.fill()
        return super().__eq__(other)

    __hash__ = None  # as a list


_UNMADE: Final[State] = {}


def spec_bytes(spec: Any) -> float:
    """The bytes of a value; see `format.UNSIZED`."""
    size: int | None = getattr(spec, "nbytes", None)
    return UNSIZED if size is None else size
