"""Lists and dictionaries that converted code has made: their contents are state of staged blocks, as variables are.

A block changes them in place while it is traced, so that all names of a container see the change, and what it contained
is put back at the end of the block. What the block left in it becomes the value of a `cond`, or is carried by a loop,
and is put in afterwards. Containers from outside (arguments, globals, attributes) are not known here, and are refused:
the change would be seen by those who know them, once.

A container within another one is the same container before and after; what it contains is its own state.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from limelight.autograph.container_snapshots import Snapshot
from limelight.user_code import source_line

_count: Final = itertools.count(1)
_ALONE: Final = 3  # references to what only the registry knows: its entry, the variable of a loop, the argument


class _Entry(NamedTuple):
    container: Any  # kept alive, so that its identity stays its own
    made: int


class _Registry(threading.local):
    """The containers of the function that is being traced, by identity."""

    def __init__(self) -> None:
        self.entries: dict[int, _Entry] | None = None
        self.most = 10_000  # of entries, before those are looked for that nobody else has any more
        self.links: dict[int, list[Link]] = {}
        self.passed: list[tuple[Any, ...]] = []  # the arguments of calls of which this thread waits for the end


class Link(NamedTuple):
    """Two containers that may be one in Python, of which the second is what the variable `name` has now."""

    pair: tuple[Any, Any]
    name: str


_known = _Registry()


@contextmanager
def registry() -> Iterator[None]:
    """Within its block, which traces one function, containers are noted; those of functions around are not its own."""
    outside, links = _known.entries, _known.links
    _known.entries, _known.links = {}, {}
    try:
        yield
    finally:
        _known.entries, _known.links = outside, links


def made(value: Any) -> Any:
    """`value`, noted if it is a list or dictionary: it has just been made."""
    entries = _known.entries
    if entries is not None and (type(value) is list or type(value) is dict):
        entries[id(value)] = _Entry(value, next(_count))
        if len(entries) > _known.most:
            _forget(entries)
    return value


def _forget(entries: dict[int, _Entry]) -> None:
    gone = [key for key, entry in entries.items() if sys.getrefcount(entry.container) < _ALONE]
    for key in gone:
        del entries[key]
    _known.most = max(10_000, 2 * len(entries))


def made_within(value: Any) -> Any:
    """`value`, in which every list and dictionary has just been made."""
    if type(value) is list or type(value) is tuple:
        for part in value:
            made_within(part)
    elif type(value) is dict:
        for part in value.values():
            made_within(part)
    return made(value)


def whole(value: Any) -> Any:
    """`value[:]`, which of a list is a new one."""
    return made(value[:]) if type(value) is list else value[:]


def now() -> int:
    """A number that is above that of all containers made so far, and below those of others."""
    return next(_count)


def age(container: Any) -> int | None:
    """When `container` was made; None for one from outside."""
    entry = (_known.entries or {}).get(id(container))
    return None if entry is None else entry.made


def links() -> dict[int, list[Link]]:
    """The links of containers, by the identities of both, which they keep alive."""
    return _known.links


def n_own_references(container: Any) -> int:
    """The references to a container that are no one's but autograph's."""
    n_passed = sum(x is container for arguments in _known.passed for x in arguments)
    return (age(container) is not None) + len(_known.links.get(id(container), ())) + n_passed


@contextmanager
def passing(arguments: tuple[Any, ...]) -> Iterator[None]:
    """Within its block a function is called, and its arguments are held for that only."""
    _known.passed.append(arguments)
    try:
        yield
    finally:
        _known.passed.pop()


class Held:
    """Stands, among contents, for a container that was there before."""

    __slots__ = ("container",)

    def __init__(self, container: Any) -> None:
        self.container = container

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and other.container is self.container

    def __hash__(self) -> int:
        return id(self.container)

    def __repr__(self) -> str:
        return f"the {type(self.container).__name__} that was there before"


def contents(container: Any, since: int) -> Any:
    """What is in `container`, as a new one of its kind; containers in it that were made before `since` are `Held`."""
    if type(container) is dict:
        return {key: _part(x, since) for key, x in container.items()}
    return [_part(x, since) for x in container]


def _part(value: Any, since: int) -> Any:
    if type(value) is tuple:
        return tuple([_part(x, since) for x in value])
    if type(value) is not list and type(value) is not dict:
        return value
    known = age(value)
    return contents(value, since) if known is not None and known > since else Held(value)


def fill(container: Any, values: Any) -> None:
    """Puts `contents` in; where the keys stay the same, whoever goes over a dictionary may go on."""
    values = given_back(values)
    if type(container) is list:
        container[:] = values
        return
    if list(container) != list(values):
        container.clear()
    container.update(values)


def given_back(value: Any) -> Any:
    """`contents` with the very containers that are `Held` in them."""
    if type(value) is Held:
        return value.container
    if type(value) is dict:
        return made({key: given_back(x) for key, x in value.items()})
    return made(type(value)([given_back(x) for x in value])) if type(value) in (list, tuple) else value


class Change(NamedTuple):
    """What a block does to a container: what it goes by in the source, where it was first changed, and what it was."""

    container: Any
    name: str
    where: str
    before: Any


class Changed(NamedTuple):
    """What a block has left in a container."""

    container: Any
    name: str
    where: str
    value: Any


class Changes:
    """The containers that a block changes, all of them made before it.

    `watched` are those that it can reach: whatever changes one of them, by whichever way, its contents tell in the end.
    """

    def __init__(self, watched: Iterable[Any] = ()) -> None:
        self.since = now()
        self._changes: dict[int, Change] = {}
        self.untold: list[Any] = []
        self._watched = [Snapshot(x) for x in watched if Snapshot.fits(x)]

    def look(self) -> None:
        """Finds changes of which nobody told, and notes those of containers that the converted code has made.

        The others, from outside, are what they were again afterwards.
        """
        changed = [x for x in self._watched if id(x.container) not in self._changes and x.has_changed()]
        for x in changed:
            if age(x.container) is None:
                x.restore()
            else:
                name = f"a {type(x.container).__name__}"
                self._changes[id(x.container)] = Change(x.container, name, source_line.here(), x.before)
        self.untold += [x.container for x in changed]

    def note(self, container: Any, name: str, where: str) -> None:
        """`container` is changed next."""
        if id(container) not in self._changes:
            before = dict(container) if type(container) is dict else list(container)
            self._changes[id(container)] = Change(container, name, where, before)

    def left(self) -> dict[int, Changed]:
        """What the containers hold now, by their identities."""
        self.look()
        return {
            key: Changed(x.container, x.name, x.where, contents(x.container, self.since))
            for key, x in self._changes.items()
        }

    def as_left(self, value: Any) -> Any:
        """`value`, copied where containers in it will not hold what they hold now."""
        if not self._changes or type(value) not in (list, dict, tuple):
            return value
        if type(value) is dict:
            return {key: self.as_left(x) for key, x in value.items()}
        return type(value)([self.as_left(x) for x in value])

    def undo(self) -> None:
        """Puts back what was in them."""
        for x in self._changes.values():
            Snapshot(x.container, x.before).restore()
