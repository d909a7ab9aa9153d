"""One restore: what it has matched, and what waits until the object that it is for is attached.

Nothing of the user's is kept alive by what waits: objects are held weakly, and what they wait for is in a table that
forgets them when they go (`core.attachments`). The newest restore decides: it is asked first, and an older one leaves
alone what a newer one has given a value.
"""

from __future__ import annotations

import atexit
import itertools
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from limelight.checkpoint import commit
from limelight.checkpoint.commit import Given
from limelight.checkpoint.match_plan import Assignment, Place, Plan, Planner, Source, matched_slots, shown
from limelight.checkpoint.object_graph import LEAVES, Value, child_of, extent, has_slots
from limelight.checkpoint.object_paths import Edge
from limelight.checkpoint.superseded import superseded
from limelight.core import attachments
from limelight.core.storage import Storage, UnsettledStorage, live_storages
from limelight.core.variable import Variable
from limelight.errors import CheckpointError, CheckpointWarning
from limelight.user_code import source_line
from limelight.user_code.warn_at import warn_at, warn_here

_count: Final = itertools.count(1)
_MOST_NAMED: Final = 8
_OF_CHECKPOINTS: Final = "Where that is meant, write .expect_partial() behind it: restore(...).expect_partial()"
_OF_WEIGHTS: Final = (
    "Where names differ, say which is which by rename={'theirs': 'ours'}; where that is meant, write "
    "ll.nn.load_weights(...).expect_partial()"
)
_alive: weakref.WeakSet[Restoration] = weakref.WeakSet()


