"""Why did it trace again?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple

from limelight.explain.retracing.causes import SEVERITY, Cause
from limelight.explain.retracing.sentence import Miss, duration
from limelight.explain.story import SPELLED, Story
from limelight.explain.subject import staged_functions
from limelight.explain.tracing.baked import Value, baked
from limelight.staging.function import Function

_WIDTH: Final = 80
_NARROW: Final = 21


class Group(NamedTuple):
    """Traces with one cause: how many, what they took in all, and the latest of them.

    `others` are the changes elsewhere than in the latest: of another axis, which a fix frees, too.
    """

    argument: str
    cause: str
    traces: int
    seconds: float
    latest: Miss
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Retrace:
    """Why a function traced, each time it did: `records` are `Miss` records, the newest last.

    `str()` is the story of the newest, also shown as the value of a cell, with the `table()` of all where others had
    other causes. `unseen` are the globals, closure values and attributes that have changed since, for which no call
    traces (`explain.baked`).

    >>> import limelight as ll
    >>> double = ll.function(lambda x: x + x)
    >>> y = double(ll.ones(3)), double(ll.ones(4))
    >>> len(ll.explain.retrace(double).records)
    2
    """

    function: str
    records: tuple[Miss, ...]
    unseen: tuple[Value, ...] = ()

    def __repr__(self) -> str:
        return str(self)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The traces by argument and cause, the costliest group first."""
        rows = sorted(((_argument(m), str(m.cause), m) for m in self.records), key=lambda row: row[:2])
        groups = []
        for (argument, cause), members in groupby(rows, key=lambda row: row[:2]):
            misses = [miss for _, _, miss in members]
            seconds = sum(miss.seconds or 0.0 for miss in misses)
            latest = max(misses, key=lambda m: m.made_at)
            groups.append(Group(argument, cause, len(misses), seconds, latest, _elsewhere(latest, misses)))
        return tuple(sorted(groups, key=lambda g: -g.seconds))

    def table(self) -> str:
        """One line for each argument and cause, the costliest first, at most 80 columns wide."""
        if not self.records:
            return str(self)
        head = ("traces", "cost", "argument", "cause", "latest")
        rows = [(str(g.traces), duration(g.seconds), g.argument, g.cause, _change(g.latest)) for g in self.groups]
        widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
        lines = [_line(row, widths) for row in (head, *rows)]
        if self.unseen:
            names = ", ".join([value.name for value in self.unseen])
            lines.append(_cut(f"changed since, without a trace: {names}", _WIDTH))
        return "\n".join(lines)

    def __str__(self) -> str:
        if not self.records:
            return f"`{self.function}` has not traced yet: call it once, and the trace is explained here."
        groups = self.groups
        newest = next(group for group in groups if group.latest is self.records[-1])
        changed = [f"Changed since, without a trace: {value}" for value in self.unseen]
        others = [
            group for group in groups if group is not newest and SEVERITY[Cause(group.cause)] < SEVERITY[Cause.FIRST]
        ]
        if not others:
            return "\n".join([str(_story(newest)), *changed])
        count = f"That is the newest; {len(self.records):,} traces have {len(groups)} causes:"
        return "\n".join([str(_story(newest)), *changed, count, replace(self, unseen=()).table()])

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each argument and cause, the costliest first, and one for each value that no call sees."""
        return (*map(_story, self.groups), *[value.to_story() for value in self.unseen])


def retrace(F: Function) -> Retrace:
    """Why `F`, a function made by `ll.function`, traced: each time it did, up to the thousand newest.

    For a staged method of a class these are the traces of all its living instances. Raises ArgumentError for anything
    but a staged function.

    >>> import limelight as ll
    >>> @ll.function
    ... def double(x):
    ...     return x + x
    >>> for n in (3, 4):
    ...     y = double(ll.ones((n,)))
    >>> difference = ll.explain.retrace(double).records[-1].differences[0]
    >>> difference.path, difference.before, difference.after
    ('x', 'f32[3]', 'f32[4]')
    >>> difference.fix
    '@ll.function(input_signature=[ll.TensorSpec((None,), "float32")])'
    """
    functions = staged_functions("retrace", F)
    records = [record for one in functions for record in tuple(one.trace_cache.history.misses)]
    return Retrace(F.name, tuple(sorted(records, key=lambda record: record.made_at)), baked(F).changed)


def _story(group: Group) -> Story:
    """That of the latest trace, with the count of all."""
    story = group.latest.to_story()
    about = ", ".join([f"`{group.argument}`", group.cause] if group.argument else [group.cause])
    total = f"{group.traces} traces for this reason ({about}) cost {duration(group.seconds)} in all."
    if group.others:
        total += f" Others: {'; '.join(group.others[:SPELLED])}."
    repeated = group.traces > 1 and not group.latest.first
    return replace(story, seconds=group.seconds, count=group.traces if repeated else 1, total=total if repeated else "")


def _argument(miss: Miss) -> str:
    """The argument that a trace is put down to: that of the greatest change."""
    return next((change.path for change in miss.changes if change.cause is miss.cause), "")


def _elsewhere(latest: Miss, misses: Sequence[Miss]) -> tuple[str, ...]:
    """The changes of other traces that are not where the latest changed, one for each place."""
    places: dict[str, str] = {}
    for miss in (latest, *misses):
        one = next((one for one in miss.differences if one.cause == miss.cause), None)
        if one is not None and one.detail.startswith("axis "):
            axes = ", ".join(re.findall(r"axis \d+", one.detail))
            places.setdefault(axes, f"{one.before} -> {one.after} ({one.detail})")
    return tuple(places.values())[1:]


def _change(miss: Miss) -> str:
    change = next((one for one in miss.differences if one.cause == miss.cause), None)
    return f"{change.before} -> {change.after}" if change else miss.reason


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(row[:2], widths, strict=False)]
    narrow = [min(width, _NARROW) for width in widths[2:4]]
    words = [_cut(cell, width).ljust(width) for cell, width in zip(row[2:4], narrow, strict=True)]
    return _cut("  ".join([*numbers, *words, row[-1]]).rstrip(), _WIDTH)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
