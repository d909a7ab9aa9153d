"""Which trace comes closest to a call that has none.

The parts of a key are hashed once for each trace, so that comparing a thousand leaves with a hundred traces is one
NumPy comparison for each trace; only the winner is compared in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.staging.cache import part_covers
from limelight.staging.changes import SEVERITY, Cause, Part, cause_of, differing, differing_sizes
from limelight.staging.signature import Key, Signature

_LOOKED_AT: Final = 16
"""Of how many differing parts of a trace the causes are weighed."""
_OTHERS: Final = 4
"""How many traces of another structure are compared in full."""


class Fingerprint(NamedTuple):
    """The hashes of a key's structure and of each part; `open` are the parts with unknown sizes."""

    structure: int
    parts: np.ndarray[Any, np.dtype[np.int64]]
    open: tuple[int, ...]


def fingerprint(key: Key) -> Fingerprint:
    hashes = np.fromiter(map(hash, key.parts), np.int64, len(key.parts))
    unknown = tuple([i for i, part in enumerate(key.parts) if part[0] == "tensor" and None in part[2]])
    return Fingerprint(hash(key.structure) if key.structure is not None else len(key.parts), hashes, unknown)


def closest(entries: Sequence[Any], key: Key, signature: Signature, where: str = "") -> Any:
    """The entry with the fewest, then the least severe differences; None without entries.

    Of those one that was made at the very line `where` the call is, as in a loop; then the most used one.
    """
    mine = fingerprint(key)
    same: list[Any] = []
    others: list[Any] = []
    for entry in entries:
        if entry.fingerprint is None:
            entry.fingerprint = fingerprint(entry.key)
        alike = entry.fingerprint.structure == mine.structure and len(entry.fingerprint.parts) == len(mine.parts)
        (same if alike else others).append(entry)
    ranked = _rank_alike(same, key, mine)
    if not ranked or ranked[0][0] > 1:
        ranked += [_rank(entry, key, signature) for entry in _likeliest(others, len(mine.parts))]
    return min(ranked, key=lambda row: (*row[:2], row[-1].where != where, *row[2:-1]))[-1] if ranked else None


def _rank_alike(entries: Sequence[Any], key: Key, mine: Fingerprint) -> list[tuple[Any, ...]]:
    """Rows (differences, severity, -hits, -index, entry) of those with the fewest differences."""
    counted = []
    for entry in entries:
        differs = entry.fingerprint.parts != mine.parts
        for i in entry.fingerprint.open:
            differs[i] = differs[i] and not part_covers(entry.key.parts[i], key.parts[i])
        count = int(np.count_nonzero(differs)) + (entry.key.device is not key.device)
        counted.append((count, differs, entry))
    fewest = min([count for count, _, _ in counted], default=0)
    return [
        (count, _severity(entry.key, key, differs), -entry.hits, -entry.index, entry)
        for count, differs, entry in counted
        if count == fewest
    ]


def _severity(before: Key, after: Key, differs: np.ndarray[Any, Any]) -> float:
    places = np.flatnonzero(differs)[:_LOOKED_AT].tolist()
    pairs = [(before.parts[i], after.parts[i]) for i in places]
    return max([_weight(a, b) for a, b in pairs if a != b], default=0)


def _weight(before: Part, after: Part) -> float:
    cause = cause_of(before, after)
    if cause is Cause.SHAPE:  # one axis is less than two
        return SEVERITY[cause] + len(differing_sizes(before[2], after[2])) / 100
    return SEVERITY[cause]


def _likeliest(entries: Sequence[Any], leaves: int) -> list[Any]:
    """The few that are worth a full comparison: of about the same size, used most, newest."""
    ranked = sorted(entries, key=lambda e: (abs(len(e.key.parts) - leaves), -e.hits, -e.index))
    return ranked[:_OTHERS]


def _rank(entry: Any, key: Key, signature: Signature) -> tuple[Any, ...]:
    changes = differing(entry.key, key, signature)
    severity = max([SEVERITY[change.cause] for change in changes], default=0)
    return (len(changes), severity, -entry.hits, -entry.index, entry)
