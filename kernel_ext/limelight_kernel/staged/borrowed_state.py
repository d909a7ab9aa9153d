"""The mutable objects that a cell's inputs lead to, lent to the cell's code while it is traced.

The code works on the notebook's own containers and objects, so that helpers, aliases and types mean what they mean in
a plain cell; where tensors stand in a container, their symbolic stand-ins do for the time of the trace. Afterwards what
has changed is told, and everything is put back.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

import limelight as ll
from limelight.core import nest
from limelight.core.storage import Storage
from limelight.core.tensor import Tensor, new_uid
from limelight.core.variable import Resource
from limelight.errors import DTypeError
from limelight_kernel.inputs.contents import (
    ATOMS,
    CONTAINERS,
    MOST,
    Contents,
    Holder,
    Path,
    Step,
    attributes,
    children,
    holders_of,
    mapping,
    same,
    set_attribute,
)
from limelight_kernel.inputs.pins import Pinned
from limelight_kernel.staged import array_memory
from limelight_kernel.staged.array_aliases import Alias, ByMemory, Reached, aliases
from limelight_kernel.staged.array_stand_ins import SymbolicArray, stand_for_array

_ABSENT: Final = object()


class Place(NamedTuple):
    """Where the notebook keeps something: the input's name, and the steps from there."""

    name: str
    path: Path = ()

    def find(self, values: Mapping[str, Any]) -> Any:
        """What stands there, as the inputs are now."""
        x = values[self.name]
        for step in self.path:
            x = step(x)
        return x

    def found(self, values: Mapping[str, Any]) -> Any:
        """The same; None where nothing stands there."""
        try:
            return self.find(values)
        except (AttributeError, LookupError, TypeError):
            return None

    def then(self, step: Step) -> Place:
        return Place(self.name, (*self.path, step))

    def __str__(self) -> str:
        said = self.name
        for step in self.path:
            said = step.after(said)
        return said


class Itself(NamedTuple):
    """The place of an object that the trace has made, a class say: it is the same at each run."""

    of: Any
    name: str

    def find(self, _values: Mapping[str, Any]) -> Any:
        """The object."""
        return self.of

    def __str__(self) -> str:
        return self.name


class Change(NamedTuple):
    """What a trace has changed: the contents of a holder, before with the stand-ins of the trace, and now.

    `only_adds`: the code does not read what it holds, and was given it empty.
    """

    holder: Holder
    place: Place | Itself
    before: Contents
    now: Contents
    only_adds: bool


