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

from limelight.autograph.context import Block, changes_next, here
from limelight.autograph.local_containers import age
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


def writes(target: Any, said: str, in_place: bool = False, name: str = "") -> Any:
    """`target`, of which the part that is written `said` is assigned next; or which changes itself, `in_place`.

    `name` is what `target` itself is written as.
    """
    if here.blocks and not isinstance(target, Tensor):  # that refuses it in any case
        if not in_place:
            _change(target, f"`{said}` is assigned", name)
        elif isinstance(target, _CONTAINERS):
            _change(target, f"`{said}` is changed in place", said)
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
        _change(owner, f".{method.__name__}() changes a {type(owner).__name__}", _name_of(owner))
    elif method in _SETTERS and args:
        _change(args[0], f"{method.__name__}() changes a {type(args[0]).__name__}", _name_of(args[0]))


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


def _change(target: Any, what: str, name: str) -> None:
    """Notes a change of a container that converted code has made, as state of the blocks; any other is refused."""
    made = age(target)
    if made is None:
        _refuse(target, what, _older(target))
    elif made < here.blocks[-1].changes.since:
        condition = next((x for x in here.blocks if x.is_condition and made < x.changes.since), None)
        _refuse(target, what, condition)
        changes_next(target, name, source_line.here())


def _name_of(container: Any) -> str:
    """What the code of the blocks calls `container`."""
    names = (x.outer.names.get(id(container)) for x in reversed(here.blocks))
    return next((name for name in names if name), f"a {type(container).__name__}")


def _refuse(target: Any, what: str, block: Block | None) -> None:
    if block is not None:
        raise ControlFlowError(
            f"{what} in {block.what}{source_line.here()}. That would happen once, while tracing, whatever "
            f"the tensor says{_outside(target)}. Assign a local variable there and use it afterwards; keep state in a "
            "ll.Variable (.assign); collect the results of a loop with ll.scan or ll.map_fn"
        )


def _outside(target: Any) -> str:
    """Why a list or dictionary is refused that might have been state, had the converted code made it."""
    kind = type(target)
    if kind not in (list, dict) or age(target) is not None:
        return ""
    return (
        f", and who else knows this {kind.__name__}, which the function has not made itself, would see it. Change a "
        f"copy of it, as by {kind.__name__}(...), made before"
    )
