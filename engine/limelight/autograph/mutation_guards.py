"""Objects that outlive a staged block must not be changed in it: the change would happen while tracing, once.

Refused, at the line: assignments to parts of such objects, methods that change a container, taking an iterator's items,
drawing from a generator of Python's or NumPy's, and assigning a global. What functions that the block calls do to
globals and cells is compared afterwards, and undone (`reachable_state`).
"""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from limelight.autograph.context import Block, here
from limelight.core.tensor import Tensor
from limelight.errors import ControlFlowError
from limelight.user_code import source_line

_CONTAINERS: Final = (list, dict, set, bytearray, np.ndarray)
_METHODS: Final = frozenset({"append", "extend", "insert", "pop", "popitem", "remove", "clear", "add", "discard"}) | {
    *("update", "setdefault", "sort", "reverse", "fill", "put"),
    *("difference_update", "intersection_update", "symmetric_difference_update"),
}
_GENERATORS: Final = (random.Random, np.random.Generator, np.random.RandomState)
_EVERYBODYS: Final = tuple(getattr(draw, "__self__", None) for draw in (random.random, np.random.rand))
"""The generators behind the functions of modules."""
_SETTERS: Final = (setattr, delattr, operator.setitem, operator.delitem)


def writes(target: Any, said: str, in_place: bool = False) -> Any:
    """`target`, of which the part that is written `said` is assigned next; or which changes itself, `in_place`."""
    if here.blocks and not isinstance(target, Tensor):  # that refuses it in any case
        if not in_place:
            _refuse(target, f"`{said}` is assigned")
        elif isinstance(target, _CONTAINERS):
            _refuse(target, f"`{said}` is changed in place")
    return target


def rebinds(name: str) -> None:
    """The global variable `name` is assigned next."""
    if here.blocks:
        raise ControlFlowError(
            f"`{name}`, a global variable, is assigned in {here.blocks[-1].what}{source_line.here()}. "
            "Whoever reads it afterwards would get the trace's symbolic tensor, or what it was traced with. Assign a "
            "local variable there and return it; keep state in a ll.Variable (.assign)"
        )


def calls(method: Any, args: tuple[Any, ...]) -> None:
    """A built-in function, or a method, is called next."""
    owner = getattr(method, "__self__", None)
    if isinstance(owner, _GENERATORS) and (_older(owner) or owner in _EVERYBODYS):
        raise ControlFlowError(
            f"{method.__name__}() draws a random number in {here.blocks[-1].what}{source_line.here()}. That "
            "would happen once, while tracing, so that each iteration and each call would get the same one. Write "
            "ll.random.normal, ll.random.uniform and their like, or draw before the staged function and pass the values"
        )
    if method is next and args:
        iterates(args[0], "next() takes")
    if isinstance(owner, _CONTAINERS) and getattr(method, "__name__", "") in _METHODS:
        _refuse(owner, f".{method.__name__}() changes a {type(owner).__name__}")
    elif method in _SETTERS and args:
        _refuse(args[0], f"{method.__name__}() changes a {type(args[0]).__name__}")


def iterates(iterated: Any, what: str = "a `for` takes") -> None:
    """Python takes items of `iterated` next, which an iterator does not give again."""
    if here.blocks and isinstance(iterated, Iterator) and (block := _older(iterated)) is not None:
        raise ControlFlowError(
            f"{what} items of a {type(iterated).__name__} in {block.what}{source_line.here()}. That would "
            "happen once, while tracing, whatever the tensor says. Make what it goes over a tensor, with ll.stack or "
            "ll.constant, and take rows by their number, rows[i]; or take the items before"
        )


def _older(target: Any) -> Block | None:
    """The innermost block being staged that `target` was there before."""
    return next((x for x in reversed(here.blocks) if id(target) in x.outer.objects), None)


def _refuse(target: Any, what: str) -> None:
    block = _older(target)
    if block is not None:
        raise ControlFlowError(
            f"{what} in {block.what}{source_line.here()}. That would happen once, while tracing, whatever "
            "the tensor says. Assign a local variable there and use it afterwards; keep state in a ll.Variable "
            "(.assign); collect the results of a loop with ll.scan or ll.map_fn"
        )
