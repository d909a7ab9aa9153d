"""Objects that outlive a staged block must not be changed in it: the change would happen while tracing, once."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from limelight import source
from limelight.errors import ControlFlowError
from limelight.staging.autograph.context import here
from limelight.tensor import Tensor

_CONTAINERS: Final = (list, dict, set, bytearray, np.ndarray)
_METHODS: Final = frozenset({"append", "extend", "insert", "pop", "popitem", "remove", "clear", "add", "discard"}) | {
    *("update", "setdefault", "sort", "reverse", "fill", "put"),
    *("difference_update", "intersection_update", "symmetric_difference_update"),
}
_SETTERS: Final = (setattr, delattr, operator.setitem, operator.delitem)


def writes(target: Any, said: str, in_place: bool = False) -> Any:
    """`target`, of which the part that is written `said` is assigned next; or which changes itself, `in_place`."""
    if here.blocks and not isinstance(target, Tensor):  # that refuses it in any case
        if not in_place:
            _refuse(target, f"`{said}` is assigned")
        elif isinstance(target, _CONTAINERS):
            _refuse(target, f"`{said}` is changed in place")
    return target


def calls(method: Any, args: tuple[Any, ...]) -> None:
    """A built-in function or method is called next."""
    owner = getattr(method, "__self__", None)
    if isinstance(owner, _CONTAINERS) and getattr(method, "__name__", "") in _METHODS:
        _refuse(owner, f".{method.__name__}() changes a {type(owner).__name__}")
    elif method in _SETTERS and args:
        _refuse(args[0], f"{method.__name__}() changes a {type(args[0]).__name__}")


def _refuse(target: Any, what: str) -> None:
    block = next((x for x in reversed(here.blocks) if id(target) in x.outer.objects), None)
    if block is not None:
        raise ControlFlowError(
            f"{what} in {block.what}{source.at(source.user_line())}. That would happen once, while tracing, whatever "
            "the tensor says. Assign a local variable there and use it afterwards; keep state in a ll.Variable "
            "(.assign); collect the results of a loop with ll.scan or ll.map_fn"
        )
