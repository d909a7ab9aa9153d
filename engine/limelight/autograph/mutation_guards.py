"""Objects that outlive a staged block must not be changed in it: the change would happen while tracing, once.

Refused, at the line: assignments to parts of such objects, methods that change a container, taking an iterator's items,
drawing from a generator of Python's or NumPy's, and assigning a global. What functions that the block calls do to
globals and cells is compared afterwards, and undone (`reachable_state`).
"""

from __future__ import annotations

import bisect
import heapq
import operator
import random
from collections import deque
from collections.abc import Iterator
from functools import partial
from types import MethodDescriptorType, WrapperDescriptorType
from typing import Any, Final

import numpy as np

from limelight.autograph.container_aliases import refuse_change
from limelight.autograph.context import Block, changes_next, here, refusal
from limelight.autograph.local_containers import age, links
from limelight.core.tensor import Tensor
from limelight.errors import ControlFlowError
from limelight.user_code import source_line

_CONTAINERS: Final = (list, dict, set, deque, bytearray, np.ndarray)
_METHODS: Final = frozenset({"append", "extend", "insert", "pop", "popitem", "remove", "clear", "add", "discard"}) | {
    *("update", "setdefault", "sort", "reverse", "fill", "put", "itemset", "partition", "resize"),
    *("appendleft", "extendleft", "popleft", "rotate", "move_to_end", "subtract"),
    *("difference_update", "intersection_update", "symmetric_difference_update"),
    *("__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__", "__iand__", "__ixor__", "__isub__"),
}
_OF_OBJECTS: Final = frozenset({"__setattr__", "__delattr__"})
"""Methods that change any object."""
_GENERATORS: Final = (random.Random, np.random.Generator, np.random.RandomState)
_UNBOUND: Final = (MethodDescriptorType, WrapperDescriptorType)
_EVERYBODYS: Final = tuple(getattr(draw, "__self__", None) for draw in (random.random, np.random.rand))
"""The generators behind the functions of modules."""
_OF_FIRST: Final = (
    *(setattr, delattr, operator.setitem, operator.delitem, operator.iadd, operator.iconcat, operator.imul),
    *(operator.ior, operator.iand, operator.ixor, operator.isub, np.copyto, np.put, np.place, np.putmask),
    *(np.put_along_axis, np.fill_diagonal),
    *(bisect.insort, bisect.insort_left, heapq.heapify, heapq.heappush, heapq.heappop),
    *(heapq.heapreplace, heapq.heappushpop),
)
"""Functions that change their first argument."""


def writes(target: Any, said: str, in_place: bool = False, name: str = "") -> Any:
    """`target`, of which the part that is written `said` is assigned next; or which changes itself, `in_place`.

    `name` is what `target` itself is written as.
    """
    if (here.blocks or links()) and not isinstance(target, Tensor):  # that refuses it in any case
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


def calls(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
    """A function or a method that is no converted code is called next."""
    while isinstance(method, partial):
        method, args, kwargs = method.func, (*method.args, *args), {**method.keywords, **(kwargs or {})}
    owner = getattr(method, "__self__", None)
    if here.blocks and isinstance(owner, _GENERATORS) and (_older(owner) or owner in _EVERYBODYS):
        raise ControlFlowError(
            f"{method.__name__}() draws a random number in {here.blocks[-1].what}{source_line.here()}. That "
            "would happen once, while tracing, so that each iteration and each call would get the same one. Write "
            "ll.random.normal, ll.random.uniform and their like, or draw before the staged function and pass the values"
        )
    if method is next and args and here.blocks and not hasattr(type(args[0]), "__limelight_rounds__"):  # ours: an op
        iterates(args[0], "next() takes")
    for target, said in _changed_by(method, owner, args, kwargs or {}):
        _change(target, f"{said}() changes a {type(target).__name__}", _name_of(target))


def _changed_by(method: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """What a call changes, and what it goes by."""
    name = getattr(method, "__name__", "")
    if type(method) in _UNBOUND and args:  # list.append(a, x)
        owner = args[0]
    if name in _METHODS if isinstance(owner, _CONTAINERS) else name in _OF_OBJECTS:
        yield owner, f".{name}"
    elif any(method is x for x in _OF_FIRST) and args and (name.endswith("attr") or isinstance(args[0], _CONTAINERS)):
        yield args[0], name
    out = kwargs.get("out")
    for target in out if isinstance(out, tuple) else (out,):
        if isinstance(target, np.ndarray):
            yield target, name


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
    refuse_change(target, what)
    made = age(target)
    if not here.blocks:
        return
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
        raise refusal(target, what, block.what)
