"""Changes in place that a cell makes to the notebook's containers and objects, made again at each run.

A trace finds what the cell has changed, once; a `Write` makes the same change to what the notebook holds then: elements
that were there before are those that are there now, tensors are those that the graph has computed, and plain values are
the trace's, since all that they depend on is part of its key.
"""

from __future__ import annotations

import operator
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from limelight.user_code.source_line import Source
from limelight_kernel.inputs.contents import Holder, Step, delete_attribute, mapping, set_attribute
from limelight_kernel.staged.borrowed_state import Change, Itself, Place
from limelight_kernel.staged.recipes import ArrayResult, Constant, Recipe, RecipeBook, Result, Run

_GONE: Final = object()
Apply: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Write:
    """What to change at a place: `items` are set, or, where `whole`, all that it holds then; `gone` are removed.

    `adds`: the items are added to whatever it holds.
    """

    place: Place | Itself
    attributes: bool
    items: list[tuple[Any, Recipe]]
    gone: tuple[Any, ...] = ()
    whole: bool = False
    adds: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """What is changed, as code."""
        root = str(self.place)
        if self.whole or self.adds or not isinstance(self.place, Place):
            return (root,)
        kind = "attribute" if self.attributes else "item"
        keys = [*[key for key, _ in self.items], *self.gone]
        return tuple([root if key is None else Step(kind, key).after(root) for key in keys])

    def constants(self, inputs: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
        """What is set to values of the trace: as code, what stands there now, and the value."""
        old, root = Holder(self.place.find(inputs), self.attributes).contents(), str(self.place)
        kind = "attribute" if self.attributes else "item"
        return [
            (Step(kind, key).after(root), old.get(key), recipe.value)
            for key, recipe in self.items
            if isinstance(old, dict) and isinstance(recipe, Constant)
        ]

    def prepared(self, run: Run) -> Apply:
        """Finds and makes all that is needed, before anything is changed; returns what makes the change."""
        holder = Holder(self.place.find(run.inputs), self.attributes)
        items = [(key, recipe.make(run)) for key, recipe in self.items]
        if self.adds:
            return lambda: _add(holder.of, items)
        if self.whole:
            is_mapping = isinstance(holder.contents(), dict)
            return lambda: holder.put(dict(items) if is_mapping else [value for _, value in items])
        return lambda: _update(holder, items, self.gone)


@dataclass(frozen=True, slots=True)
class ArrayWrite:
    """An array of NumPy's that the cell changes in place, by `+=` and the like: it gets what the graph has computed.

    `line` changes it first; `rebound`: it does so in a branch or a loop of the graph, which binds its name anew.
    """

    place: Place
    recipe: Result | ArrayResult
    line: Source
    rebound: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return (str(self.place),)

    def prepared(self, run: Run) -> Apply:
        """Finds the array and its new numbers; returns what makes the change."""
        array, new = self.place.find(run.inputs), self.recipe.make(run)
        return lambda: np.copyto(array, np.asarray(new), casting="same_kind")


def _add(x: Any, items: list[tuple[Any, Any]]) -> None:
    if isinstance(x, dict):
        for key, value in items:
            x[key] = value
    elif isinstance(x, list | deque):
        x.extend([value for _, value in items])
    else:
        x.update([value for _, value in items])


def _update(holder: Holder, items: list[tuple[Any, Any]], gone: tuple[Any, ...]) -> None:
    x = holder.of
    if isinstance(x, (set, weakref.WeakSet)):
        x.difference_update(gone)
        x.update([value for _, value in items])
        return
    for key in gone:
        if holder.attributes:
            delete_attribute(x, key)
        else:
            mapping(x).pop(x, key, None)
    for key, value in items:
        if holder.attributes:
            set_attribute(x, key, value)
        else:
            mapping(x).__setitem__(x, key, value)


def changed_values(change: Change) -> list[tuple[Any, Any]]:
    """The keys and values that a change puts there."""
    return _difference(change)[0]


def write_of(change: Change, book: RecipeBook) -> Write:
    """What makes the change again."""
    items, gone, whole = _difference(change)
    root = str(change.place)
    kind = "attribute" if change.holder.attributes else "item"
    if isinstance(change.now, dict) and not change.holder.attributes:
        book.refuse_keys(root, dict(items))
    recipes = [(key, book.recipe(Step(kind, key).after(root), value)) for key, value in items]
    return Write(change.place, change.holder.attributes, recipes, gone, whole, change.only_adds or _adds(change))


def _difference(change: Change) -> tuple[list[tuple[Any, Any]], tuple[Any, ...], bool]:
    """What is set, what is removed, and whether the first is all that there is."""
    before, now = change.before, change.now
    if isinstance(before, dict) and isinstance(now, dict):
        return _of_dictionary(before, now, change.holder.attributes)
    if isinstance(before, set) and isinstance(now, set):
        return [(None, x) for x in now - before], tuple(before - now), False
    known = len(before) if _adds(change) else 0
    return list(enumerate(now))[known:], (), True


def _adds(change: Change) -> bool:
    """Whether a list has got elements at its end, and nothing else: what it holds by then need not be what it held."""
    before, now = change.before, change.now
    if not isinstance(change.holder.of, list) or not isinstance(before, list) or not isinstance(now, list):
        return False
    return len(before) < len(now) and all(map(operator.is_, before, now))


def _of_dictionary(
    before: dict[Any, Any], now: dict[Any, Any], attributes: bool
) -> tuple[list[tuple[Any, Any]], tuple[Any, ...], bool]:
    stayed = [key for key in before if key in now]
    if not attributes and list(now)[: len(stayed)] != stayed:
        return list(now.items()), (), True
    changed = [(key, x) for key, x in now.items() if before.get(key, _GONE) is not x]
    return changed, tuple([key for key in before if key not in now]), False