class Restoration:
    """What of a file has been matched with objects, by number, and what still waits."""

    def __init__(self, file: Source) -> None:
        self.order = next(_count)
        self.path: Path = file.path
        self.nodes = file.manifest.nodes
        self.given: dict[int, Given] = {}  # what leaves were given, by number
        self.ambiguous: list[str] = []
        self.overruled: set[int] = set()
        self.foreseen = False  # whether nothing is restored: then `given` is what would be
        self.misfits: dict[int, str] = {}
        self.silent = False
        self.weights_only = file.casts  # a file of weights never has other state
        self._file: Source | None = file
        self._reopen = file.reopened
        self._matched: dict[int, Callable[[], Any]] = {}
        self._done: set[tuple[int, Edge]] = set()
        self._owners: dict[int, dict[int, Callable[[], Any]]] = {}  # by id, and by number
        self._growing: dict[Place, tuple[Callable[[], Any], int]] = {}
        self._settling = False
        self._log: list[tuple[dict[Any, Any] | set[Any], Any]] = []
        self._optimizers: set[int] = set()  # the numbers of those that were matched
        self._with_slots = [i for i, node in enumerate(self.nodes) if node.slots]
        self._leaves = [i for i, node in enumerate(self.nodes) if node.kind in LEAVES]
        self._line = source_line.user_line()
        _alive.add(self)

    @property
    def file(self) -> Source:
        """The file; it is opened again where all of it had been restored, and a first call that failed took it back."""
        if self._file is None:
            self._file = self._reopen()
        return self._file

    @property
    def missing(self) -> list[int]:
        """The numbers of saved values that no object was given."""
        return [number for number in self._leaves if number not in self.given]

    def matched(self, number: int) -> Any:
        """The live object for a number; None where there is none, or no more."""
        reference = self._matched.get(number)
        return None if reference is None else reference()

    def is_done(self, number: int) -> bool:
        """Whether a number was matched, with an object that may be gone."""
        return number in self._matched

    def foresee(self, plan: Plan, given: dict[int, Given]) -> None:
        """Takes note of a plan as if it had been carried out."""
        self._matched = {number: _reference(x) for number, x in plan.objects.items()}
        self.given = given
        self.foreseen = True
        self.misfits = dict(plan.misfits)

    def begin(self, root: Any) -> None:
        """Restores what is below `root` now. Raises CheckpointError, and changes nothing, where something misfits."""
        try:
            self._carry_out(self._planner().match(0, root))
        except BaseException:
            _note_growing(self, False)
            _forget(self)
            raise
        for older in [one for one in _alive if one.order < self.order and one.missing and not one.foreseen]:
            older.overruled |= superseded(older.nodes, self.nodes, older.in_common(self)) - older.given.keys()

    def in_common(self, other: Restoration) -> list[tuple[int, int]]:
        """The numbers of objects that two restores have matched."""
        theirs = {id(x): number for number in other._matched if (x := other.matched(number)) is not None}
        return [(number, theirs[key]) for number in self._matched if (key := id(self.matched(number))) in theirs]

    def attach(self, owner: Any, names: Any) -> None:
        """Restores what has come to be at some edges of an object that waits."""
        waits = [n for n, reference in self._owners.get(id(owner), {}).items() if reference() is owner]
        if waits:
            planner = self._planner()
            for number in waits:
                planner.match_children(number, owner, names, self.nodes[number].path)
            self._carry_out(planner.plan)

    def settle(self) -> None:
        """Restores what has been put into containers since."""
        if self._settling:
            return
        self._settling = True
        try:
            for key, (reference, size) in list(self._growing.items()):
                owner = reference()
                if owner is None:
                    self._growing.pop(key, None)
                elif _size(owner, key[2]) != size:
                    self._growing.pop(key, None)
                    self.attach(owner, key[2][:1])
        finally:
            self._settling = False
        _note_growing(self, bool(self._growing))

    def savepoint(self) -> Callable[[], None]:
        """A function that has wait again what is matched from now on."""
        length = len(self._log)

        def roll_back() -> None:
            while len(self._log) > length:
                where, key = self._log.pop()
                where.pop(key) if isinstance(where, dict) else where.discard(key)
            self._register()

        return roll_back

    def _carry_out(self, plan: Plan) -> None:
        if plan.misfits:
            raise CheckpointError(self._misfits(plan))
        slots = self._slots(plan)
        if plan.misfits:
            raise CheckpointError(self._misfits(plan))
        todo = [*plan.assignments, *slots, *[Assignment(n, Value(x, name, None), "") for x, name, n in plan.renewed]]
        newest = [a for a in todo if not self._decided(a.target)]
        stale = self._without_slots(plan, newest)
        waits_again, undo = self.savepoint(), commit.Undo()
        try:
            given = commit.carry_out(self.file, newest, self.order, undo)
            commit.renew_slots(stale, undo)
            self.overruled.update({a.number for a in todo} - {a.number for a in newest})
            self._note(plan, given)
            for number, path in plan.ambiguous:
                self._warn_of_two(number, path)
        except BaseException:  # an interrupt, and a warning that is an error: all have what they had
            undo.roll_back()
            waits_again()
            raise
        undo.forget()

    def _planner(self) -> Planner:
        return Planner(self.file, self.matched, self._done, self._decided)

    def _decided(self, target: Any) -> bool:
        """Whether a later restore has given `target` its value."""
        return commit.newer(target, self.order)

    def _slots(self, plan: Plan) -> list[Any]:
        """What optimisers keep for variables that are matched now, or were before; slots that lack are made."""

        def live(number: int) -> Any:
            return plan.objects.get(number, self.matched(number))

        assignments = []
        for optimizer, variable, numbers in matched_slots(self.nodes, self._with_slots, live):
            if all(n in self._matched for n in numbers.values()):
                continue
            if commit.begun_anew(optimizer, variable, self.order):
                self.overruled.update(numbers.values())
            else:
                assignments += commit.slots(self.file, plan, optimizer, variable, numbers, self._decided)
        return assignments

    def _without_slots(self, plan: Plan, assigned: list[Assignment]) -> list[tuple[Any, Variable]]:
        """Optimisers, and the variables that are given values now and had no slots with them when they were saved.

        Their slots are of steps that have not been done yet where the run goes on from.
        """
        numbers = {id(a.target): a.number for a in assigned if isinstance(a.target, Variable)}
        live = {number: x for number, x in plan.objects.items() if has_slots(x)}
        live |= {number: x for number in self._optimizers if (x := self.matched(number)) is not None}
        self._optimizers.update(live)
        found = []
        for number, optimizer in live.items():
            saved = {to for to, _ in self.nodes[number].slots}
            older = self.order > min((one.order for one in _alive), default=0)
            for a in assigned if older else ():
                if a.number not in saved and isinstance(a.target, Variable):
                    commit.note_begun_anew(optimizer, a.target, self.order)
            for variable, _ in optimizer.variables_with_slots():
                if numbers.get(id(variable), -1) not in saved and id(variable) in numbers:
                    found.append((optimizer, variable))
        return found

    def _note(self, plan: Plan, given: dict[int, Given]) -> None:
        for number, x in plan.objects.items():
            self._remember(self._matched, number, _reference(x))
        for edge in plan.done - self._done:
            self._done.add(edge)
            self._log.append((self._done, edge))
        for number, one in given.items():
            self._remember(self.given, number, one)
        for (key, number), owner in plan.owners.items():
            self._owners.setdefault(key, {})[number] = _reference(owner)
        for place, (owner, size) in plan.growing.items():
            self._growing[place] = (_reference(owner), size)
        self._register()

    def _remember(self, where: dict[Any, Any], key: Any, value: Any) -> None:
        if key not in where:
            self._log.append((where, key))
        where[key] = value

    def _register(self) -> None:
        if self.missing:
            for references in self._owners.values():
                for owner in references.values():
                    _wait(owner(), self)
            _note_growing(self, bool(self._growing))
        else:
            _note_growing(self, False)
            _forget(self)
            self._file = None

    def _misfits(self, plan: Plan) -> str:
        said = list(plan.misfits.values())
        more = f"; and {len(said) - _MOST_NAMED} more" if len(said) > _MOST_NAMED else ""
        return (
            f"{self.path} does not fit, and nothing was restored: {'; '.join(said[:_MOST_NAMED])}{more}. Make the "
            "objects as they were when they were saved, or restore a part: ll.Checkpoint(part=...)"
        )

    def _warn_of_two(self, number: int, path: str) -> None:
        node = self.nodes[number]
        said = (
            f"{shown(node.path)} of {self.path} was saved as one object, and is two now: the one at {shown(path)} was "
            f"not restored. Let both be one object, as they were{source_line.here()}"
        )
        self.ambiguous.append(said)
        warn_here(said, CheckpointWarning)

    def warn_of_missing(self, why: str = "") -> None:
        """Warns, once, of saved values that no object was given, and why, unless that was said to be meant.

        Those whose object has its value from a later restore were not lost.
        """
        missing = [] if self.silent else [number for number in self.missing if number not in self.overruled]
        self.silent = True
        if not missing:
            return
        paths = [shown(self.nodes[number].path) for number in missing[:_MOST_NAMED]]
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        said = (
            f"of {self.path}, {len(missing)} saved values were given to no object: {', '.join(paths)}{more}{why}. "
            f"{_OF_WEIGHTS if self.weights_only else _OF_CHECKPOINTS}"
        )
        if self._line is None:
            warn_here(said, CheckpointWarning)
        else:
            warn_at(self._line, said, CheckpointWarning)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:  # kept: globals may be gone
        if hasattr(self, "_line") and not is_finalizing():
            self.warn_of_missing()