class BorrowedState:
    """The state that inputs lead to: lend it, run the code, ask for the `changes`, `restore` it in any case.

    Args:
        originals: what each input means in the notebook.
        one_each: whether what can be reached in several ways is one stand-in, since the code compares identities.
    """

    def __init__(self, originals: Mapping[str, Any], one_each: bool = False) -> None:
        self._one_each = one_each
        self._first: dict[int, Any] = {}  # the stand-in of each tensor, variable and array, by the original's id
        self.places: dict[int, tuple[Any, Place]] = {}
        self.stand_ins: dict[int, tuple[Any, Place, Any]] = {}  # what stands for what: (stand-in, place, original)
        self._real: dict[tuple[int, bool], tuple[Holder, Place | Itself, Contents]] = {}
        self._lent: dict[tuple[int, bool], Contents] = {}
        self._replaced: dict[int, tuple[Any, Any]] = {}
        self._emptied: set[tuple[int, bool]] = set()
        self._owned: set[int] = set()  # ids of limelight's own objects, and of the containers that these keep
        self._newest = 0  # of the uids of variables that there were before the code ran
        self._arrays: list[tuple[Place, Any]] = []  # each way to an array of NumPy's
        self._unread: set[str] = set()  # inputs whose contents the code does not read
        self._aliases: list[Alias] = []
        self._storages: list[tuple[str, Storage, Any]] = []  # of variables, and the values that they had
        self.asked_ids = False
        self._walk((Place(name), value) for name, value in originals.items() if type(value) not in ATOMS)

    def _walk(self, roots: Iterable[tuple[Place, Any]]) -> None:
        waiting = deque(roots)
        self._arrays += [one for one in waiting if isinstance(one[1], np.ndarray)]
        while waiting and len(self.places) < MOST:
            place, x = waiting.popleft()
            if id(x) in self.places:
                continue
            self.places[id(x)] = x, place
            if type(x).__module__.startswith("limelight."):
                self._owned.add(id(x))
            for holder in holders_of(x):
                self._remember(holder, place)
            if id(x) in self._owned:
                self._owned |= {id(child) for _, child in children(x) if isinstance(child, CONTAINERS)}
            inside = [(place.then(step), child) for step, child in children(x)]
            self._arrays += [one for one in inside if isinstance(one[1], np.ndarray)]
            waiting += [one for one in inside if id(one[1]) not in self.places]

    def _remember(self, holder: Holder, place: Place | Itself) -> None:
        if holder.key not in self._real:
            self._real[holder.key] = holder, place, holder.contents()

    # Lending

    def lend(self, name: str, original: Any, traced: Any) -> Any:
        """`original`, with what the tracer passes, `traced`, at its leaves."""
        return self._fill(original, traced, Place(name))

    def lend_empty(self, name: str, original: Any, nested: bool) -> Any:
        """`original`, a container whose contents the code does not read, without them; `nested`: and those in it."""
        place = Place(name)
        self._unread.add(name)
        inside = [(x, place.then(Step("item", key))) for key, x in original.items()] if nested else []
        for x, where in [(original, place), *inside]:
            holder = Holder(x)
            self._remember(holder, where)
            self._emptied.add(holder.key)
            if x is not original or not nested:
                x.clear()
        return original

    def lend_inside(self, owner: Any, step: tuple[str, Any], traced: Any) -> None:
        """Puts what the tracer passes for a tensor where it stands in `owner`: at an attribute "." or an item."""
        kind, key = step
        holder = Holder(owner, kind == ".")
        known = self.places.get(id(owner))
        self._remember(holder, known[1] if known else Itself(owner, str(key)))
        x = attributes(owner)[key] if kind == "." else owner[key]
        if id(x) in self.stand_ins:  # it was reached by another path
            return
        if known:
            place = known[1].then(Step("attribute" if kind == "." else "item", key))
            self.stand_ins[id(traced)] = traced, place, x
        if isinstance(x, np.ndarray):
            if not known:
                raise DTypeError(
                    f"the NumPy array `{key}` of a {type(owner).__name__} that no input of the cell leads to is beside "
                    "an array that the cell changes in place; put that change into a cell above"
                )
            stand_for_array(traced)
        first = self._first.setdefault(id(x), traced)
        put = first if self._one_each else traced
        if kind == ".":
            set_attribute(owner, key, put)
        else:
            (list if isinstance(owner, list) else mapping(owner)).__setitem__(owner, key, put)

    def id_of(self, x: Any) -> int:
        """As `id`, of what a stand-in stands for: code may know it by that from another cell."""
        stand_in, _, original = self.stand_ins.get(id(x), (None, None, None))
        if stand_in is not x:
            return id(x)
        self.asked_ids = True
        return id(original)

    def begin(self, read: Mapping[str, Any] | None = None) -> None:
        """From here on the code runs; `read` is what it gets at through objects, by paths."""
        others = [Reached(str(place), x) for place, x in self._arrays if place.name not in self._unread]
        self._aliases = aliases(self.input_arrays(), [*others, *_arrays_read(read or {})])
        self._newest = new_uid()
        variables = [(str(place), x._data) for x, place in self.places.values() if isinstance(x, ll.Variable)]
        self._storages = [(path, x, x.array) for path, x in variables if type(x) is Storage]
        if self._one_each:
            self._stand_everywhere()
        self._lent = {key: holder.contents() for key, (holder, _, _) in self._real.items()}

    def _stand_everywhere(self) -> None:
        """Puts the stand-ins where inputs can be reached through objects, but for what the library keeps."""
        for holder, _, _ in self._real.values():
            if isinstance(holder.of, set | types.CellType) or id(holder.of) in self._owned:
                continue
            inside = holder.contents()
            if isinstance(inside, dict):
                holder.put({key: self._first.get(id(x), x) for key, x in inside.items()})
            elif isinstance(inside, list):
                holder.put([self._first.get(id(x), x) for x in inside])

    def _fill(self, x: Any, traced: Any, place: Place) -> Any:
        if isinstance(traced, Pinned):
            return traced.value
        node = nest.opened(traced)
        if node is None:
            if traced is not x:
                if isinstance(x, np.ndarray):
                    stand_for_array(traced)
                self.stand_ins[id(traced)] = traced, place, x
                first = self._first.setdefault(id(x), traced)
                return first if self._one_each else traced
            return traced
        parts = nest.opened(x)
        assert parts is not None, "what the tracer passes has the structure of what it was given"
        if id(x) in self._replaced:  # another name for it: what is in it stands for the originals already
            return self._replaced[id(x)][1]
        kind, keys, children = parts[0], parts[1], list(parts[2])
        if kind is dict and len(node[1]) < len(keys):  # of a large one the tracer passes what the code reads
            keys, children = node[1], [x[key] for key in node[1]]
        filled = [
            self._fill(child, other, place.then(_step(kind, key)))
            for key, child, other in zip(keys, children, node[2], strict=True)
        ]
        if all(one is other for one, other in zip(filled, children, strict=True)):
            return x
        new = self._filled(x, keys, filled, traced, place)
        self._replaced[id(x)] = x, new
        if new is not x:
            self.stand_ins[id(new)] = new, place, x
        return new

    def _filled(self, x: Any, keys: tuple[Any, ...], filled: list[Any], traced: Any, place: Place) -> Any:
        """`x` with these children: itself where it can be changed in place."""
        if isinstance(x, tuple):
            return tuple.__new__(type(x), filled)
        if isinstance(x, list | dict):
            self._remember(Holder(x), place)
            put: Any = list.__setitem__ if isinstance(x, list) else mapping(x).__setitem__
            for key, child in zip(keys, filled, strict=True):
                if type(key) is nest.Attribute:  # which is no name itself
                    set_attribute(x, str(key), child)
                else:
                    put(x, key, child)
            return x
        if hasattr(type(x), "__limelight_fields__") or isinstance(x, Mapping):
            return traced
        self._remember(Holder(x, True), place)
        for key, child in zip(keys, filled, strict=True):
            set_attribute(x, key, child)
        return x

    # Afterwards

    def assigned_elsewhere(self) -> list[str]:
        """The variables that have got another value meanwhile, as code: what the trace assigns, each run assigns."""
        return [path for path, storage, was in self._storages if storage.array is not was]

    def changed_arrays(self, assigned: Collection[str] = ()) -> list[tuple[Place, Any, Any]]:
        """The arrays of NumPy's that the code has changed in place: where they are, their stand-ins, they themselves.

        Raises StagedSyntaxError where a branch or a loop has changed one, and has not `assigned` its name.
        """
        for x, place, _ in self.stand_ins.values():
            if isinstance(x, SymbolicArray) and (place.path or place.name not in assigned):
                array_memory.refuse_lost(x)
        return [(place, x, array) for x, place, array in self.stand_ins.values() if array_memory.is_changed(x)]

    def input_arrays(self) -> list[Reached]:
        """The arrays of NumPy's that have stand-ins."""
        return [Reached(str(place), x) for _, place, x in self.stand_ins.values() if isinstance(x, np.ndarray)]

    def shown_by(self, place: Place) -> str:
        """Another way to memory of the array at that place, as code; empty for none."""
        path, arrays = str(place), self.input_arrays()
        own = next((one.array for one in arrays if one.path == path), None)
        others = ByMemory(arrays).sharing(path, own) if own is not None else iter(())
        other = next(others, None) or next((x.other for x in self._aliases if x.own.path == path), None)
        return "" if other is None else other.path

    def changed_alias(self) -> Alias | None:
        """An array that the code has changed itself, where it reads the same memory by a stand-in."""
        return next((x for x in self._aliases if x.is_changed), None)

    def changes(self) -> list[Change]:
        """What the code has changed, but for state that it has made once and for all: variables, layers."""
        found = []
        for key, (holder, place, _) in self._real.items():
            before, now = self._lent[key], holder.contents()
            if not same(before, now):
                before = _with(before, self._state_made(holder, before, now))
            if not same(before, now):
                found.append(Change(holder, place, before, now, key in self._emptied))
        return found

    def restore(self) -> None:
        """Puts everything back, but for such state."""
        for alias in self._aliases:
            if alias.is_changed:
                alias.put_back()
        for key, (holder, _, real) in self._real.items():
            before, now = self._lent.get(key), holder.contents()
            if before is None or same(before, now):
                holder.put(real)
            else:
                holder.put(_with(real, self._state_made(holder, before, now)))

    def _state_made(self, holder: Holder, before: Contents, now: Contents) -> Contents:
        """What has been put there once and for all, because a second trace must find it: new variables, new layers.

        With these goes what else has been set beside them (`self.built = True`), and whatever a layer has set of its
        own; but for tensors, which each run computes, for what the notebook had anyway, and for counters.
        """
        if isinstance(before, dict) and isinstance(now, dict):
            new = {key: x for key, x in now.items() if before.get(key, _ABSENT) is not x}
            if id(holder.of) not in self._owned and not any(map(self._is_new_state, new.values())):
                return {}
            return {key: x for key, x in new.items() if not self._is_of_each_run(before.get(key), x)}
        known = {id(x) for x in before}
        made = [x for x in now if id(x) not in known and self._is_new_state(x)]
        return set(made) if isinstance(now, set) else made

    def _is_of_each_run(self, before: Any, x: Any) -> bool:
        if type(x) in (int, float):
            return type(before) is type(x)
        return _is_symbolic(x) or id(x) in self.stand_ins or id(x) in self.places

    def _is_new_state(self, x: Any, depth: int = 3) -> bool:
        """Whether `x` is a variable or a layer that the code has made, or holds one."""
        if isinstance(x, Resource):
            return x._uid > self._newest  # a stand-in has the uid of its variable
        if isinstance(x, ll.Module):
            return id(x) not in self.places
        if not isinstance(x, (*CONTAINERS, tuple)) or depth == 0 or id(x) in self.places:
            return False
        return any(self._is_new_state(child, depth - 1) for child in (x.values() if isinstance(x, dict) else x))


