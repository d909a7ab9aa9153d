"""Guards of a staged cell: straight-line code that asks whether its inputs are what they were at an earlier call.

The long way looks at the notebook anew: what the names mean, how each input travels, what is one and the same, what is
read through objects, then makes a key of it all. A guard knows what that has led to. Tensors and arrays may be others
of the same type; plain values count by value; of all else it asks whether it is the very same object, and of what can
change in place whether its parts are, so that the long way would come to the same trace. Whatever a guard does not
recognise takes the long way, which decides. The engine's guards (`limelight.staging.guards`) do the same for functions.

A guard keeps nothing alive but plain values, code, and what the pins of the cell keep.
"""

from __future__ import annotations

import enum
import itertools
import types
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import nest
from limelight.core.devices import CPU0
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.staging.guards import is_exchanged
from limelight.staging.key import Call
from limelight.staging.key_parts import ObjectPart, Part, TensorPart, VariablePart
from limelight.staging.value_keys import BY_REPR
from limelight.staging.weak_identity import Bound
from limelight_kernel.inputs.key_orders import KEY as ORDER
from limelight_kernel.inputs.pins import ByValue, Pinned, Pins
from limelight_kernel.inputs.portraits import PLAIN, portrait
from limelight_kernel.inputs.sharing import KEY as SHARING
from limelight_kernel.inputs.written_only import OnlyWritten

HITS: Final = 3
"""From how many hits of a trace on its calls are worth a guard: compiling one takes as long as a few calls."""
MOST_FORMS: Final = 8
"""Ways to call a cell, by the number of positional arguments and the names of the others, that have guards."""
_EACH: Final = 4
"""Guards of one form, the newest asked first."""
_TRIED: Final = 20
_IN_VAIN: Final = 10
"""So many are written for one form, since each call may be another one; one in vain counts for so many."""
_LINES: Final = 2000
_FIXED: Final = (np.generic, type, enum.Enum, np.dtype)  # what never changes; these are small, or kept by a module
_ADDED: Final = frozenset([*PLAIN, Tensor, Variable, np.ndarray])  # in a container that is added to: none is one itself

Inputs = Callable[[tuple[Any, ...], Mapping[str, Any]], "tuple[list[Any], dict[str, Any]] | None"]


