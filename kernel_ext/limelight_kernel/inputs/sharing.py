"""Which containers of a cell's inputs are one and the same: what changes through one name is seen through the other.

A trace holds for the sharing that it was made with, so that is a part of the key: a string of words, empty for most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

KEY: Final = "one and the same"  # no identifier, so no name of the notebook's
_MUTABLE: Final = (list, dict, set, deque)
_LEADS_ON: Final = (*_MUTABLE, tuple)
_MOST: Final = 10_000


def sharing(values: Mapping[str, Any], plain: Collection[str] = ()) -> tuple[str, frozenset[int]]:
    """Says which containers can be reached in two ways: "a is b, a is c[0]"; and the ids of those.

    What is in the containers named in `plain` is not looked at.

    >>> a = [1]
    >>> sharing({"a": a, "b": [1], "c": {"k": a}})[0]
    "a is c['k']"
    """
    met: dict[int, str] = {}
    said: list[str] = []
    shared: set[int] = set()
    waiting = deque((name, value) for name, value in values.items() if isinstance(value, _LEADS_ON) and name[:1] != "_")
    while waiting and len(met) < _MOST:
        path, x = waiting.popleft()
        known = met.setdefault(id(x), path)
        if known is not path:
            if isinstance(x, _MUTABLE):
                said.append(f"{known} is {path}")
                shared.add(id(x))
            continue
        if path not in plain:
            waiting.extend(_containers_in(path, x))
    return ", ".join(said), frozenset(shared)


def _containers_in(path: str, x: Any) -> Iterable[tuple[str, Any]]:
    inside = x.values() if isinstance(x, dict) else x
    if not any(issubclass(kind, _LEADS_ON) for kind in set(map(type, inside))):
        return ()
    items = x.items() if isinstance(x, dict) else enumerate(x)
    return [(f"{path}[{key!r}]", child) for key, child in items if isinstance(child, _LEADS_ON)]
