"""What functions of the user's remember by `functools.lru_cache`, where a cell calls them.

A plain cell is handed what such a function remembers, or has it compute and remember, with what its code reads then.
A trace does the same, and its runs rely on what it was handed. It therefore serves as long as nothing has been
forgotten, or made anew, of what was remembered when it ended. What has come since makes no difference.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from limelight.core import nest
from limelight.staging.symbolic import SymbolicTensor
from limelight_kernel.inputs.contents import is_opened
from limelight_kernel.inputs.pins import Pinned

LRU_CACHE: Final = functools._lru_cache_wrapper
_MOST: Final = 4  # states of one cache that are kept


@dataclass
class _State:
    """What stands for a cache as long as it has these entries: keys with results, or with links made anew for each."""

    pinned: Pinned
    entries: list[tuple[Any, Any]]


@dataclass
class _Used:
    """A cache that a call reaches by a path, the state that it is in, and all that it had before the trace."""

    path: str
    cache: Any
    state: _State | None = None
    before: list[Any] = field(default_factory=list)


class LruCaches:
    """The caches of the functions that one cell calls."""

    def __init__(self) -> None:
        self._states: dict[str, list[_State]] = {}
        self._used: dict[int, _Used] = {}

    def pin(self, path: str, cache: Any) -> Pinned:
        """What stands for `cache`, which the code reaches by `path`, as it is now."""
        entries = _entries(cache)
        now = {(id(key), id(x)) for key, x in entries}
        states = self._states.setdefault(path, [])
        for state in reversed(states):
            if state.pinned.value is cache and all((id(key), id(x)) in now for key, x in state.entries):
                break
        else:
            state = _State(Pinned(cache), entries)
            states.append(state)
            del states[:-_MOST]
        self._used[id(cache)] = _Used(path.removesuffix("[...]"), cache, state)
        return state.pinned

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """A trace begins, with these inputs."""
        for name, x in inputs.items():
            if isinstance(x, LRU_CACHE):
                self._used.setdefault(id(x), _Used(name, x))
        for used in self._used.values():
            used.before = gc.get_referents(used.cache)

    def settle(self) -> list[str]:
        """A trace has ended: has tensors of it forgotten, and returns the paths of the caches that had any."""
        forgetful = []
        for used in self._used.values():
            if _has_tensors(used):
                used.cache.cache_clear()
                forgetful.append(used.path)
            if used.state is not None:
                used.state.entries = _entries(used.cache)
        self._used = {}
        return forgetful


def _entries(cache: Any) -> list[tuple[Any, Any]]:
    own = cache.__dict__
    return [pair for x in gc.get_referents(cache) if type(x) is dict and x is not own for pair in list(x.items())]


def _may_hold(x: Any) -> bool:
    return is_opened(x) or isinstance(x, (types.FunctionType, types.MethodType, functools.partial))


def _has_tensors(used: _Used) -> bool:
    """Whether what has been remembered since is, or may hold, a tensor of the trace."""
    known = {*map(id, used.before)}
    new = [x for x in gc.get_referents(used.cache) if id(x) not in known and x is not used.cache.__dict__]
    keys = {id(key) for key, _ in _entries(used.cache)}
    leaves = [(leaf, id(x) in keys) for x in new for leaf in nest.leaves_of(x)]
    return any(
        isinstance(x, SymbolicTensor) or (_may_hold(x) and not isinstance(x, type) and not of_key)
        for x, of_key in leaves
    )
