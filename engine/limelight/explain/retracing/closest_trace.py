"""Which trace comes closest to a call that has none.

The parts of a key are hashed once for each trace, so that comparing a thousand leaves with a hundred traces is one
NumPy comparison for each trace; only the winner is compared in full.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.explain.retracing.causes import SEVERITY, Cause
from limelight.explain.retracing.key_diff import cause_of, differing, differing_sizes
from limelight.staging.key import Key
from limelight.staging.key_parts import Part, TensorPart
from limelight.staging.signature import Signature

_LOOKED_AT: Final = 16
"""Of how many differing parts of a trace the causes are weighed."""
_NEWEST: Final = 24
_MOST_USED: Final = 8
"""How many traces are compared with a call at most."""
_OTHERS: Final = 4
"""How many traces of another structure are compared in full."""


class Fingerprint(NamedTuple):
    """The hashes of a key's structure and of each part; `known` says which have no unknown sizes, None that all do."""

    structure: int
    parts: np.ndarray[Any, np.dtype[np.int64]]
    known: np.ndarray[Any, np.dtype[np.bool_]] | None

    @staticmethod
    def of_call(key: Key) -> Fingerprint:
        """That of a call, of whose sizes it does not matter whether they are known."""
        hashes = np.fromiter(map(hash, key.parts), np.int64, len(key.parts))
        return Fingerprint(hash(key.structure) if key.structure is not None else len(key.parts), hashes, None)

    @staticmethod
    def of_trace(key: Key) -> Fingerprint:
        known = [not part.has_unknown_sizes for part in key.parts]
        return Fingerprint.of_call(key)._replace(known=None if all(known) else np.array(known))


def closest(traces: Sequence[Any], key: Key, signature: Signature, where: str = "") -> Any:
    """The trace with the fewest, then the least severe differences; None without traces.

    Of those one that was made at the very line of the call, as in a loop; then the most used one. Beside very many
    traces only the newest and the most used are compared, so that a miss takes no longer the more there are.

    Args:
        traces: all that a function has.
        key: of the call.
        signature: of the function.
        where: the line of the call.
    """
    mine = Fingerprint.of_call(key)
    same: list[Any] = []
    others: list[Any] = []
    for trace in _worth_comparing(traces):
        if trace.fingerprint is None:
            trace.fingerprint = Fingerprint.of_trace(trace.key)
        alike = trace.fingerprint.structure == mine.structure and len(trace.fingerprint.parts) == len(mine.parts)
        (same if alike else others).append(trace)
    ranked = _rank_alike(same, key, mine)
    if not ranked or ranked[0][0] > 1:
        ranked += [_rank(trace, key, signature) for trace in _likeliest(others, len(mine.parts))]
    return min(ranked, key=lambda row: (*row[:2], row[-1].where != where, *row[2:-1]))[-1] if ranked else None


def _worth_comparing(traces: Sequence[Any]) -> Sequence[Any]:
    """The newest and the most used, in their order."""
    if len(traces) <= _NEWEST + _MOST_USED:
        return traces
    used = heapq.nlargest(_MOST_USED, traces[:-_NEWEST], key=lambda trace: trace.counter[0])
    return [*sorted(used, key=lambda trace: trace.index), *traces[-_NEWEST:]]


def _rank_alike(traces: Sequence[Any], key: Key, mine: Fingerprint) -> list[tuple[Any, ...]]:
    """Rows (differences, severity, -hits, -index, trace) of those with the fewest differences."""
    counted = []
    for trace in traces:
        differs, known = trace.fingerprint.parts != mine.parts, trace.fingerprint.known
        sure = differs if known is None else differs & known  # parts with unknown sizes may serve all the same
        counted.append((int(np.count_nonzero(sure)) + (trace.key.device is not key.device), differs, trace))
    if any(trace.fingerprint.known is not None for trace in traces):
        counted = _counted_in_full(counted, key)
    fewest = min([count for count, _, _ in counted], default=0)
    return [
        (count, _severity(trace.key, key, differs), -trace.hits, -trace.index, trace)
        for count, differs, trace in counted
        if count == fewest
    ]


def _counted_in_full(counted: list[tuple[int, Any, Any]], key: Key) -> list[tuple[int, Any, Any]]:
    """Of traces with unknown sizes, those that come first: which of their unknown parts differ is asked one by one."""
    exact: list[tuple[int, Any, Any]] = []
    for count, differs, trace in sorted(counted, key=lambda row: (row[0], -row[2].hits, -row[2].index))[:_OTHERS]:
        if len(exact) > 1 and count >= min([row[0] for row in exact]):
            break
        known = trace.fingerprint.known
        opened = [] if known is None else np.flatnonzero(differs & ~known).tolist()
        for i in opened:
            differs[i] = not trace.key.parts[i].covers(key.parts[i])
        exact.append((count + sum([differs[i] for i in opened]), differs, trace))
    return exact


def _severity(before: Key, after: Key, differs: np.ndarray[Any, Any]) -> float:
    places = np.flatnonzero(differs)[:_LOOKED_AT].tolist()
    pairs = [(before.parts[i], after.parts[i]) for i in places]
    return max([_weight(a, b) for a, b in pairs if a != b], default=0)


def _weight(before: Part, after: Part) -> float:
    cause = cause_of(before, after)
    if cause not in (Cause.SHAPE, Cause.DTYPE) or not (
        isinstance(before, TensorPart) and isinstance(after, TensorPart)
    ):
        return SEVERITY[cause]
    # one axis is less than two, and a dtype alone least of all
    return SEVERITY[cause] + len(differing_sizes(before.shape, after.shape)) / 100


def _likeliest(traces: Sequence[Any], leaves: int) -> list[Any]:
    """The few that are worth a full comparison: of about the same size, used most, newest."""
    ranked = sorted(traces, key=lambda trace: (abs(len(trace.key.parts) - leaves), -trace.hits, -trace.index))
    return ranked[:_OTHERS]


def _rank(trace: Any, key: Key, signature: Signature) -> tuple[Any, ...]:
    changes = differing(trace.key, key, signature)
    severity = max([SEVERITY[change.cause] for change in changes], default=0)
    return (len(changes), severity, -trace.hits, -trace.index, trace)