class Guard(NamedTuple):
    """`inputs(args, given)`: the payloads of a call's tensors and what each input means, None where it may be another.

    It holds for `names`, as the cell was analysed when it was written.
    """

    inputs: Inputs
    names: object
    entry: Any
    through: dict[str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """A call that has found its trace.

    Args:
        names: the analysis of the cell.
        values: what each input meant.
        sent: the arguments that stood for them.
        entry: the trace.
        call: what it was looked up by.
        positional: the names of the inputs given by position.
        given: those of the inputs given by name.
    """

    names: Any
    values: Mapping[str, Any]
    sent: Mapping[str, Any]
    entry: Any
    call: Call
    positional: tuple[str, ...]
    given: frozenset[str]


class Surroundings(NamedTuple):
    """Where a cell finds its inputs.

    Args:
        space: the names of the notebook.
        hidden: IPython's own among them, which are no inputs.
        candidates: the names that the cell may read.
        history: those that are inputs although they are hidden.
        assigned_first: the names that it assigns before it reads them.
        specs: the types that the line promises.
        pins: what stands for the inputs that are keyed by identity.
        object_reads: what finds what is read through objects.
        writes: the names that the cell assigns.
    """

    space: dict[str, Any]
    hidden: dict[str, Any]
    candidates: Collection[str]
    history: Collection[str]
    assigned_first: Collection[str]
    specs: Mapping[str, TensorSpec]
    pins: Pins
    object_reads: Any
    writes: Collection[str]


class CellGuards:
    """The guards of one staged cell, as long as the shortcuts of its trace cache hold."""

    def __init__(self) -> None:
        self._by_form: dict[Any, tuple[Guard, ...]] = {}
        self._tried: dict[Any, int] = {}
        self._with: object = None

    def of(self, args: tuple[Any, ...], given: Mapping[str, Any], shortcuts: object) -> tuple[Guard, ...]:
        """Those for calls of this form; none where the cache has new `shortcuts` since."""
        return self._by_form.get((len(args), *given), ()) if self._with is shortcuts else ()

    def wanted(self, form: tuple[Any, ...], shortcuts: object) -> bool:
        """Whether another one may be written for calls of this form: none is tried for ever."""
        if self._with is not shortcuts:
            self._by_form, self._tried, self._with = {}, {}, shortcuts
        return self._tried.get(form, 0) < _TRIED and (form in self._tried or len(self._tried) < MOST_FORMS)

    def add(self, found: Found | None, where: Surroundings, through: dict[str, str], form: tuple[Any, ...]) -> None:
        """Writes a guard for calls like this one, if there can be one; `found` is None where there can be none."""
        self._tried[form] = self._tried.get(form, 0) + _IN_VAIN
        try:
            if found is None:
                return
            inputs = _Writer(found, where).write()
        except _NoGuardError:
            return
        self._tried[form] += 1 - _IN_VAIN
        guard = Guard(inputs, found.names, found.entry, through)
        self._by_form[form] = (guard, *self._by_form.get(form, ())[: _EACH - 1])


class _NoGuardError(Exception):
    """There is something in the call that a guard does not know."""


class _Writer:
    """Writes the code of one guard."""

    def __init__(self, found: Found, where: Surroundings) -> None:
        self._found = found
        self._where = where
        self._parts: Iterator[Part] = iter(found.call.key.parts)
        self._counter = itertools.count()
        self._leaves = 0  # of one input so far, as their pins are numbered
        self._lines: list[str] = []
        self._payloads: list[str] = []
        self._containers: list[str] = []
        self._names: dict[str, Any] = {
            "CPU0": CPU0, "Tensor": Tensor, "ndarray": np.ndarray, "array": np.array, "space": where.space,
            "hidden": where.hidden.keys(), "names": where.space.keys(), "added": _ADDED,
        }  # fmt: skip

    def write(self) -> Inputs:
        """The function; raises _NoGuardError."""
        found = self._found
        if SHARING in found.sent:
            raise _NoGuardError
        locals_ = {name: f"v{i}" for i, name in enumerate(found.values)}
        self._presence()
        for i, name in enumerate(found.positional):
            self._lines.append(f"{locals_[name]} = args[{i}]")
            self._positional(name)
        for name, local in locals_.items():
            if name not in found.positional:
                self._lines.append(f"{local} = {'given' if name in found.given else 'space'}[{name!r}]")
        values = f"{{{', '.join([f'{name!r}: {local}' for name, local in locals_.items()])}}}"
        through = self._through(values)
        for name in sorted(found.sent):  # as the engine orders the parts of a key
            if name in locals_:
                self._input(name, locals_[name])
            elif name == ORDER:
                next(self._parts)  # each dictionary is asked for its own
            else:
                self._of_object(through[name], found.sent[name])
        if next(self._parts, None) is not None or len(self._lines) > _LINES:
            raise _NoGuardError
        if len(self._containers) > 1:
            ids = ", ".join([f"id({expression})" for expression in self._containers])
            self._refuse_if(f"len({{{ids}}}) != {len(self._containers)}")
        return self._compiled(values)

    def _compiled(self, values: str) -> Inputs:
        body = "\n".join([f"        {line}" for line in self._lines or ["pass"]])
        code = f"def inputs(args, given):\n    try:\n{body}\n        return [{', '.join(self._payloads)}], {values}\n"
        code += "    except Exception:\n        return None\n"  # the long way raises what there is to raise
        exec(compile(code, "<guard of a staged cell>", "exec"), self._names)  # written here, of our own words
        inputs: Inputs = self._names.pop("inputs")
        return inputs

    # Names

    def _presence(self) -> None:
        """The same names are inputs: the others do not exist, or are IPython's own."""
        where, values = self._where, self._found.values
        others = [name for name in where.candidates if name not in values and name not in where.assigned_first]
        absent = frozenset([name for name in others if name not in where.space])
        hidden = frozenset(others) - absent
        seen = frozenset(values) - frozenset(where.history) - {*self._found.positional, *self._found.given}
        if absent:
            self._refuse_if(f"not names.isdisjoint({self._constant(absent)})")
        if hidden:
            self._refuse_if(f"not hidden >= {self._constant(hidden)}")
        if seen:
            self._refuse_if(f"not hidden.isdisjoint({self._constant(seen)})")

    def _positional(self, name: str) -> None:
        """What the notebook means by an input that is given by position is data still: positions count these."""
        meant = self._where.space.get(name)
        if not isinstance(meant, (Tensor, np.ndarray, np.generic, *PLAIN)):
            raise _NoGuardError
        self._refuse_if(f"type(space[{name!r}]) is not {self._constant(type(meant))}")

    def _through(self, values: str) -> dict[str, str]:
        """What is read through objects, as the long way finds it: the expression of each, by its path."""
        paths = [name for name in self._found.sent if name not in self._found.values and name != ORDER]
        ways = self._where.object_reads.ways
        if not ways:
            return {}
        asked, writes = self._constant(self._where.object_reads), self._constant(self._where.writes)
        self._lines.append(f"through = {asked}({values}, {writes})")
        self._refuse_if(f"len(through) != {len(paths)} or {asked}.ways is not {self._constant(ways)}")
        return {path: f"through[{path!r}]" for path in paths}

    # Inputs

    def _input(self, name: str, expression: str) -> None:
        value, sent = self._found.values[name], self._found.sent[name]
        if isinstance(sent, OnlyWritten):
            self._only_written(expression, value, sent)
        elif name in self._where.specs and not (type(value) is np.ndarray or type(value) is Tensor):
            raise _NoGuardError
        else:
            self._leaves = 0
            self._walk(expression, value, sent, name)

    def _only_written(self, expression: str, value: Any, sent: OnlyWritten) -> None:
        """A container that is only added to: any of its type, with no containers in it that might be other inputs."""
        if sent.nested or self._found.positional:  # whether it is data, and has a position, depends on what it holds
            raise _NoGuardError
        next(self._parts)
        inside = f"{expression}.values()" if isinstance(value, dict) else expression
        self._refuse_if(f"type({expression}) is not {self._constant(type(value))}")
        self._refuse_if(f"not added.issuperset(map(type, {inside}))")
        self._containers.append(expression)

    def _walk(self, expression: str, value: Any, sent: Any, name: str) -> None:
        kind = type(value)
        opened = nest.opened(value)
        if opened is None:
            self._leaf(expression, value, sent, f"{name}#{self._leaves}")
            self._leaves += 1
            return
        if isinstance(sent, Pinned) and _ADDED.issuperset(map(type, opened[2])):
            next(self._parts)
            self._pinned(expression, value, sent, name)
            self._containers.append(expression)
            return
        if kind not in (list, tuple, dict) or type(sent) is not kind or len(sent) != len(value):
            raise _NoGuardError
        self._refuse_if(f"type({expression}) is not {kind.__name__} or len({expression}) != {len(value)}")
        if kind is not tuple:
            self._containers.append(expression)
        keys = range(len(value)) if kind is not dict else sorted(value) if _are_words(value) else None
        if keys is None:
            raise _NoGuardError
        if kind is dict and len(value) > 1:
            self._refuse_if(f"[*{expression}] != {self._constant(list(value))}")
        for key in keys:
            local = f"x{next(self._counter)}"
            self._lines.append(f"{local} = {expression}[{key!r}]")
            self._walk(local, value[key], sent[key], name)

    def _leaf(self, expression: str, value: Any, sent: Any, pin: str) -> None:
        part = next(self._parts, None)
        if isinstance(sent, Pinned):
            self._pinned(expression, value, sent, pin)
        elif isinstance(part, TensorPart):
            self._tensor(expression, value, part)
        elif isinstance(part, VariablePart):
            self._variable(expression, value)
        elif sent is not value or part is None:
            raise _NoGuardError
        elif type(value) in PLAIN:
            self._plain(expression, value)
        elif (isinstance(part, ObjectPart) and not isinstance(part.identity, Bound)) or isinstance(value, _FIXED):
            self._same(expression, value)
            if type(value) is types.FunctionType:
                if (exchanged := is_exchanged(expression, value, self._constant)) is None:
                    raise _NoGuardError
                self._refuse_if(exchanged)
        else:
            raise _NoGuardError

    def _tensor(self, expression: str, value: Any, part: TensorPart) -> None:
        if type(value) is np.ndarray and part.dtype == value.dtype:
            self._refuse_if(f"type({expression}) is not ndarray")
            data, payload = expression, f"array({expression})"  # a copy: the caller may change his own
        elif type(value) is Tensor and value._device is CPU0:
            self._refuse_if(f"type({expression}) is not Tensor or {expression}._device is not CPU0")
            data = payload = f"d{next(self._counter)}"
            self._lines.append(f"{data} = {expression}._data")
            value = value._data
        else:
            raise _NoGuardError
        shape, dtype = repr(tuple(value.shape)), self._constant(value.dtype)
        self._refuse_if(f"{data}.dtype is not {dtype} or {data}.shape != {shape}")
        self._payloads.append(payload)

    def _variable(self, expression: str, value: Any) -> None:
        """The very same: so all are what they were to one another, and to what helpers close over."""
        self._same(expression, value)
        spec = self._constant(value.spec)
        self._refuse_if(f"{expression}._device is not CPU0")
        self._refuse_if(f"{expression}.spec is not {spec} and {expression}.spec != {spec}")
        self._payloads.append(f"{expression}._data")

    def _plain(self, expression: str, value: Any) -> None:
        """By value and type, as a key has it: words tell 0.0 from -0.0, and find NaN."""
        kind, known = type(value), self._constant(value)
        other = f"{expression} != {known}"
        if kind in BY_REPR:
            other = f"repr({expression}) != {repr(value)!r}"
        self._refuse_if(
            f"{expression} is not {known} and (type({expression}) is not {self._constant(kind)} or {other})"
        )

    def _pinned(self, expression: str, value: Any, sent: Pinned, pin: str) -> None:
        """What is keyed by a pin: the very same, that holds what it held."""
        if sent.value is not value or (isinstance(sent, ByValue) and not isinstance(value, np.generic)):
            raise _NoGuardError
        if isinstance(value, np.generic):
            self._same(expression, value)
        elif type(value) is types.FunctionType and (exchanged := is_exchanged(expression, value, self._constant)):
            self._same(expression, value)
            self._refuse_if(exchanged)
        elif portrait(value) is None:
            self._same(expression, value)
        else:
            known, pinned = self._constant(self._where.pins.known), self._constant(sent)
            self._refuse_if(f"{known}({pin!r}, {expression}) is not {pinned}")

    def _of_object(self, expression: str, sent: Any) -> None:
        """What is read through an object: a tensor, a plain value, or a pin, which is another one after a change."""
        part = next(self._parts, None)
        local = f"x{next(self._counter)}"
        self._lines.append(f"{local} = {expression}")
        if isinstance(part, TensorPart):
            self._tensor(local, sent, part)
        elif type(sent) in PLAIN:
            self._plain(local, sent)
        elif type(sent) is Pinned:
            self._refuse_if(f"{local} is not {self._constant(sent)}")
        else:
            raise _NoGuardError

    def _same(self, expression: str, value: Any) -> None:
        if isinstance(value, _FIXED) and not isinstance(value, type):
            self._refuse_if(f"{expression} is not {self._constant(value)}")
            return
        try:
            self._refuse_if(f"{expression} is not {self._constant(weakref.ref(value))}()")
        except TypeError:  # there are no weak references to it, so the trace's key, or the pin, keeps it as well
            self._refuse_if(f"{expression} is not {self._constant(value)}")

    # The code

    def _constant(self, x: Any) -> str:
        name = f"c{next(self._counter)}"
        self._names[name] = x
        return name

    def _refuse_if(self, condition: str) -> None:
        self._lines.append(f"if {condition}: return None")


def _are_words(value: dict[Any, Any]) -> bool:
    """Whether all keys are strings: a 1 and a True would find one another."""
    return all(type(key) is str for key in value)