def _arrays_read(read: Mapping[str, Any]) -> list[Reached]:
    """The arrays of NumPy's among what is read through objects, and in containers and objects there."""
    met: dict[int, Any] = {}
    waiting = deque((path, x.value if isinstance(x, Pinned) else x) for path, x in read.items())
    found = []
    while waiting and len(met) < MOST:
        path, x = waiting.popleft()
        if isinstance(x, np.ndarray):
            found.append(Reached(path, x))
        elif id(x) not in met and type(x) not in ATOMS:
            met[id(x)] = x
            waiting += [(step.after(path), child) for step, child in children(x)]
    return found


def _step(kind: Any, key: Any) -> Step:
    if type(key) is nest.Attribute:
        return Step("attribute", str(key))
    if kind is dict or kind is list or issubclass(kind, tuple):
        return Step("item", kind._fields.index(key) if hasattr(kind, "_fields") else key)
    return Step("attribute", key)


def _with(contents: Contents, made: Contents) -> Contents:
    """Contents with what has been made."""
    if isinstance(contents, dict) and isinstance(made, dict):
        return {**contents, **made}
    return {*contents, *made} if isinstance(contents, set) else [*contents, *made]


def _is_symbolic(x: Any) -> bool:
    return isinstance(x, Tensor) and type(x) is not Tensor
