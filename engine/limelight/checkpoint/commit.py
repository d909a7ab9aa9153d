"""Gives live objects saved values: all that may fail comes first, so that all are restored or none.

Values are assigned to the variables that there are, at once, whatever is being traced or recorded: so nothing is traced
again, and no tape sees it.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.checkpoint.array_files import Array
from limelight.checkpoint.initial_draws import give_back, has_draws
from limelight.checkpoint.manifest import SavedNode
from limelight.checkpoint.match_plan import Assignment, Plan, Source, described, fits, shown, spec_text
from limelight.checkpoint.object_graph import Value
from limelight.checkpoint.state_protocols import get_state, set_state
from limelight.checkpoint.values import decode
from limelight.core import device_copies, dispatch
from limelight.core.devices import CPU0, Device
from limelight.core.dtypes import DType
from limelight.core.eager import move
from limelight.core.shapes import Shape, compatible
from limelight.core.storage import Storage, UnsettledStorage
from limelight.core.tensor import wrap
from limelight.core.variable import Variable, lift, on_create
from limelight.errors import CheckpointError
from limelight.ops.random._draws import is_state

Spec = tuple[Shape, DType]
_newest: Final[dict[tuple[int, str], tuple[Any, int]]] = {}
"""By id, and name for values: a weak reference, and the number of the latest restore that gave it a value."""
_latest: Final = [0]
"""The largest of these numbers: a restore that is later than all others need not look."""


class Given(NamedTuple):
    """What an object was before a value was assigned to it, and then."""

    before: Spec | None
    after: Spec | None


class Undo:
    """How to give objects back what they had: a step is noted before it is done."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []
        self._storages: list[
            Storage
        ] = []  # of variables, of which there may be ten thousand: two lists make no objects
        self._arrays: list[Any] = []

    def note(self, step: Callable[[], object]) -> None:
        self._steps.append(step)

    def note_value(self, storage: Storage) -> None:
        """Takes note of the value of a variable."""
        self._arrays.append(storage.array)
        self._storages.append(storage)

    def forget(self) -> None:
        """All is done: arrays go in the order in which they came, which is the cheaper one of the two."""
        self._arrays.reverse()  # a list lets go of its last element first
        self._arrays.clear()

    def roll_back(self) -> None:
        """Goes back over all, the last step first."""
        for storage, array in reversed(list(zip(self._storages, self._arrays, strict=False))):
            storage.set(array)
        for step in reversed(self._steps):
            with contextlib.suppress(Exception):  # of somebody else's method; the others still have theirs back
                step()


def newer(target: Any, order: int) -> bool:
    """Whether a restore after number `order` has given `target` its value.

    An attribute and the array that it is have one value: either may have been given it.
    """
    if order >= _latest[0]:
        return False
    entry = _newest.get(_key(target))
    if entry is not None and entry[0]() is _object(target) and entry[1] > order:
        return True
    array = _array_at(target)
    return array is not None and newer(array, order)


def _array_at(target: Any) -> Array | None:
    current = vars(target.owner).get(target.name) if isinstance(target, Value) else None
    return current if isinstance(current, np.ndarray) else None


def carry_out(file: Source, assignments: Sequence[Assignment], order: int, undo: Undo) -> dict[int, Given]:
    """Assigns.

    Args:
        file: what was saved.
        assignments: numbers and live objects.
        order: the number of the restore.
        undo: takes note of what there was; to be rolled back by the caller where this, or what follows, fails.

    Returns:
        What was given to each, by number.

    Raises:
        CheckpointError: a value cannot be read or is not one.
    """
    nodes = file.manifest.nodes
    todo = assignments
    with_arrays = [a for a in todo if nodes[a.number].array]
    loaded: dict[int, Any] = {}
    for a in sorted(with_arrays, key=lambda a: file.place(nodes[a.number].array)):
        array = file.array(nodes[a.number].array, nodes[a.number].dtype)
        if nodes[a.number].kind == "generator" and not is_state(array.ravel()):
            raise CheckpointError(f"{shown(nodes[a.number].path)} is not the state of a generator")
        loaded[a.number] = array
    for a in todo:
        if not nodes[a.number].array:
            loaded[a.number] = decode(nodes[a.number].value, file.value_array)
    stateful = [a for a in todo if nodes[a.number].kind == "state"]
    _set_states(stateful, loaded, nodes, undo)
    _give_back(todo, undo)
    given = {a.number: Given(_spec(a.target), _spec(a.target)) for a in stateful}
    for a in todo:
        if nodes[a.number].kind != "state":
            given[a.number] = _give(a.target, loaded[a.number], undo)
    before = {key: _newest.get(key) for a in todo for key in _keys(a.target)}
    undo.note(functools.partial(_put_back, before))
    _latest[0] = max(_latest[0], order)
    for a in todo:
        for target in (a.target, _array_at(a.target)):
            if target is not None:
                _note(target, order)
    return given


