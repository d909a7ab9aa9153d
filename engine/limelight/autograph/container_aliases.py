"""Lists and dictionaries that are one in Python, or may be, and two after a staged block.

A name to which a block gives another container has a new one afterwards: the value of a `cond`, or what a loop has
carried. In the runs in which the block did not assign it, other names that it shared its container with would see its
changes, and it theirs. So long as neither is changed no program can tell; the first change of one, while somebody still
knows the other, is refused. Who knows a container is told by the references to it.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from limelight.autograph.local_containers import Link, links, n_own_references
from limelight.autograph.undefined_variables import is_hidden, shown
from limelight.errors import ControlFlowError
from limelight.user_code import source_line

_COUNTING: Final = 2  # references of whoever counts: a variable, and the argument of `getrefcount`


def lonely(values: Sequence[Any]) -> set[int]:
    """The identities of the containers in the values of variables that nobody knows but these variables.

    Each variable is known by its cell, and by `values`, a tuple that nobody else has.
    """
    met: dict[int, list[Any]] = {}
    for container, n in [x for value in values for x in _containers(value, 2)]:
        met.setdefault(id(container), [container, 0])[1] += n
    container = None
    return {
        key
        for key, entry in met.items()
        if sys.getrefcount(entry[0]) <= _COUNTING + entry[1] + n_own_references(entry[0])
    }


def _containers(value: Any, n: int) -> Iterator[tuple[Any, int]]:
    """The containers in a value, each with the number of references that are known."""
    kind = type(value)
    if kind is list or kind is dict:
        yield value, n
    if kind is list or kind is dict or kind is tuple:
        for part in value.values() if kind is dict else value:
            yield from _containers(part, 1)


def link(names: Sequence[str], sides: Sequence[Sequence[Any]], results: Sequence[Any], alone: set[int]) -> None:
    """Notes which containers were one on one of the sides, and are several now.

    Args:
        names: those of the variables.
        sides: their values on each side: after each of two blocks, or before a loop and after an iteration.
        results: their values now.
        alone: the containers that nobody else knows.
    """
    for side in sides:
        groups: dict[int, list[Any]] = {}
        named: dict[int, str] = {}
        for name, value, result in zip(names, side, results, strict=False):
            for old, new in [] if is_hidden(name) else _pairs(value, result):
                group = groups.setdefault(id(old), [] if id(old) in alone else [old])
                group += [] if any(x is new for x in group) else [new]
                named[id(new)] = name
        for group in groups.values():
            for a, b in itertools.combinations(group, 2):
                pair = Link((a, b), named[id(b)])
                links().setdefault(id(a), []).append(pair)
                links().setdefault(id(b), []).append(pair)


def _pairs(old: Any, new: Any) -> Iterator[tuple[Any, Any]]:
    """The containers at the same places of two values."""
    kind = type(old)
    if kind is not type(new) or kind not in (list, dict, tuple) or len(old) != len(new):
        return
    if kind is not tuple:
        yield old, new
    for key in old if kind is dict else range(len(old)):
        if kind is not dict or key in new:
            yield from _pairs(old[key], new[key])


def refuse_change(container: Any, what: str) -> None:
    """Raises ControlFlowError where somebody would have to see what is done to `container`, or might not."""
    for pair, name in links().get(id(container), ()):
        other = pair[pair[0] is container]
        if sys.getrefcount(other) > _COUNTING + n_own_references(other):
            kind = type(container).__name__
            raise ControlFlowError(
                f"{what}{source_line.here()}, and a tensor decides whether {shown(name)} still is the {kind} that "
                "other names know as well, so that the change would be seen by them, or is another one: a graph cannot "
                "tell. "
                f"Give it a copy before that is decided, {kind}({name}), or change it before"
            )
