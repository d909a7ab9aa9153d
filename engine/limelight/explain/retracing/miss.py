"""Why a staged function traced: a record of what differs, from which trace, at what cost, and what to write instead.

A record holds words, numbers and the types of tensors; nothing of the user's is kept alive by it. Nothing here runs
when a call finds its trace.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from limelight.core import dispatch
from limelight.explain.fix import Fix
from limelight.explain.retracing import fixes, restaging, warning
from limelight.explain.retracing import key_diff as changes
from limelight.explain.retracing.closest_trace import closest
from limelight.explain.retracing.fix_context import MOST, Situation, decorator
from limelight.explain.retracing.key_diff import Cause, Change
from limelight.explain.tracing import snapshot
from limelight.staging.cache_history import Ghost
from limelight.staging.key import Key
from limelight.staging.key_parts import ObjectPart, ValuePart
from limelight.staging.tracer import Tracer
from limelight.user_code import call_expression
from limelight.user_code.source_line import Source

_SPELLED = 3


class Difference(NamedTuple):
    """One part of the arguments that differs from those of the closest trace; `fix` is code, empty where none helps."""

    path: str
    before: str
    after: str
    cause: str
    detail: str
    fix: str


class Closest(NamedTuple):
    """The trace that a call came closest to: its number (from 1), where it was made, how many calls used it."""

    number: int
    where: str
    uses: int

    def __str__(self) -> str:
        return f"trace #{self.number} ({self.where}, used {_times(self.uses)})"


@dataclass(frozen=True, slots=True)
class Miss:
    """Why one call traced. `str()` is the whole story in a few sentences.

    `cause` is the slightest-to-greatest `Cause` of all `changes`, or what concerns the call as a whole. `seconds` is
    what tracing took, None for a prediction. `note` are words about the call as a whole, `advice` about what else could
    be done. `made_at` is `time.perf_counter()` in seconds.
    """

    function: str
    where: str
    cause: Cause
    number: int
    changes: tuple[Change, ...] = ()
    closest: Closest | None = None
    fixes: tuple[Fix, ...] = ()
    note: str = ""
    advice: str = ""
    inside: str = ""
    seconds: float | None = None
    created: int = 0
    made_at: float = field(default_factory=time.perf_counter, compare=False)

    def with_cost(self, seconds: float, created: int = 0) -> Miss:
        """This record, with what tracing took and how many variables the function created while it did."""
        return dataclasses.replace(self, seconds=seconds, created=created)

    @property
    def first(self) -> bool:
        """Whether it was the first trace of a function, rather than one that might have been spared."""
        return self.cause in (Cause.FIRST, Cause.REMADE, Cause.RERUN, Cause.EDITED)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Every differing part, in the order of the arguments."""
        code = {path: fix.code for fix in reversed(self.fixes) for path in fix.paths}
        return tuple(
            [
                Difference(
                    c.path, changes.show(c.before), changes.show(c.after), str(c.cause), c.detail, code.get(c.path, "")
                )
                for c in self.changes
            ]
        )

    @property
    def fix(self) -> str:
        """Code, one line or more; empty where there is no other way than to trace."""
        return "\n".join([fix.code for fix in self.fixes])

    @property
    def reason(self) -> str:
        """What has changed, without the rest of the story."""
        if not self.changes:
            return self.note
        spelled = [str(change) for change in self.changes[:_SPELLED]]
        more = len(self.changes) - len(spelled)
        return " and ".join(spelled) + (f", and {more} more" if more else "")

    def __str__(self) -> str:
        again = "" if self.first else " again"
        inside = f" while tracing `{self.inside}`" if self.inside else ""
        return f"`{self.function}` traced{again} at {self.where}{inside}: {self.story}"

    @property
    def story(self) -> str:
        """What `str()` says, but for which function traced where."""
        said = [f"{self.reason}."]
        if self.closest is not None:
            said.append(f"Closest: {self.closest}.")
        if self.created:
            plural = "s" if self.created > 1 else ""
            said.append(f"Its Python code ran twice, since it created {self.created} variable{plural}.")
        if self.seconds is not None:
            said.append(f"Cost {duration(self.seconds)}.")
        if self.advice:
            said.append(self.advice)
        if self.fixes:
            said += [*self._left(), f"Fix: {'; '.join(map(str, self.fixes))}"]
        elif self.cause in fixes.ADVICE and not self.advice:
            said.append(fixes.ADVICE[self.cause])
        return " ".join(said)

    def _left(self) -> list[str]:
        """Whether the fixes leave something that differs, which makes a trace by itself."""
        mended = {path for fix in self.fixes for path in fix.paths}
        left = [f"`{change.path}`" for change in self.changes if change.path not in mended]
        if not left:
            return []
        more = [f"{len(left) - _SPELLED} more"] if len(left) > _SPELLED else []
        names = " and ".join([*left[:_SPELLED], *more])
        return [f"The fix leaves {names}: another value there traces again."]


