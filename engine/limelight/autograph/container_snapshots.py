"""What a container held: whether it has changed since, and putting that back.

Elements are compared by identity: an equal one in place of another is a change as well, and tensors have no truth.
"""

from __future__ import annotations

import collections
import copy
import operator
from typing import Any, Final

import numpy as np

_DICTS: Final = frozenset([dict, collections.OrderedDict, collections.defaultdict, collections.Counter])
_KINDS: Final = _DICTS | {list, collections.deque, set, bytearray, np.ndarray}
_LARGEST: Final = 1 << 16
"""Bytes of an array that are worth a copy for each block."""


class Snapshot:
    """A container beside what it held `before`, by default what it holds now."""

    __slots__ = ("before", "container")

    def __init__(self, container: Any, before: Any = None) -> None:
        self.container = container
        self.before = copy.copy(container) if before is None else before

    @staticmethod
    def fits(x: Any) -> bool:
        """Whether there can be one of `x`."""
        return type(x) in _KINDS and (type(x) is not np.ndarray or (x.dtype.kind != "O" and x.nbytes <= _LARGEST))

    def has_changed(self) -> bool:
        """Whether the container holds something else by now."""
        now, before = self.container, self.before
        if type(now) is np.ndarray:
            return bool(now.shape != before.shape or now.tobytes() != before.tobytes())
        if len(now) != len(before):
            return True
        if type(now) is bytearray:
            return bool(now != before)
        if type(now) is set:
            return set(map(id, now)) != set(map(id, before))
        same = all(map(operator.is_, now, before))
        return not (same and (type(now) not in _DICTS or all(map(operator.is_, now.values(), before.values()))))

    def restore(self) -> None:
        """Puts back what was in it; where the keys are the same, whoever goes over a dictionary may go on."""
        container, before = self.container, self.before
        if type(container) in (list, bytearray):
            container[:] = before
        elif type(container) is np.ndarray:
            container[...] = before
        elif type(container) in _DICTS and list(map(id, container)) == list(map(id, before)):
            dict.update(container, before)
        else:
            container.clear()
            (container.extend if type(container) is collections.deque else container.update)(before)
