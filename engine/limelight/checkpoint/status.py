"""What became of a restore: `RestoreStatus`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Self

from limelight.checkpoint.match_plan import ARRAYS, described, shown, spec_text
from limelight.checkpoint.match_tree import MatchRecord, MatchTree
from limelight.checkpoint.object_graph import (
    HOLDERS,
    LEAVES,
    MISSING,
    Attributes,
    Node,
    ObjectGraph,
    Value,
    child_of,
    is_reserved,
    kind_of,
)
from limelight.checkpoint.object_paths import SLOTS, Edge
from limelight.checkpoint.restoration import Restoration, settle
from limelight.checkpoint.state_protocols import is_stateful
from limelight.core.variable import Resource
from limelight.errors import CheckpointError
from limelight.module import Module

_MOST_NAMED = 10


class RestoreStatus:
    """The answer of `Checkpoint.restore`: what was matched, now and since, and what was not.

    It stays right: what is attached later is matched then. Where something saved went to no object, a
    CheckpointWarning says so, unless one of the three methods below was called: when the last object that might still
    take it is gone; or, where all layers have weights, and some that no file had, as after a layer was renamed, as soon
    as this answer is dropped, or a manager saves.

    >>> import limelight as ll, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "two.safetensors")
    >>> written = ll.Checkpoint(a=ll.Variable(1.0), b=ll.Variable(2.0)).write(path)
    >>> status = ll.Checkpoint(a=ll.Variable(0.0)).restore(path).expect_partial()
    >>> status
    two.safetensors: 1 matched, 1 waiting
    """

    def __init__(self, root: Any, restoration: Restoration | None) -> None:
        self._root = root
        self._restoration = restoration

    @property
    def path(self) -> Any:
        """The file that was restored; None where a manager found none."""
        return None if self._restoration is None else self._restoration.path

    def assert_consumed(self) -> Self:
        """Raises CheckpointError unless every saved value has an object, and every object with state a saved value."""
        return self._assert("waiting", "unused", "new")

    def assert_existing_objects_matched(self) -> Self:
        """Raises CheckpointError unless every object with state that there is now has a saved value.

        What was saved besides may wait, or stay unused.
        """
        return self._assert("new")

    def expect_partial(self) -> Self:
        """Says that saved values may go to no object: no warning tells of them."""
        if self._restoration is not None:
            self._restoration.silent = True
        return self

    def tree(self) -> MatchTree:
        """The match, one record for each saved value and for each object without one; printed, it is a tree."""
        settle()
        graph = ObjectGraph(self._root)
        if self._restoration is None:
            records = [_new(node) for node in graph.leaves()]
            return MatchTree("no checkpoint", tuple(records))
        return MatchTree(self._restoration.path.name, tuple(report(self._restoration, self._root, graph)))

    def __repr__(self) -> str:
        return self.tree().headline

    def warn_of_renamed(self) -> None:
        """Warns where variables lack on both sides and nothing is left to be made: another name is the likely cause."""
        if self._restoration is None or self._restoration.silent or not self._restoration.missing:
            return
        graph = ObjectGraph(self._root)
        if any(isinstance(node.object, Module) and node.object._lacks_weights() for node in graph.nodes):
            return  # they are made on the first call, and matched then
        told = _Report(self._restoration, self._root, graph)
        variables = [r for r in told.records() if r.kind == "variable" and r.path not in told.places_of_none]
        lost = [r for r in variables if r.state in ("waiting", "unused") and SLOTS not in r.path.split("/")]
        new = [shown(r.object) for r in variables if r.state == "new" and SLOTS not in r.object.split("/")]
        if lost and new:
            more = f" and {len(new) - _MOST_NAMED} more" if len(new) > _MOST_NAMED else ""
            self._restoration.warn_of_missing(
                f", while nothing was saved for {', '.join(new[:_MOST_NAMED])}{more}: values are found by the names of "
                "attributes"
            )

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:  # kept: globals may be gone
        if not is_finalizing() and getattr(self, "_restoration", None) is not None:
            self.warn_of_renamed()

    def _assert(self, *states: str) -> Self:
        tree = self.tree()
        self.expect_partial()
        twice = [] if self._restoration is None else self._restoration.ambiguous
        wrong = tree.of(*states)
        if wrong or twice:
            said = [f"{shown(r.path or r.object)} is {r.state}{': ' + r.why if r.why else ''}" for r in wrong]
            said = [*twice, *said]
            more = f"; and {len(said) - _MOST_NAMED} more" if len(said) > _MOST_NAMED else ""
            raise CheckpointError(
                f"{tree.headline}. {'; '.join(said[:_MOST_NAMED])}{more}. print(status.tree()) shows all; where it is "
                "meant, write status.expect_partial() instead"
            )
        return self


def report(restoration: Restoration, root: Any, graph: ObjectGraph) -> list[MatchRecord]:
    """What became of each saved value, and which objects of `graph` have none."""
    return _Report(restoration, root, graph).records()


class _Report:
    """Says of each saved value what became of it."""

    def __init__(self, restoration: Restoration, root: Any, graph: ObjectGraph) -> None:
        self._restoration = restoration
        self._root = root
        self._graph = graph
        values = [node for node in graph.leaves() if isinstance(node.object, Value)]
        self._values = {(id(node.object.owner), node.object.name): node for node in values}
        self._parents: dict[int, tuple[int, Edge]] = {}
        self._slots: set[int] = set()
        self.places_of_none: set[str] = set()
        """The paths of what waits where an attribute is None so far: it has its name, and is made later."""
        for number, node in enumerate(restoration.nodes):
            for edge, child in node.children:
                self._parents.setdefault(child, (number, edge))
            for to, names in node.slots:
                for name, slot in names.items():
                    if slot not in self._parents:
                        self._slots.add(slot)
                        self._parents[slot] = (number, f"{restoration.nodes[to].path}/{name}")

    def records(self) -> list[MatchRecord]:
        live_numbers: set[int] = set()
        records = []
        for number, node in enumerate(self._restoration.nodes):
            if node.kind in LEAVES:
                live = self._live(number)
                if live is not None:
                    live_numbers.add(live.number)
                records.append(self._record(number, live))
        new = [node for node in self._graph.leaves() if node.number not in live_numbers and not _unset(node)]
        if self._restoration.weights_only:
            new = [node for node in new if node.kind == "variable"]
        return [*records, *map(_new, new)]

    def _live(self, number: int) -> Node | None:
        """The live node that a saved value was matched with."""
        x = self._restoration.matched(number)
        if isinstance(x, Value):
            current = child_of(x.owner, x.name)
            if isinstance(current, Value):
                return self._values.get((id(x.owner), x.name))
            x = current
        return None if x is None or x is MISSING else self._graph.find(x)

    def _record(self, number: int, live: Node | None) -> MatchRecord:
        node = self._restoration.nodes[number]
        given = self._restoration.given.get(number)
        path = "" if live is None else live.path
        if given is not None:
            before, after = ("" if spec is None else spec_text(*spec) for spec in given)
            gone = (
                ""
                if live is not None or self._restoration.foreseen
                else "the object that it was given to is not below the checkpoint any more"
            )
            return MatchRecord(node.path, path, node.kind, before, after, "matched", gone)
        saved = described(self._restoration.file, node) if node.kind in ARRAYS else ""
        state, why = self._why(number)
        return MatchRecord(node.path, path, node.kind, "", saved, state, why)

    def _why(self, number: int) -> tuple[str, str]:
        if number in self._restoration.misfits:
            return "mismatched", self._restoration.misfits[number]
        if number in self._restoration.overruled:
            return "unused", "a later restore decides"
        if self._restoration.is_done(number):
            return "unused", "the object that it was for is gone"
        parent, edge = self._parents[number]
        if number not in self._slots:
            return self._why_at(parent, edge, self._restoration.nodes[number].path)
        optimizer = self._restoration.matched(parent)
        if optimizer is not None and edge.rpartition("/")[2] not in optimizer.slot_names:  # type: ignore[union-attr]  # only these have slots
            return "unused", f"{type(optimizer).__name__} keeps no such slot"
        return "waiting", "for its variable and its optimiser"

    def _why_at(self, parent: int, edge: Edge, path: str) -> tuple[str, str]:
        owner = self._resolve(parent)
        if owner is MISSING or owner is None:
            above, name = self._parents[parent]
            is_slot = isinstance(name, str) and "/" in name
            state, why = ("waiting", "") if is_slot else self._why_at(above, name, path)
            return state, why or f"for {shown(self._restoration.nodes[parent].path)}"
        child = child_of(owner, edge)
        name = type(owner).__name__
        if isinstance(owner, Attributes) and child is MISSING and is_reserved(owner, edge):
            return "unused", f"{edge!r} is a {name}'s own"
        if kind_of(owner) is None:
            return "unused", f"{shown(self._restoration.nodes[parent].path)} is a {name} now, which has no state"
        if isinstance(owner, tuple) and child is MISSING:
            return "unused", f"the tuple has {len(owner)} elements"
        if child is MISSING or child is None or (isinstance(child, Value) and child.value is None):
            if kind_of(owner) not in HOLDERS and vars(owner).get("_features") is not None:
                return "unused", f"this {name} is built, and has none"
            if child is not MISSING:
                self.places_of_none.add(path)
            return "waiting", f"until {name} has {edge!r}"
        if kind_of(child) is None:
            return "unused", f"a {type(child).__name__} is there now, which has no state"
        return "unused", f"another {type(child).__name__} has taken its place"

    def _resolve(self, number: int) -> Any:
        """The live object with edges for a number, by the way that leads to it."""
        if number == 0:
            return self._root
        known = self._restoration.matched(number)
        if known is not None:
            return known
        if self._restoration.is_done(number) or number not in self._parents:
            return MISSING
        parent, edge = self._parents[number]
        owner = self._resolve(parent)
        return MISSING if owner is MISSING or owner is None or kind_of(owner) is None else child_of(owner, edge)


def _unset(node: Node) -> bool:
    """Whether an attribute of a state has no value yet."""
    return isinstance(node.object, Value) and node.object.value is None


def _new(node: Node) -> MatchRecord:
    x = node.object
    spec = spec_text(x.shape, x.dtype) if isinstance(x, Resource) or (node.kind == "array") else ""
    return MatchRecord(
        "", node.path, node.kind, spec, "", "new", "" if spec or not is_stateful(x) else type(x).__name__
    )