@atexit.register
def _warn_of_missing() -> None:
    """A script that ends has dropped its restores, without their `__del__` being able to say so."""
    for restoration in sorted(_alive, key=lambda one: one.order):
        restoration.warn_of_missing()


class _Waiting:
    """The restorations that an object waits for, the newest first."""

    def __init__(self, owner: Any) -> None:
        key, gone = id(owner), _gone  # globals may be gone before the owner is
        self.owner = weakref.ref(owner, lambda reference: gone(key, reference))
        self.restorations: list[Restoration] = []

    def add(self, restoration: Restoration) -> None:
        if restoration not in self.restorations:
            self.restorations.append(restoration)
            self.restorations.sort(key=lambda one: -one.order)

    def __call__(self, owner: Any, name: str) -> None:
        for restoration in tuple(self.restorations):
            restoration.attach(owner, (name,))


def _gone(key: int, reference: Any, table: dict[int, Any] = attachments.waiting) -> None:
    if getattr(table.get(key), "owner", None) is reference:
        del table[key]


def _wait(owner: Any, restoration: Restoration) -> None:
    if owner is None:
        return
    waiting = attachments.waiting.get(id(owner))
    if not isinstance(waiting, _Waiting):
        waiting = attachments.waiting[id(owner)] = _Waiting(owner)
    waiting.add(restoration)


def _forget(restoration: Restoration) -> None:
    for key, waiting in list(attachments.waiting.items()):
        if isinstance(waiting, _Waiting) and restoration in waiting.restorations:
            waiting.restorations.remove(restoration)
            if not waiting.restorations:
                del attachments.waiting[key]


def _note_growing(restoration: Restoration, grows: bool) -> None:
    """Has variables look, when they are read, whether they were put into a container that waits; or no more."""
    known = next((one for one in attachments.growing if getattr(one, "of", None) == restoration.order), None)
    if grows and known is None:
        attachments.growing.append(_Settle(restoration))
        for storage in live_storages():
            if type(storage) is Storage:
                storage.__class__ = UnsettledStorage  # of the same layout
    elif not grows and known is not None:
        attachments.growing.remove(known)


class _Settle:
    """Settles a restoration, which it does not keep alive."""

    def __init__(self, restoration: Restoration) -> None:
        self.of = restoration.order
        self._restoration = weakref.ref(restoration)

    def __call__(self) -> None:
        restoration = self._restoration()
        if restoration is None:
            attachments.growing.remove(self)
        else:
            restoration.settle()


def _size(owner: Any, edges: tuple[Edge, ...]) -> int:
    x = owner
    for edge in edges:
        x = child_of(x, edge)
    return extent(x)


def pending() -> list[Restoration]:
    """The restorations for which something waits, the newest first."""
    tables = [waiting for waiting in attachments.waiting.values() if isinstance(waiting, _Waiting)]
    found = {one.order: one for waiting in tables for one in waiting.restorations}
    return [found[order] for order in sorted(found, reverse=True)]


def settle() -> None:
    """Gives what was put into containers the values that wait for it."""
    for restoration in pending():
        restoration.settle()


def _savepoint() -> Callable[[], None]:
    undo = [restoration.savepoint() for restoration in pending()]

    def roll_back() -> None:
        for one in undo:
            one()

    return roll_back


attachments.savepoints.append(_savepoint)


def _reference(x: Any) -> Callable[[], Any]:
    """A function that returns `x` while it lives."""
    if isinstance(x, Value):
        owner, name = weakref.ref(x.owner), x.name
        return lambda: None if owner() is None else Value(owner(), name, None)
    try:
        return weakref.ref(x)
    except TypeError:  # an object of a class with __slots__, and containers
        return lambda: x