def diagnose(function: Any, key: Key, stack: Sequence[Source]) -> Miss:
    """Why `function` has no trace for `key`. To be called before tracing; `stack` is where the call is made."""
    _look_up_names(key)
    where = str(stack[0]) if stack else "a library thread"
    entries = tuple(function.trace_cache)
    found = closest(entries, key, function._signature, where)
    alone = found is None
    record = _without_traces(function, key, where) if alone else _compared(function, key, where, entries, found)
    tracers = [one.name for one in dispatch.stack() if isinstance(one, Tracer)]
    return dataclasses.replace(record, inside=tracers[-1]) if tracers else record


def _look_up_names(key: Key) -> None:
    """Has the objects of a call name themselves while they are sure to live."""
    for part in key.parts:
        if type(part) is ObjectPart:
            part.identity.label  # noqa: B018  # found on first use


def warn_if_retracing(function: Any) -> None:
    """To be called once after each call that traced: warns when most calls do, with the reason of the latest."""
    misses = function.trace_cache.history.misses
    if len(function._in_progress) < 2:  # a recursion's inner calls are part of one call, not calls that could be spared
        warning.warn(function, str(misses[-1]) if misses else "")


def _without_traces(function: Any, key: Key, where: str) -> Miss:
    history = function.trace_cache.history
    number = history.made + 1
    around = next((one for one in reversed(function._in_progress) if one != key), None)
    if around is not None:
        return _within_itself(function, around, key, where, number)
    if history.cleared:
        return _cleared(function, key, where)
    before = restaging.before(function)
    if before is None:
        return Miss(function.name, where, Cause.FIRST, number, note="first call")
    if before.same_code:
        note, advice = _made_anew(function, before)
        cause = Cause.FIRST if before.owner else Cause.REMADE
        return Miss(function.name, where, cause, number, note=note, advice=advice)
    cause = Cause.EDITED if before.edited else Cause.RERUN
    what = "with other code" if before.edited else "unchanged"
    note = f"first call since it was defined again, {what} (before: {before.where}), which makes an empty cache"
    return Miss(function.name, where, cause, number, note=note)


def _within_itself(function: Any, around: Key, key: Key, where: str, number: int) -> Miss:
    """A function that calls itself while its first trace is made."""
    differing = changes.differing(around, key, function._signature)
    cause = max([change.cause for change in differing], key=changes.SEVERITY.__getitem__, default=Cause.FIRST)
    sealed = tuple([changes.sealed(change) for change in differing])
    note = "" if sealed else "first call"
    return Miss(
        function.name, where, cause, number, sealed, note=note, advice="A recursion has a trace for each level."
    )


def _made_anew(function: Any, before: restaging.Before) -> tuple[str, str]:
    """What is said of the first call of a function whose definition has been staged before, and the advice."""
    if before.owner:
        note = f"first call for this {before.owner} object, since each has traces of its own; "
        note += f"`{before.where.function}` ({before.where}) was traced for others {_times(before.staged)} before"
        advice = f"Make the {before.owner} object once, before the loop, where one will do."
        return note, advice if before.lost > 1 else ""
    note = f"first call of a newly staged function; its definition ({before.where}) was staged"
    note = f"{note} and traced {_times(before.staged)} before"
    if before.staged == 1:
        return note, ""
    return note, f"Stage the function once, before the loop, and call that one{_taken_in(function)}."


def _taken_in(function: Any) -> str:
    """Which numbers from around a function would have to become arguments, if it were staged only once."""
    taken = [x.name for x in snapshot.take(function.python_function, (), ()).values() if x.is_number and x.is_name]
    names = list(dict.fromkeys(taken))
    said = ", ".join([f"`{name}`" for name in names[:_SPELLED]])
    return f"; a trace keeps the first value of {said}: make an argument of what changes" if names else ""


