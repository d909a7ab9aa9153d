"""What became a constant of a trace, and is it still the same?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, Final, NamedTuple

from limelight.explain.may_be_tensor import obstacle
from limelight.explain.story import Contrast, Place, Story, fixes_in
from limelight.explain.subject import called_by, staged_functions
from limelight.explain.tracing import snapshot as snapshots
from limelight.explain.tracing.side_effects import SideEffect, not_known, side_effects
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.function import Function
from limelight.staging.key_parts import ObjectPart
from limelight.user_code.source_line import Source

_SPELLED: Final = 4
_GONE: Final = "no longer found"
_WRITES: Final = ("attribute write", "global write", "closure write")
_REFERRED: Final = ("tensor", "variable", "object")


class Value(NamedTuple):
    """A value that a trace has taken from under a name outside its arguments.

    `kind`: "constant", "function" (a helper, whose code the trace has run), or, listed only when the name now stands
    for another one, "tensor", "variable" or "object". `then` and `now` are the values in words, `trace` the number of
    the trace (from 1), `line` where its Python code read it, `fix` what to write instead.
    """

    name: str
    where: str
    kind: str
    then: str
    now: str
    changed: bool
    trace: int
    line: Source
    fix: str

    def __str__(self) -> str:
        return str(self.to_story())

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card; what to write instead where the value has changed."""
        became = "has changed, and the trace still has the old value" if self.changed else "is a constant of the trace"
        remedy = self.fix if self.changed else ""
        return Story(
            "baked value",
            f"`{self.name}` {became}",
            (self.where, self.kind),
            contrasts=(Contrast(f"`{self.name}` ({self.where})", self.then, self.now, f"trace #{self.trace}"),),
            places=Place.of("line", self.line),
            remedy=remedy,
            fixes=fixes_in(remedy),
        )


