"""The state of Python that a function reaches: what its names stand for, and what the objects behind them hold.

Reached are the names of its closure, the globals that its code mentions, its defaults, its object where it is a method,
and from there functions, containers, and objects and classes that the user wrote, nearest first. Code that runs later
can so find a loop's variable as it was. Iterators and objects of other people's classes have a state that nobody can
note.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterator
from dis import get_instructions
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple, TypeAlias

from limelight.user_code import source_line

_MOST_PLACES: Final = 500
_MOST_ITEMS: Final = 10_000
_LEAVES: Final = frozenset([int, float, complex, bool, str, bytes, type(None), range, slice])
_CONTAINERS: Final = (list, dict, set, deque)
_ABSENT: Final = object()
"""The content of an empty cell, and of a name that is not bound."""


class Place(NamedTuple):
    """Something that can hold something else, and what it held.

    Kinds: "cell" (`key` is its name), "name" (a key of a namespace), "attribute" (of an object without one, or a
    class), "items" (a container's; the content are a dictionary's keys, or None, and the values).
    """

    kind: str
    holder: Any
    key: Any
    content: Any

    @property
    def identity(self) -> tuple[Any, ...]:
        return self.kind, id(self.holder), None if self.kind == "cell" else self.key

    def now(self) -> Place:
        """The same with what it holds now."""
        return self._replace(content=_content(self.kind, self.holder, self.key))

    def holds(self, content: Any) -> bool:
        """Whether it holds this, object by object."""
        present = _content(self.kind, self.holder, self.key)
        if self.kind != "items":
            return present is content
        return _same(present[1], content[1]) and (present[0] is None or _same(present[0], content[0]))

    def restore(self) -> None:
        """Has it hold `content` again."""
        if self.holds(self.content):
            return
        if self.kind == "items":
            _set_items(self.holder, *self.content)
        elif self.kind == "cell":
            _set_cell(self.holder, self.content)
        elif self.kind == "attribute":
            setattr(self.holder, self.key, self.content)
        elif self.content is _ABSENT:
            self.holder.pop(self.key, None)
        else:
            self.holder[self.key] = self.content


class PythonState:
    """What some places held at one moment."""

    def __init__(self, places: list[Place]) -> None:
        self._places = places

    def now(self) -> PythonState:
        """What the same places hold now."""
        return PythonState([place.now() for place in self._places])

    def restore(self) -> None:
        """Has all places hold what they held; where some do not take it, raises at the end what the first one did."""
        _restore(self._places)

    def restore_unchanged_since(self, moment: PythonState) -> None:
        """Restores what nobody has changed since another moment."""
        pairs = zip(self._places, moment._places, strict=True)
        _restore([place for place, then in pairs if place.holds(then.content)])

    def for_another_run(self) -> PythonState:
        """The state in which to run the function again, now that it has run.

        What it has changed it finds as it was before, but for what it has made on its first use, which may be weights:
        what was nothing (None, False, unbound, empty), and new keys of dictionaries.
        """
        return PythonState([_for_another_run(place) for place in self._places])


def state_of(function: Any) -> PythonState:
    """The state that `function` finds now."""
    return PythonState(list(_places(function, [])))


def names_of(function: Any) -> PythonState:
    """What the names and attributes stand for that the code of `function` reads and nowhere binds."""
    codes: list[CodeType] = []
    places = list(_places(function, codes))
    bound = {name for code in codes for name in names_bound(code)}
    return PythonState([place for place in places if place.kind != "items" and place.key not in bound])


# What places hold


def _content(kind: str, holder: Any, key: Any) -> Any:
    if kind == "cell":
        return _cell_content(holder)
    if kind == "name":
        return holder.get(key, _ABSENT)
    if kind == "attribute":
        return getattr(holder, key, _ABSENT)
    return (tuple(holder), tuple(holder.values())) if isinstance(holder, dict) else (None, tuple(holder))


def _cell_content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return _ABSENT


def _set_cell(cell: CellType, content: Any) -> None:
    if content is _ABSENT:
        del cell.cell_contents
    else:
        cell.cell_contents = content


def _set_items(holder: Any, keys: tuple[Any, ...] | None, values: tuple[Any, ...]) -> None:
    if isinstance(holder, list):
        holder[:] = values
        return
    holder.clear()
    if keys is None:
        (holder.update if isinstance(holder, set) else holder.extend)(values)
    else:
        holder.update(zip(keys, values, strict=True))


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(map(is_, a, b))


def _restore(places: list[Place]) -> None:
    first: BaseException | None = None
    for place in places:
        try:
            place.restore()
        except BaseException as error:  # noqa: BLE001  # of a `__setattr__` of the user's; it is raised below
            first = first or error
    if first is not None:
        raise first


def _for_another_run(place: Place) -> Place:
    """A place with what was there, but for what has come to be where nothing was."""
    content = place.content
    if place.kind == "items":
        if content[0] is not None:
            return place._replace(content=_with_new_keys(content, place.now().content))
        return place if content[1] else place.now()
    return place.now() if _is_nothing(content) else place


def _with_new_keys(before: tuple[Any, ...], now: tuple[Any, ...]) -> tuple[Any, ...]:
    """The content of a dictionary before, with the keys that it has got since, and what these stand for."""
    items, present = dict(zip(*before, strict=True)), dict(zip(*now, strict=True))
    items |= {key: x for key, x in present.items() if _is_nothing(items.get(key))}
    return tuple(items), tuple(items.values())


def _is_nothing(x: Any) -> bool:
    return x is None or x is False or x is _ABSENT


# Which places there are

_Part: TypeAlias = tuple[Place | None, tuple[Any, ...]]
"""A place, if it is one, and objects that are reached through it."""


def _places(function: Any, codes: list[CodeType]) -> Iterator[Place]:
    """The places that are reached from `function`; adds the code that it goes through to `codes`."""
    waiting, seen, known = deque([function]), {}, set()
    while waiting:
        x = waiting.popleft()
        if type(x) in _LEAVES or id(x) in seen:
            continue
        seen[id(x)] = x  # kept, so that no other object gets its `id`
        for place, reached in _parts(x, codes):
            waiting += reached
            if place is not None and place.identity not in known:
                known.add(place.identity)
                yield place
                if len(known) >= _MOST_PLACES:
                    return


def _parts(x: Any, codes: list[CodeType]) -> Iterator[_Part]:
    kind = type(x)
    if kind is FunctionType:
        yield from _parts_of_function(x, codes)
    elif isinstance(x, _WRAPPERS):
        yield None, _behind(x)
    elif kind in _CONTAINERS:
        if len(x) <= _MOST_ITEMS:
            content = _content("items", x, None)
            yield Place("items", x, None, content), content[1]
    elif isinstance(x, ModuleType):
        if _is_users(x.__name__):
            yield from _names_in(vars(x), {name for code in codes for name in code.co_names})
    elif isinstance(x, type):
        if _is_users(x.__module__):
            yield from _parts_of_class(x)
    elif kind is SimpleNamespace or _is_users(kind.__module__):
        yield from _parts_of_object(x)


_WRAPPERS: Final = (MethodType, functools.partial, staticmethod, classmethod, property, tuple, frozenset)


def _behind(x: Any) -> tuple[Any, ...]:
    """What can be got at through something that never changes itself."""
    if isinstance(x, MethodType):
        return x.__func__, x.__self__
    if isinstance(x, functools.partial):
        return x.func, *x.args, *x.keywords.values()
    if isinstance(x, property):
        return (x.fget,)
    if isinstance(x, (staticmethod, classmethod)):
        return (x.__func__,)
    return tuple(x) if len(x) <= _MOST_ITEMS else ()


def _parts_of_function(function: FunctionType, codes: list[CodeType]) -> Iterator[_Part]:
    code = function.__code__
    if source_line.is_library(code) or source_line.is_installed(code.co_filename):
        yield None, (vars(function).get("__wrapped__"),)  # what a decorator wraps
        return
    codes += _with_inner(code)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        content = _cell_content(cell)
        yield Place("cell", cell, name, content), (content,)
    yield None, (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from _names_in(function.__globals__, {name for inner in _with_inner(code) for name in inner.co_names})


def _names_in(namespace: dict[str, Any], names: Any) -> Iterator[_Part]:
    for name in [name for name in names if name in namespace]:
        yield Place("name", namespace, name, namespace[name]), (namespace[name],)


def _parts_of_class(kind: type) -> Iterator[_Part]:
    """Its methods, and the attributes that its objects share."""
    yield None, kind.__bases__
    for name, value in list(vars(kind).items()):
        if isinstance(value, (FunctionType, staticmethod, classmethod, property)):
            yield None, (value,)
        elif not name.startswith("__") and not hasattr(value, "__get__"):
            yield Place("attribute", kind, name, value), (value,)


def _parts_of_object(x: Any) -> Iterator[_Part]:
    yield None, (type(x),)
    namespace = getattr(x, "__dict__", None)
    if isinstance(namespace, dict):
        yield from _names_in(namespace, list(namespace))
    for kind in type(x).__mro__:
        slots = vars(kind).get("__slots__", ()) if _is_users(kind.__module__) else ()
        for name in (slots,) if isinstance(slots, str) else slots:
            value = getattr(x, name, _ABSENT) if name not in ("__dict__", "__weakref__") else _ABSENT
            if value is not _ABSENT:
                yield Place("attribute", x, name, value), (value,)


@functools.lru_cache(maxsize=1024)
def _is_users(module: str) -> bool:
    """Whether the user wrote a module, as far as it has a file."""
    if module == "__main__":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and not source_line.is_installed(file) and not source_line.is_library_file(file)


@functools.lru_cache(maxsize=1024)
def _with_inner(code: CodeType) -> tuple[CodeType, ...]:
    """Code with that of the functions in it."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return (code, *[deeper for one in inner for deeper in _with_inner(one)])


@functools.lru_cache(maxsize=1024)
def names_bound(code: CodeType) -> frozenset[str]:
    """The names of closures, globals and attributes that `code`, or a function in it, binds or deletes."""
    ops = ("STORE_DEREF", "STORE_GLOBAL", "STORE_ATTR", "DELETE_DEREF", "DELETE_GLOBAL", "DELETE_ATTR")
    return frozenset([str(i.argval) for one in _with_inner(code) for i in get_instructions(one) if i.opname in ops])