def _cleared(function: Any, key: Key, where: str) -> Miss:
    """There were traces, and the cache was cleared."""
    history = function.trace_cache.history
    lost = function.trace_cache.lost(key)
    if lost is not None:
        return _lost(function, lost, where)
    note = "the cache was cleared; no trace in it was for these arguments"
    return Miss(function.name, where, Cause.CLEARED, history.made + 1, note=note)


def _lost(function: Any, lost: Ghost, where: str) -> Miss:
    """There was a trace for these arguments."""
    cache, number = function.trace_cache, function.trace_cache.history.made + 1
    trace = Closest(lost.number, lost.where, lost.uses)
    if lost.why == "cleared":
        note = f"the cache was cleared; it held {trace} for these arguments"
        return Miss(function.name, where, Cause.CLEARED, number, note=note)
    note = f"its {trace} for these arguments was evicted, since the cache holds {_traces(cache.size)} at most"
    wanted = cache.history.evicted() | {hash(entry.key) for entry in cache}
    enough = decorator(function.python_function, function._options | {"cache_size": len(wanted)})
    return Miss(function.name, where, Cause.EVICTED, number, note=note, fixes=(Fix(enough, "", ()),))


def _compared(function: Any, key: Key, where: str, entries: Sequence[Any], found: Any) -> Miss:
    """There are traces, for other arguments."""
    history = function.trace_cache.history
    number = history.made + 1
    signature = function._signature
    differing = changes.differing(found.key, key, signature, found.paths)
    if not differing:
        note = "the trace for these arguments captured a tensor of an enclosing function whose trace has ended"
        return Miss(function.name, where, Cause.STALE, number, closest=closest_to(found), note=note)
    lost = function.trace_cache.lost(key)
    if lost is not None:
        return _lost(function, lost, where)
    cause = max([change.cause for change in differing], key=changes.SEVERITY.__getitem__)
    names = frozenset([function.name])
    site = call_expression.find(signature, names, function)
    alike = (len(found.key.parts), found.key.structure) == (len(key.parts), key.structure)
    situation = Situation(
        function.name,
        signature,
        function._options,
        entries,
        key,
        found.paths if alike else (),  # no fix needs those of another structure
        site,
        "" if found.where == where else found.where,
        function.python_function,
        {},
        any(isinstance(one, Tracer) for one in dispatch.stack()),
    )
    mended = tuple(fixes.find(differing, situation))
    advice = fixes.advice(differing, situation) or _opened(function, key, differing)
    differing[:MOST] = map(_told, differing[:MOST])
    sealed = tuple([changes.sealed(change) for change in differing])
    return Miss(function.name, where, cause, number, sealed, closest_to(found), mended, advice=advice)


def _told(change: Change) -> Change:
    """`change`, where it is one of long texts that begin alike, with the place where they differ."""
    before, after = change.before, change.after
    if not (isinstance(before, ValuePart) and isinstance(after, ValuePart)):
        return change
    texts = (before.value, after.value)
    if not (type(texts[0]) is type(texts[1]) and type(texts[0]) in (str, bytes)):
        return change
    if changes.show(before) != changes.show(after):
        return change
    at, end = 0, min(map(len, texts))
    while at < end:  # halving, since the texts may be long
        middle = (at + end + 1) // 2
        at, end = (middle, end) if texts[0][:middle] == texts[1][:middle] else (at, middle - 1)
    ends = [repr(text[at : at + MOST]) if at < len(text) else "its end" for text in texts]
    return change._replace(note=f"from character {at} on: {ends[0]} -> {ends[1]}")


def _opened(function: Any, key: Key, differing: Sequence[Change]) -> str:
    """With `reduce_retracing`, which sizes the new trace has open."""
    wider = function._relax(key)
    if wider == key:
        return ""
    paths = function._signature.paths(wider.structure, len(wider.parts))
    changed = {change.path for change in differing}
    said = [f"`{path}` {changes.show(part)}" for path, part in zip(paths, wider.parts, strict=True) if path in changed]
    return f"The new trace takes any size there: {' and '.join(said[:_SPELLED])}."


def closest_to(entry: Any) -> Closest:
    """An entry of a cache, for sentences."""
    return Closest(entry.index + 1, entry.where, entry.hits + 1)


def _traces(count: int) -> str:
    return "1 trace" if count == 1 else f"{count:,} traces"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def duration(seconds: float) -> str:
    """Seconds as people say them: "38 ms"."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.1f} ms"
