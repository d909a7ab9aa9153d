"""The code of the user's classes that the inputs of a cell lead to, however the cell comes to run it.

Python calls special methods without a name that anybody reads, and `for block in blocks: block(x)` calls methods of
what no name leads to. Where a class is patched, or its module edited under `%autoreload`, its instances stay the same
objects: so the code of their classes is compared.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import limelight as ll
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.user_code.names_read import contents, is_users
from limelight_kernel.inputs.contents import ATOMS, CONTAINERS

METHODS: Final = "the methods of "
"""What is said of the code of a class, before its name."""
_MOST_OBJECTS: Final = 200  # that are looked at for their classes
_MOST_VERSIONS: Final = 16  # of one class: one that is again what it was finds its trace again
_WRAPPED: Final = {
    property: "fget",
    staticmethod: "__func__",
    classmethod: "__func__",
    functools.cached_property: "func",
}
"""What methods lie in, and by what name."""


class Version:
    """Stands for the functions of a class as they were: another one for other code."""

    def __init__(self, number: int) -> None:
        self.__limelight_name__ = f"version {number}"


class ClassCode:
    """The functions of one class: `now()` is the same version as long as they have the same code.

    Args:
        kind: the class.
        numbers: a new one for each version, of this class or another.
    """

    def __init__(self, kind: type, numbers: Iterator[int]) -> None:
        self._kind, self._numbers = kind, numbers
        self._versions: list[tuple[list[Any], Version]] = []

    def now(self) -> Version:
        """What stands for them as they are."""
        parts = _parts(self._kind)
        for known, version in self._versions[::-1]:
            if len(parts) == len(known) and all(map(operator.is_, parts, known)):
                return version
        new = Version(next(self._numbers))
        self._versions = [*self._versions[1 - _MOST_VERSIONS :], (parts, new)]
        return new


def _parts(kind: type) -> list[Any]:
    """What makes up the functions of a class; one made anew by the same lines is the same."""
    parts: list[Any] = []
    for member in kind.__dict__.values():
        wrapped = _WRAPPED.get(type(member))
        function = member if wrapped is None else getattr(member, wrapped)
        if type(function) is types.FunctionType:
            parts += function.__code__, function.__defaults__, function.__kwdefaults__, function.__closure__
    return parts


def is_users_class(kind: type) -> bool:
    """Whether the user has written a class, in the notebook or in a module."""
    if kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and is_users(file) and not kind.__module__.startswith("limelight")


def classes_of(values: Iterable[Any]) -> list[type]:
    """The classes that the user has written of what `values` lead to, with those that they inherit from.

    >>> Block = type("Block", (), {"__module__": "__main__"})
    >>> classes_of([{"blocks": [Block(), Block()]}, 3.0]) == [Block]
    True
    """
    found: dict[type, None] = {}
    met: dict[int, Any] = {}
    waiting = deque(x for x in values if type(x) not in ATOMS)
    while waiting and len(met) < _MOST_OBJECTS:
        x = waiting.popleft()
        if id(x) not in met:
            met[id(x)] = x
            found.update(dict.fromkeys(kind for kind in (*_mro(x), *type(x).__mro__) if is_users_class(kind)))
            waiting += [part for part in _leads_to(x) if type(part) not in ATOMS]
    return list(found)


def _mro(x: Any) -> tuple[type, ...]:
    return x.__mro__ if isinstance(x, type) else ()


def _leads_to(x: Any) -> Iterator[Any]:
    """What code gets at through `x` without a name of its own."""
    if isinstance(x, (Tensor, Resource)):
        return
    if isinstance(x, (*CONTAINERS, tuple, frozenset)):
        yield from x.values() if isinstance(x, dict) else x
    elif isinstance(x, types.FunctionType):
        yield from [contents(cell) for cell in x.__closure__ or ()]
    elif isinstance(x, types.MethodType):
        yield x.__self__
    elif isinstance(x, functools.partial):
        yield from (x.func, *x.args, *x.keywords.values())
    if isinstance(x, (ll.Module, types.SimpleNamespace)) or is_users_class(type(x)):
        yield from getattr(x, "__dict__", {}).values()