def _set_states(
    assignments: Sequence[Assignment], loaded: Mapping[int, Any], nodes: Sequence[SavedNode], undo: Undo
) -> None:
    """Gives stateful objects their states."""
    for a in assignments:
        try:
            undo.note(functools.partial(set_state, a.target, get_state(a.target)))
            set_state(a.target, loaded[a.number])
        except Exception as error:  # of somebody else's method, which may raise anything
            raise CheckpointError(
                f"{shown(nodes[a.number].path)}, a {type(a.target).__name__}, did not take its saved state, and "
                f"nothing was restored: {type(error).__name__}: {error}"
            ) from error


def _give_back(assignments: Sequence[Assignment], undo: Undo) -> None:
    """Gives generators back what variables' initial values drew: the last first, as it began where another ended."""
    variables = [a.target for a in assignments if isinstance(a.target, Variable) and has_draws(a.target)]
    for variable in sorted(variables, key=lambda variable: variable._uid, reverse=True):
        undo.note(give_back(variable))


def _give(target: Any, value: Any, undo: Undo) -> Given:
    before = _spec(target)
    if isinstance(target, Value):
        undo.note(_attribute_again(target))
        _set_attribute(target, value)
    elif isinstance(target, np.ndarray):
        undo.note(functools.partial(np.copyto, target, target.copy()))
        np.copyto(target, value, casting="unsafe")
    else:
        if value.dtype != target.dtype:  # weights of others, of another width
            value = value.astype(target.dtype)
        if type(target._data) is UnsettledStorage:
            target._data.__class__ = Storage  # type: ignore[assignment]  # of the same layout
        undo.note_value(target._data)
        target._data.set(_payload(value, target._device))
    return Given(before, (value.shape, value.dtype) if isinstance(value, np.ndarray) else None)


def _payload(array: Array, device: Device) -> Any:
    if device is CPU0:
        return array
    with dispatch.fresh_stack():
        return move(wrap(array), device, device_copies.RESTORED)


def _set_attribute(target: Value, value: Any) -> None:
    """Changes lists and dictionaries in place, so that whoever holds them sees it; sets all else."""
    current = vars(target.owner).get(target.name)
    if isinstance(current, list) and isinstance(value, list):
        current[:] = value
    elif isinstance(current, dict) and isinstance(value, dict):
        current.clear()
        current.update(value)
    elif isinstance(current, tuple) and hasattr(current, "_make") and isinstance(value, tuple):
        vars(target.owner)[target.name] = type(current)._make(value)
    else:
        vars(target.owner)[target.name] = value


def _attribute_again(target: Value) -> Callable[[], None]:
    """A function that makes an attribute what it is now."""
    attributes, name = vars(target.owner), target.name
    there, current = name in attributes, attributes.get(name)
    content = current.copy() if isinstance(current, (list, dict)) else None

    def again() -> None:
        if not there:
            attributes.pop(name, None)
            return
        attributes[name] = current
        if isinstance(current, list):
            current[:] = content or []
        elif isinstance(current, dict):
            current.clear()
            current.update(content or {})

    return again


def _spec(target: Any) -> Spec | None:
    if isinstance(target, Value):
        target = target.value
    shape, dtype = getattr(target, "shape", None), getattr(target, "dtype", None)
    return None if shape is None or dtype is None else (tuple(shape), dtype)


