"""The definitions that functions were staged from: made anew in a loop, run again as a cell is, or edited since?

Definitions are remembered as positions, hashes and weak references to code, so nothing is kept alive.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from types import CodeType
from typing import Any, Final, NamedTuple

from limelight import source
from limelight.source import Source
from limelight.staging.history import WINDOW, History

_KEPT: Final = 1000
_OFTEN: Final = 5


class Family:
    """The functions staged from one run of a definition: the latest histories, which outlive them, and the warnings."""

    def __init__(self, code: CodeType | None = None) -> None:
        self.latest: deque[History] = deque(maxlen=WINDOW)
        self.warned = 0
        self._code = None if code is None else weakref.ref(code)

    def is_of(self, code: CodeType) -> bool:
        """Whether it is this very code, which a loop stages anew; code that ran again is equal, and another object."""
        return self._code is not None and self._code() is code

    def joined_by(self, history: History) -> Family:
        """With `history` among the latest."""
        if not any(history is one for one in self.latest):
            self.latest.append(history)
        return self

    @property
    def is_remade_often(self) -> bool:
        """Whether the last five functions were called ten times or fewer in all."""
        calls = [history.calls for history in self.latest]
        return len(calls) >= _OFTEN and sum(calls[-_OFTEN:]) <= WINDOW


class Former(NamedTuple):
    """An earlier definition by the same name, or in the same place."""

    where: Source
    digest: int


class Before(NamedTuple):
    """What is known of a function that was staged before: how often, from the same code, or from which other."""

    where: Source
    staged: int = 0
    edited: bool = False

    @property
    def same_code(self) -> bool:
        return self.staged > 0


_families: Final[OrderedDict[Source, Family]] = OrderedDict()
"""By place."""
_formers: Final[OrderedDict[object, Former]] = OrderedDict()
"""By place, and by module and name where these tell which function is meant."""


def forget() -> None:
    """Begins anew, as if nothing had been staged before."""
    _families.clear()
    _formers.clear()


def definition(function: Any) -> Source | None:
    """Where the Python function was written; None for what has no code of its own, and for a method of one instance."""
    code = getattr(function.python_function, "__code__", None)
    if code is None or source.is_library(code):
        return None
    return Source(code.co_filename, code.co_firstlineno, code.co_qualname)


def before(function: Any) -> Before | None:
    """What was staged from the definition of `function` before it, as far as that traced."""
    where = definition(function)
    if where is None:
        return None
    code, mine = function.python_function.__code__, function.trace_cache.history
    family = _families.get(where)
    if family is not None and family.is_of(code):
        staged = sum([history is not mine for history in list(family.latest)])
        return Before(where, staged) if staged else None
    formers = [former for name in _names(function, where) if (former := _formers.get(name)) is not None]
    return Before(formers[0].where, edited=formers[0].digest != _digest(code)) if formers else None


def family_of(function: Any) -> Family:
    """The family of this definition, which the function joins; an empty one without a definition."""
    where = definition(function)
    if where is None:
        return Family()
    code = function.python_function.__code__
    family = _families.get(where)
    if family is None or not family.is_of(code):
        family = _families[where] = Family(code)
        former = Former(where, _digest(code))
        for name in _names(function, where):
            _formers[name] = former
            _formers.move_to_end(name)
    _families.move_to_end(where)
    for table in (_families, _formers):
        while len(table) > _KEPT:
            table.popitem(last=False)
    return family.joined_by(function.trace_cache.history)


def _names(function: Any, where: Source) -> list[object]:
    """What a definition is known by: module and name, unless it is one of several by that name, and its place."""
    module = getattr(function.python_function, "__module__", None)
    return [where] if "<" in where.function else [(module, where.function), where]


def _digest(code: CodeType) -> int:
    """A hash of what code does, wherever it stands."""
    constants = [_digest(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return hash((code.co_code, *names, *constants))
