"""Why a staged function has no trace for a call: compares the call with the closest trace, and makes a `Miss` of it.

Diagnosed before tracing, from keys alone; nothing here runs when a call finds its trace. The levels of a recursion are
one call to the warning, and each level is explained by the one around it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Final

from limelight.core import dispatch
from limelight.explain.retracing import fixes, restaging
from limelight.explain.retracing.advice import advice_on
from limelight.explain.retracing.causes import SEVERITY, Cause
from limelight.explain.retracing.closest_trace import closest
from limelight.explain.retracing.fix_context import MOST, FixContext, restaged
from limelight.explain.retracing.helper_sizes import are_seen
from limelight.explain.retracing.key_diff import Change, differing, sealed, show
from limelight.explain.retracing.sentence import Closest, Miss, times
from limelight.explain.retracing.suggest_signature import number_needed
from limelight.explain.tracing import snapshot
from limelight.staging.key import Key
from limelight.staging.key_parts import ObjectPart, ValuePart
from limelight.staging.trace_cache import Ghost
from limelight.staging.tracer import Tracer
from limelight.user_code import call_expression
from limelight.user_code.source_line import Source

_SPELLED: Final = 3


def diagnose(function: Any, key: Key, stack: Sequence[Source]) -> Miss:
    """Why `function` has no trace for `key`. To be called before tracing; `stack` is where the call is made."""
    _look_up_names(key)
    where = str(stack[0]) if stack else "a library thread"
    traces = tuple(function.trace_cache)
    nearest = closest(traces, key, function._signature, where)
    if nearest is None:
        record = _without_traces(function, key, where)
    else:
        record = _compared(function, key, where, traces, nearest)
    tracers = [one.name for one in dispatch.stack() if isinstance(one, Tracer)]
    line = stack[0] if stack else None
    return dataclasses.replace(record, line=line, inside=tracers[-1] if tracers else "")


def _look_up_names(key: Key) -> None:
    """Has the objects of a call name themselves while they are sure to live."""
    for part in key.parts:
        if type(part) is ObjectPart:
            part.identity.label  # noqa: B018  # found on first use


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
    changes = differing(around, key, function._signature)
    cause = max([change.cause for change in changes], key=SEVERITY.__getitem__, default=Cause.FIRST)
    kept = tuple([sealed(change) for change in changes])
    note = "" if kept else "first call"
    return Miss(function.name, where, cause, number, kept, note=note, advice="A recursion has a trace for each level.")


def _made_anew(function: Any, before: restaging.Before) -> tuple[str, str]:
    """What is said of the first call of a function whose definition has been staged before, and the advice."""
    if before.owner:
        note = f"first call for this {before.owner} object, since each has traces of its own; "
        note += f"`{before.where.function}` ({before.where}) was traced for others {times(before.staged)} before"
        advice = f"Make the {before.owner} object once, before the loop, where one will do."
        return note, advice if before.lost > 1 else ""
    note = f"first call of a newly staged function; its definition ({before.where}) was staged"
    note = f"{note} and traced {times(before.staged)} before"
    if before.staged == 1:
        return note, ""
    return note, f"Stage the function once, before the loop, and call that one{_numbers_from_around(function)}."


def _numbers_from_around(function: Any) -> str:
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
    size = "1 trace" if cache.size == 1 else f"{cache.size:,} traces"
    note = f"its {trace} for these arguments was evicted, since the cache holds {size} at most"
    wanted = cache.history.evicted() | {hash(entry.key) for entry in cache}
    enough = restaged(function.python_function, function._options | {"cache_size": len(wanted)})
    return Miss(function.name, where, Cause.EVICTED, number, note=note, fixes=(enough,))


def _compared(function: Any, key: Key, where: str, traces: Sequence[Any], nearest: Any) -> Miss:
    """There are traces, for other arguments.

    Args:
        function: the staged one.
        key: of the call.
        where: the line of the call.
        traces: all that the function has.
        nearest: the one of these that the call is compared with.
    """
    history = function.trace_cache.history
    number = history.made + 1
    changes = differing(nearest.key, key, function._signature, nearest.paths)
    if not changes and nearest.deleted:
        said = " and ".join([f"`{name}`" for name in nearest.deleted[:_SPELLED]])
        note = f"the trace for these arguments uses {said}, a variable that has been deleted"
        advice = "A trace means the very variables that it was made with: keep them and write `v.assign(...)`."
        return Miss(function.name, where, Cause.DELETED, number, closest=Closest.of(nearest), note=note, advice=advice)
    if not changes and nearest.serves_once:
        note = f"the trace for these arguments {nearest.serves_once} and so served that call alone"
        return Miss(function.name, where, Cause.ONCE, number, closest=Closest.of(nearest), note=note)
    if not changes:
        note = "the trace for these arguments captured a tensor of an enclosing function whose trace has ended"
        return Miss(function.name, where, Cause.STALE, number, closest=Closest.of(nearest), note=note)
    lost = function.trace_cache.lost(key)
    if lost is not None:
        return _lost(function, lost, where)
    cause = max([change.cause for change in changes], key=SEVERITY.__getitem__)
    context = _context(function, key, where, traces, nearest)
    opened = _opened_sizes(function, key, changes)
    shown = [*map(_with_first_difference, changes[:MOST]), *changes[MOST:]]
    kept = tuple([sealed(change) for change in shown])
    return _with_fixes(Miss(function.name, where, cause, number, kept, Closest.of(nearest)), changes, context, opened)


def _with_fixes(miss: Miss, changes: Sequence[Change], context: FixContext, opened: str) -> Miss:
    """`miss` with what to do, as far as the traces tell.

    Args:
        miss: what differs.
        changes: the same, with the user's values.
        context: what fixes are made from.
        opened: which sizes the new trace has open, in words.
    """
    mended, need = tuple(fixes.find(changes, context)), None
    if not mended and not opened:
        need = number_needed(changes, context)
    advice = advice_on(changes, context) or opened or (str(need) if need is not None else "")
    is_open = any(change.cause is Cause.SHAPE for change in changes) and not are_seen(context.traces, context.key)
    once_traced = functools.partial(_once_traced, miss, changes, context, opened) if is_open else None
    return dataclasses.replace(miss, fixes=mended, advice=advice, undecided=once_traced)


def _once_traced(miss: Miss, changes: Sequence[Change], context: FixContext, opened: str, trace: Any) -> Miss:
    """The same once the call has been traced, too; no closure, which would refer to itself and keep the function."""
    return _with_fixes(miss, changes, context._replace(traces=(*context.traces, trace)), opened)


def _context(function: Any, key: Key, where: str, traces: Sequence[Any], nearest: Any) -> FixContext:
    """What fixes are made from; the arguments are those of `_compared`."""
    signature = function._signature
    alike = (len(nearest.key.parts), nearest.key.structure) == (len(key.parts), key.structure)
    return FixContext(
        signature,
        function._options,
        traces,
        key,
        nearest.paths if alike else (),  # no fix needs those of another structure
        call_expression.find(signature, frozenset([function.name]), function),
        "" if nearest.where == where else nearest.where,
        function.python_function,
        {},
        any(isinstance(one, Tracer) for one in dispatch.stack()),
        function.name,
        nearest,
    )


def _with_first_difference(change: Change) -> Change:
    """`change`, where it is one of long texts that begin alike, with the place where they differ."""
    before, after = change.before, change.after
    if not (isinstance(before, ValuePart) and isinstance(after, ValuePart)):
        return change
    texts = (before.value, after.value)
    if not (type(texts[0]) is type(texts[1]) and type(texts[0]) in (str, bytes)):
        return change
    if show(before) != show(after):
        return change
    at, end = 0, min(map(len, texts))
    while at < end:  # halving, since the texts may be long
        middle = (at + end + 1) // 2
        at, end = (middle, end) if texts[0][:middle] == texts[1][:middle] else (at, middle - 1)
    ends = [repr(text[at : at + MOST]) if at < len(text) else "its end" for text in texts]
    return change._replace(note=f"from character {at} on: {ends[0]} -> {ends[1]}")


def _opened_sizes(function: Any, key: Key, changes: Sequence[Change]) -> str:
    """With `reduce_retracing`, which sizes the new trace has open."""
    wider = function._relax(key)
    if wider == key:
        return ""
    paths = function._signature.paths(wider.structure, len(wider.parts))
    changed = {change.path for change in changes}
    said = [f"`{path}` {show(part)}" for path, part in zip(paths, wider.parts, strict=True) if path in changed]
    return f"The new trace takes any size there: {' and '.join(said[:_SPELLED])}."