def slots(
    file: Source,
    plan: Plan,
    optimizer: Any,
    variable: Variable,
    numbers: Mapping[str, int],
    decided: Callable[[Any], bool],
) -> list[Assignment]:
    """What an optimiser keeps for one variable, made if need be, with what was saved of it.

    Args:
        file: what was saved.
        plan: takes note of slots that do not fit.
        optimizer: the live optimiser.
        variable: the live variable.
        numbers: what was saved of each slot, by name.
        decided: whether a later restore has given a slot its value: then it need not fit.
    """
    nodes = file.manifest.nodes
    wanted = {name: number for name, number in numbers.items() if name in optimizer.slot_names}
    for number in () if decided(variable) else wanted.values():
        if not compatible(file.spec(nodes[number].array, nodes[number].dtype)[0], variable.shape):
            plan.misfits[number] = (
                f"{shown(nodes[number].path)} was saved as {described(file, nodes[number])}, and its variable is "
                f"{spec_text(variable.shape, variable.dtype)} now"
            )
            return []
    if not wanted:
        return []
    with dispatch.fresh_stack(), on_create.override(None), lift.override(None):
        live = optimizer.slots_of(variable)
    assignments = []
    for name, number in wanted.items():
        if decided(live[name]) or fits(file, nodes[number], live[name].shape, live[name].dtype):
            assignments.append(Assignment(number, live[name], nodes[number].path))
            plan.objects[number] = live[name]
        else:
            plan.misfits[number] = (
                f"{shown(nodes[number].path)} was saved as {described(file, nodes[number])}, and the slot is "
                f"{spec_text(live[name].shape, live[name].dtype)} now"
            )
    return assignments


def renew_slots(stale: Sequence[tuple[Any, Variable]], undo: Undo) -> None:
    """Gives slots of optimisers what new ones have, for variables that had none when they were saved.

    Args:
        stale: pairs of an optimiser and a variable.
        undo: takes note of what there was.
    """
    with dispatch.fresh_stack(), on_create.override(None), lift.override(None):
        for optimizer, variable in stale:
            for slot in optimizer.slots_of(variable).values():
                undo.note_value(slot._data)
            optimizer.renew_slots(variable)


def note_begun_anew(optimizer: Any, variable: Variable, order: int) -> None:
    """Takes note that a restore has given a variable its value, and that it had no slots with an optimiser."""
    _latest[0] = max(_latest[0], order)
    key = (id(variable), f"slots of {id(optimizer)}")
    _newest[key] = (weakref.ref(variable, _forgets(key)), order)


def begun_anew(optimizer: Any, variable: Variable, order: int) -> bool:
    """Whether that was a restore after number `order`."""
    entry = _newest.get((id(variable), f"slots of {id(optimizer)}"))
    return entry is not None and entry[0]() is variable and entry[1] > order


def _key(target: Any) -> tuple[int, str]:
    return (id(target.owner), target.name) if isinstance(target, Value) else (id(target), "")


def _object(target: Any) -> Any:
    return target.owner if isinstance(target, Value) else target


def _keys(target: Any) -> list[tuple[int, str]]:
    return [_key(target), _key(_array_at(target))] if isinstance(target, Value) else [_key(target)]


def _note(target: Any, order: int) -> None:
    key = _key(target)
    try:
        _newest[key] = (weakref.ref(_object(target), _forgets(key)), order)
    except TypeError:  # it cannot be referred to weakly: then the latest restore that meets it decides
        _newest.pop(key, None)


def _put_back(before: Mapping[tuple[int, str], tuple[Any, int] | None]) -> None:
    for key, entry in before.items():
        if entry is None:
            _newest.pop(key, None)
        else:
            _newest[key] = entry


def _forgets(key: tuple[int, str]) -> Callable[[Any], None]:
    newest = _newest  # globals may be gone before the object is

    def forget(reference: Any) -> None:
        entry = newest.get(key)
        if entry is not None and entry[0] is reference:
            del newest[key]

    return forget