@dataclass(frozen=True)
class BakedIn:
    """What the traces of a function have taken in: `records` are `Value` records, those that have changed first.

    `drawn` are the `SideEffect` records of random numbers of the host and of clocks, which end up in traces, too;
    `unknown` the functions whose source cannot be read, by their first lines.

    >>> import limelight as ll
    >>> rates = [0.5]
    >>> step = ll.function(lambda x: x * rates[0], name="step")
    >>> y = step(ll.constant(2.0))
    >>> found = ll.explain.baked(step)
    >>> found.records[0].then, found.changed
    ('0.5', ())
    """

    function: str
    records: tuple[Value, ...]
    drawn: tuple[SideEffect, ...] = ()  # random numbers of the host and times, of which only the code is known
    unknown: tuple[Source, ...] = ()

    @property
    def changed(self) -> tuple[Value, ...]:
        """Those that are another value now than the trace has."""
        return tuple([record for record in self.records if record.changed])

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each value that has changed."""
        return tuple([record.to_story() for record in self.changed])

    def __str__(self) -> str:
        told = [f"  {one}" for one in self.drawn]
        if told:
            told = ["Drawn or read while tracing, and baked in as well (see ll.explain.side_effects):", *told]
        told += not_known("reads", self.unknown)
        if not self.records and self.unknown and not self.drawn:
            return "\n".join(told)
        if not self.records and told:
            return "\n".join([f"`{self.function}` has no value of a name baked in.", *told])
        if not self.records:
            return f"`{self.function}` has no values baked in: its traces depend on arguments, tensors and variables."
        said = f"{len(self.records)} values are" if len(self.records) > 1 else "1 value is"
        stale = f", {len(self.changed)} of them out of date" if self.changed else ""
        stale = ", and out of date" if stale and len(self.records) == 1 else stale
        lines = [f"{'≠' if record.changed else ' '} {record}" for record in self.records]
        return "\n".join([f"{said} baked into `{self.function}`{stale}:", *lines, *told])

    __repr__ = __str__


def baked(F: Function) -> BakedIn:
    """The globals, closure values and attributes that became constants of `F`'s traces, as they were and as they are.

    A trace reads such a value once, while it is made; calls that find the trace do not look again. Values that have
    changed since are marked, with what to write instead. Tensors and variables are used by reference: they are listed
    only when the name stands for another one now. Found by reading the source of `F` and of the user's functions that
    it calls, so a name on a branch that was not taken is listed, too; names of installed packages are not. Where a
    source cannot be read, it says that this is not known. For a method of a class, the traces of all its living
    instances. Raises ArgumentError for anything but a staged function.

    >>> import limelight as ll
    >>> settings = {"rate": 0.5}
    >>> @ll.function
    ... def step(x):
    ...     return x * settings["rate"]
    >>> y = step(ll.constant(2.0))
    >>> settings["rate"] = 0.25
    >>> [(v.name, v.then, v.now) for v in ll.explain.baked(step).changed]
    [("settings['rate']", '0.5', '0.25')]
    """
    values: dict[tuple[Any, ...], Value] = {}
    known = side_effects(F) if any(len(one.trace_cache) for one in staged_functions("baked", F)) else None
    effects = () if known is None else known.records
    written = {(effect.what, effect.line.function): effect for effect in effects if effect.kind in _WRITES}
    for one in staged_functions("baked", F):
        for entry in one.trace_cache:
            for value in _of_entry(one, entry, written):
                values.setdefault((value.name, value.then, value.now, value.line), value)
    records = tuple(sorted(values.values(), key=lambda v: (not v.changed, v.trace)))
    drawn = tuple([one for one in effects if one.kind in ("host randomness", "time")])
    return BakedIn(F.name, records, drawn, () if known is None else known.unknown)


def _of_entry(
    function: Function, entry: ConcreteFunction, written: Mapping[tuple[str, str], SideEffect]
) -> list[Value]:
    """The values of one trace; what the function has `written` itself, by name and function, is state, no argument."""
    now = snapshots.take(function.python_function, entry.paths, entry.key.parts)
    by_name = {value.name: value for value in now.values()}
    gone = any(isinstance(part, ObjectPart) and part.identity.target() is None for part in entry.key.parts)
    values = []
    found = [(then, now.get(key) or by_name.get(then.name)) for key, then in entry.baked.items()]  # if edited, by name
    differ = [then for then, current in found if current is None or current.token != then.token]
    told = [then.attribute for then in differ if then.attribute is not None]
    for then, current in found:
        if current is None and gone:
            continue  # no call leads to this trace again
        changed = current is None or current.token != then.token
        attributes = [] if current is None else then.changes(current)
        if attributes and all(one in told for one in attributes):
            continue  # by their own names
        if then.kind in _REFERRED and not changed:
            continue
        text = _GONE if current is None else current.text
        still = changed and current is not None and then.kind == current.kind == "object" and _is_same(then, current)
        if changed and text == then.text:
            text = f"{text} with other contents" if still else f"another {text.removeprefix('a ')}"
        own = written.get((then.name, then.line.function))
        fix = own.instead if own is not None and then.is_number else _fix(function, then)
        if still:
            fix = (
                f"{called_by(function)}.clear_cache() after a change; or pass what the code reads of it as an argument"
            )
        values.append(
            Value(then.name, then.where, then.kind, then.text, text, changed, entry.index + 1, then.line, fix)
        )
    return values


def _is_same(then: snapshots.Baked, now: snapshots.Baked) -> bool:
    """Whether two records are of one object, which holds something else now."""
    return bool(then.token[0] == now.token[0])


def _call(function: Function, value: snapshots.Baked) -> str:
    """A call of `function` with one argument more, in the words of whoever calls it as far as they are known."""
    names = [word for word in re.findall(r"\w+", value.name) if word.isidentifier() and not iskeyword(word)]
    argument = names[-1] if value.root == "local" else value.name.replace("'", '"')  # of `self.rate` the last name
    parameters = [name for name in function._signature.positional if name not in ("self", "cls")]
    spelled = ", ".join(parameters) if 0 < len(parameters) <= _SPELLED and argument not in parameters else "..."
    is_inexact = value.kind == "constant" and value.token[0] in (float, complex, "buffer")
    return f"{called_by(function)}({spelled}, {f'll.constant({argument})' if is_inexact else argument})"


def _may_be_variable(F: Function, value: snapshots.Baked) -> bool:
    """Whether a variable would do in its place: an array would, a number that decides or counts something would not."""
    if value.is_fixed:
        return False
    if value.token[0] == "array":
        return True
    if value.token[0] not in (int, float, complex):
        return False
    hindrance = obstacle(F.python_function, value.name, bool(F._options["autograph"]))
    own = getattr(F.python_function, "__code__", None)
    is_own = own is not None and value.line.function == own.co_name  # else a helper's, whose source is not at hand
    return hindrance is None if is_own else value.token[0] is not int


def _fix(F: Function, value: snapshots.Baked) -> str:
    function = called_by(F)
    passed = f"pass it as an argument, {_call(F, value)}"
    if value.kind == "function":
        return f"{function}.clear_cache(), or {passed}"
    if value.kind == "tensor":
        return f"{passed}; or keep it in a variable and write `{value.name}.assign(...)`"
    if value.kind in ("variable", "object"):
        return f"{passed}; or {function}.clear_cache()"
    if value.token[0] == "environment":
        return f"read it outside, and pass the value as an argument, {function}(..., value)"
    if value.token[0] == "buffer":
        return passed if not value.text.startswith("bytearray") else passed.replace("ll.constant(", "bytes(")
    if value.token[0] in (float, complex):
        passed = f"{passed} (a plain number makes a trace for each value)"
    if _may_be_variable(F, value):
        return f"{passed}; or make it a variable, `{value.name} = ll.Variable({_literal(value)})`, and assign to that"
    return passed if value.is_number else f"{passed}: another value then makes another trace"


def _literal(value: snapshots.Baked) -> str:
    return "..." if value.token[0] == "array" else value.text
