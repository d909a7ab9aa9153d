"""Paths in an object graph: edges joined by slashes, escaped as in JSON Pointer (RFC 6901).

An edge is an attribute's name or a string key, or a position or an integer key. `~` is written `~0`, `/` is `~1`, and
`~2` before a name says that it is one although it looks like a position, is empty, or means something to safetensors.
`~s` and `~v` are segments that no edge has: of an optimiser's slots, and of arrays within a value.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Final, TypeAlias

Edge: TypeAlias = str | int
SLOTS: Final = "~s"
WITHIN: Final = "~v"
_POSITION: Final = re.compile(r"-?[0-9]+")
_RESERVED: Final = ("", "__metadata__")  # the second is the header's own key in a safetensors file


@functools.lru_cache(1 << 16)  # of ten thousand names each is asked for three times in a restore
def segment(edge: Edge) -> str:
    """One edge as a part of a path.

    >>> segment("a/b"), segment(3), segment("3"), segment("~x")
    ('a~1b', '3', '~23', '~0x')
    """
    if isinstance(edge, int):
        return str(edge)
    escaped = edge.replace("~", "~0").replace("/", "~1")
    return "~2" + escaped if edge in _RESERVED or _POSITION.fullmatch(edge) else escaped


def join(above: str, *edges: Edge) -> str:
    """The path of what `edges` lead to from the object at `above`; the root's is empty."""
    path = above
    for edge in edges:
        part = segment(edge)
        path = f"{path}/{part}" if path else part
    return path


def below(above: str, segments: Iterable[str]) -> str:
    """A path that is continued by segments as they are."""
    return "/".join(filter(None, [above, *segments]))


def split(path: str) -> list[Edge]:
    """The edges of a path: the inverse of `join`.

    >>> split(join("", "a/b", 3, "3", ""))
    ['a/b', 3, '3', '']
    """
    return [_edge(part) for part in path.split("/")]


def _edge(part: str) -> Edge:
    if _POSITION.fullmatch(part):
        return int(part)
    return part.removeprefix("~2").replace("~1", "/").replace("~0", "~")
