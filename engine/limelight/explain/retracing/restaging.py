"""The definitions that functions were staged from: made anew in a loop, run again as a cell is, or edited since?

Definitions are remembered as positions, hashes and weak references to code, so nothing is kept alive.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, NamedTuple

from limelight.staging.trace_cache import WINDOW, History
from limelight.user_code import source_line
from limelight.user_code.source_line import Source

_KEPT: Final = 1000
_OFTEN: Final = 5


class Family:
    """The functions staged from one run of a definition: the latest histories, which outlive them, and the warnings."""

    def __init__(self, code: CodeType | None = None) -> None:
        self.latest: deque[History] = deque(maxlen=WINDOW)
        self.joined = 0  # how many there have been
        self.warned = self.warned_at = 0
        self._objects: deque[Any] = deque(maxlen=WINDOW)  # weak references to those whose methods they are
        self._code = None if code is None else weakref.ref(code)

    def is_of(self, code: CodeType) -> bool:
        """Whether it is this very code, which a loop stages anew; code that ran again is equal, and another object."""
        return self._code is not None and self._code() is code

    def joined_by(self, history: History, owner: Any = None) -> Family:
        """With `history` among the latest, of a method of `owner`."""
        if not any(history is one for one in self.latest):
            self.joined += 1
            self.latest.append(history)
            self._objects.append(None if owner is None else _weak(owner))
        return self

    def knows(self, owner: Any) -> bool:
        """Whether a method of this very object is in it."""
        return any(one is not None and one() is owner for one in self._objects)

    @property
    def lost(self) -> int:
        """How many of the objects have been deleted."""
        return sum([one is not None and one() is None for one in list(self._objects)])

    @property
    def is_remade_often(self) -> bool:
        """Whether the last five functions were called ten times or fewer in all.

        Methods of several living objects, each with traces of its own, are no sign of a mistake.
        """
        calls = [history.calls for history in self.latest]
        alive = {id(owner) for one in list(self._objects)[-_OFTEN:] if one is not None and (owner := one()) is not None}
        return len(alive) <= 1 and len(calls) >= _OFTEN and sum(calls[-_OFTEN:]) <= WINDOW


class Former(NamedTuple):
    """An earlier definition by the same name, or in the same place."""

    where: Source
    digest: int


class Before(NamedTuple):
    """What is known of a function that was staged before: how often, from the same code, or from which other.

    `owner` is the class of the object whose method it is, each of which has traces of its own; `lost` says how many of
    the others have been deleted.
    """

    where: Source
    staged: int = 0
    edited: bool = False
    owner: str = ""
    lost: int = 0

    @property
    def same_code(self) -> bool:
        return self.staged > 0


_families: Final[OrderedDict[Place, Family]] = OrderedDict()
"""By place."""
_formers: Final[OrderedDict[object, Former]] = OrderedDict()
"""By place, and by module and name where these tell which function is meant."""


def forget() -> None:
    """Begins anew, as if nothing had been staged before."""
    _families.clear()
    _formers.clear()


Place = tuple[Source, int]


class _Definition(NamedTuple):
    """The code behind a Python function, and the object that it is staged for, if it is a method."""

    code: CodeType
    owner: Any

    @property
    def where(self) -> Source:
        return Source(self.code.co_filename, self.code.co_firstlineno, self.code.co_qualname)

    @property
    def place(self) -> Place:
        """The line and the column, which tell two lambdas of one line apart."""
        columns = [start for _, _, start, _ in self.code.co_positions() if start]
        return self.where, min(columns, default=0) if self.code.co_name == "<lambda>" else 0


def _definition(function: Any) -> _Definition | None:
    """Where the Python function was written, through partial functions and methods; None for what is not the user's."""
    target: Any = function.python_function
    owner: Any = None
    while isinstance(target, partial):
        target = target.func
    instance = getattr(target, "__limelight_instance__", None)
    if instance is not None:
        target, owner = target.__wrapped__, instance()
    elif isinstance(target, MethodType):
        target, owner = target.__func__, target.__self__
    elif not isinstance(target, FunctionType):
        called = type(target).__dict__.get("__call__")
        target, owner = getattr(called, "__wrapped__", called), target
    code = getattr(target, "__code__", None)
    return None if code is None or source_line.is_library(code) else _Definition(code, owner)


def before(function: Any) -> Before | None:
    """What was staged from the definition of `function` before it, as far as that traced."""
    definition = _definition(function)
    if definition is None:
        return None
    where, mine = definition.where, function.trace_cache.history
    family = _families.get(definition.place)
    if family is not None and family.is_of(definition.code):
        staged = sum([history is not mine for history in list(family.latest)])
        other = definition.owner is not None and not family.knows(definition.owner)
        owner = type(definition.owner).__name__ if other else ""
        return Before(where, staged, owner=owner, lost=family.lost) if staged else None
    formers = [former for name in _keys(function, definition) if (former := _formers.get(name)) is not None]
    return Before(formers[0].where, edited=formers[0].digest != _digest(definition.code)) if formers else None


def family_of(function: Any) -> Family:
    """The family of this definition, which the function joins; an empty one without a definition."""
    definition = _definition(function)
    if definition is None:
        return Family()
    place = definition.place
    family = _families.get(place)
    if family is None or not family.is_of(definition.code):
        family = _families[place] = Family(definition.code)
        former = Former(definition.where, _digest(definition.code))
        for name in _keys(function, definition):
            _formers[name] = former
            _formers.move_to_end(name)
    _families.move_to_end(place)
    for table in (_families, _formers):
        while len(table) > _KEPT:
            table.popitem(last=False)
    return family.joined_by(function.trace_cache.history, definition.owner)


def _weak(owner: Any) -> Any:
    """A weak reference, where there can be one."""
    try:
        return weakref.ref(owner)
    except TypeError:
        return None


def _keys(function: Any, definition: _Definition) -> list[object]:
    """What a definition is known by: module and name, unless it is one of several by that name, and its place."""
    module = getattr(function.python_function, "__module__", None)
    place, name = definition.place, definition.where.function
    return [place] if "<" in name else [(module, name), place]


def _digest(code: CodeType) -> int:
    """A hash of what code does, wherever it stands."""
    constants = [_digest(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return hash((code.co_code, *names, *constants))
