"""Lists and dictionaries of a loaded module: they hold what its traces use, and so stay as they are.

A list whose items could be replaced would show other variables than the traces compute with.
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn

from limelight.errors import ArgumentError


def _refused(*_: Any, **__: Any) -> NoReturn:
    raise ArgumentError(
        "a list or dictionary of a loaded module cannot be changed: its traces would go on with what was loaded; "
        "assign to its variables, or write a module that calls the loaded one"
    )


class HeldList(list[Any]):
    """A list of variables, modules, and nests of them, that cannot be changed."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused
    append = extend = insert = pop = remove = clear = sort = reverse = _refused

    def __deepcopy__(self, memo: dict[int, Any]) -> HeldList:
        memo[id(self)] = clone = HeldList([copy.deepcopy(x, memo) for x in self])
        return clone

    def __reduce_ex__(self, protocol: Any) -> Any:
        return HeldList, (list(self),)


class HeldDict(dict[Any, Any]):
    """A dictionary of the same."""

    __setitem__ = __delitem__ = __ior__ = _refused
    pop = popitem = clear = update = setdefault = _refused

    def __deepcopy__(self, memo: dict[int, Any]) -> HeldDict:
        memo[id(self)] = clone = HeldDict({key: copy.deepcopy(x, memo) for key, x in self.items()})
        return clone

    def __reduce_ex__(self, protocol: Any) -> Any:
        return HeldDict, (dict(self),)
