"""Objects that outlive a staged block must not be changed in it: the change would happen while tracing, once."""

from __future__ import annotations

from types import CellType, CodeType, FunctionType
from typing import Any, Final

import numpy as np

from limelight import source
from limelight.errors import ControlFlowError
from limelight.staging.autograph.context import here

_CONTAINERS: Final = (list, dict, set, bytearray, np.ndarray)
_METHODS: Final = frozenset({"append", "extend", "insert", "pop", "popitem", "remove", "clear", "add", "discard"}) | {
    *("update", "setdefault", "sort", "reverse", "fill", "put"),
    *("difference_update", "intersection_update", "symmetric_difference_update"),
}
_DEEP: Final = 3
_MOST: Final = 10_000
"""So many objects are looked at; a list of more than that is hardly changed by name."""


def reachable(*functions: Any) -> dict[int, Any]:
    """The objects that `functions` can reach by their variables, by identity (and kept alive, so that it stays so)."""
    found: dict[int, Any] = {}
    waiting = [(value, 0) for function in functions if function is not None for value in _variables(function)]
    while waiting and len(found) < _MOST:
        value, depth = waiting.pop()
        if id(value) in found or isinstance(value, _PLAIN):
            continue
        found[id(value)] = value
        if depth < _DEEP:
            waiting += [(part, depth + 1) for part in _parts(value)]
    return found


_PLAIN: Final = (int, float, complex, str, bytes, type, FunctionType, type(None), type(np))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set):
        return list(value)
    return list(getattr(value, "__dict__", {}).values())


def _variables(function: Any) -> list[Any]:
    if not isinstance(function, FunctionType):
        return []
    names = _global_names(function.__code__)
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    return values + [_content(cell) for cell in function.__closure__ or ()]


def _global_names(code: CodeType) -> set[str]:
    inner = [_global_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    return set(code.co_names).union(*inner)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def writes(target: Any, said: str) -> None:
    """Assigning to `said`, a part of `target`, comes next."""
    if here.blocks:
        place, in_place, _ = said.partition(": in place")
        if not in_place or isinstance(target, _CONTAINERS):
            _refuse(target, f"`{place}` is changed in place" if in_place else f"`{place}` is assigned")


def calls(method: Any) -> None:
    """A built-in method is called next."""
    owner = getattr(method, "__self__", None)
    if isinstance(owner, _CONTAINERS) and getattr(method, "__name__", "") in _METHODS:
        _refuse(owner, f".{method.__name__}() changes a {type(owner).__name__}")


def _refuse(target: Any, what: str) -> None:
    block = next((x for x in reversed(here.blocks) if id(target) in x.outer), None)
    if block is not None:
        raise ControlFlowError(
            f"{what} in {block.what}{source.at(source.user_line())}. That would happen once, while tracing, whatever "
            "the tensor says. Assign a local variable there and use it afterwards; keep state in a ll.Variable "
            "(.assign); collect the results of a loop with ll.scan or ll.map_fn"
        )
