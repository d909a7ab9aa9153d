"""What a trace cache remembers of the past: why it traced, how often it was asked, and the traces it no longer has.

All of it is words, numbers and weak references, so the history of a function keeps nothing alive that its user let go.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, NamedTuple

from limelight.staging.key import Key
from limelight.staging.key_parts import ObjectPart, TensorPart, ValuePart
from limelight.staging.weak_identity import Identity

_KEPT: Final = 1000
WINDOW: Final = 10


class Ghost(NamedTuple):
    """A trace that was cleared, or evicted from a cache of bounded size: `why` says which."""

    why: str
    number: int
    where: str
    uses: int
    key_hash: int
    values: str
    objects: tuple[Identity, ...]
    relaxed: Key | None  # the key of a trace with unknown sizes, where it is made of tensors alone

    def was_for(self, key: Key) -> bool:
        """Whether a call with `key`, of the same hash, would have found this trace. A hash would take -1 for -2."""
        return self.values == _values(key) and self.objects == _objects(key)


class History:
    """Of one function: its misses, oldest first, the traces that it no longer has, and when its calls traced."""

    def __init__(self) -> None:
        self.misses: deque[Any] = deque(maxlen=_KEPT)
        self.ghosts: deque[Ghost] = deque(maxlen=_KEPT)
        self.made = 0
        self._made_before = 0
        self.cleared = 0
        self.warned = self.warned_at = 0  # how often, and how many calls there had been the last time
        self._counters: dict[int, list[int]] = {}  # shared with the entries, which count their hits in them
        self._past_calls = 0  # of entries that have gone
        self._traced_at: deque[int] = deque(maxlen=WINDOW)

    def enter(self, entry: Any) -> None:
        """A new trace: numbers it, and keeps its reason and its counter."""
        entry.index = self.made
        self.made += 1
        self._counters[entry.index] = entry.counter
        if entry.miss is not None:
            self.misses.append(entry.miss)

    def leave(self, entry: Any, why: str = "") -> None:
        """An entry goes from the cache. It is remembered where there is a reason `why`, other than that it died."""
        self._past_calls += 1 + self._counters.pop(entry.index)[0]
        if why:
            key, uses = entry.key, entry.hits + 1
            relaxed = key if _is_relaxed(key) else None
            words = _values(key), _objects(key)
            self.ghosts.append(Ghost(why, entry.index + 1, entry.where, uses, hash(key), *words, relaxed))

    def start_again(self) -> None:
        """The cache is about to be cleared of all entries; one that never had any is no cleared one."""
        self.cleared += self.made > 0
        self._made_before = self.made

    @property
    def made_since_clearing(self) -> int:
        """How many traces there have been since the cache was last cleared, evicted ones too."""
        return self.made - self._made_before

    def ghost(self, key: Key) -> Ghost | None:
        """The latest trace for calls with `key` that the cache has lost."""
        known, past = hash(key), list(self.ghosts)
        one: Ghost
        for one in reversed(past):
            if one.key_hash == known and one.was_for(key):
                return one
            if one.relaxed is not None and one.relaxed.covers(key):
                return one
        return None

    def evicted(self) -> set[int]:
        """The hashes of the keys whose traces were evicted, but for those that no call can ask for any more."""
        lost = [one for one in list(self.ghosts) if one.why == "evicted"]
        return {one.key_hash for one in lost if None not in [known.ref() for known in one.objects]}

    @property
    def calls(self) -> int:
        """How many calls there have been, as far as they traced or found a trace."""
        return self._past_calls + len(self._counters) + sum([counter[0] for counter in list(self._counters.values())])

    def recent_traces(self) -> int:
        """To be asked once for each call that traced: how many of the last ten calls did so."""
        calls = self.calls
        self._traced_at.append(calls)
        return sum(call > calls - WINDOW for call in self._traced_at)


def _is_relaxed(key: Key) -> bool:
    """Whether all parts are tensors, some of unknown sizes: then nothing of the user's is in the key."""
    return all(isinstance(part, TensorPart) for part in key.parts) and any(part.has_open_sizes for part in key.parts)


def _values(key: Key) -> str:
    """The whole numbers of a key, among which some hash alike."""
    return " ".join([str(part.value) for part in key.parts if isinstance(part, ValuePart) and part.kind is int])


def _objects(key: Key) -> tuple[Identity, ...]:
    return tuple([part.identity for part in key.parts if isinstance(part, ObjectPart)])
