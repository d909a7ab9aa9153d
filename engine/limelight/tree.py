"""Nests of values as trees: `flatten`, `unflatten`, `map`, `leaves`, `structure`, `paths`, `reduce`.

Lists, tuples, named tuples, dictionaries (by sorted key) and dataclasses are the nodes; all else is a leaf, None too:
the gradient of what is not connected is None, and must keep its place. The names are those of `jax.tree`, where None is
an empty tree, and the leaves those of TensorFlow's `nest`.

>>> import limelight as ll
>>> ll.tree.map(lambda x, y: x + y, {"b": 1, "a": [2, 3]}, {"b": 10, "a": [20, 30]})
{'b': 11, 'a': [22, 33]}
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from limelight.core import nest
from limelight.core.nest import Structure
from limelight.errors import ArgumentError
from limelight.user_code import hints

__all__ = ["flatten", "leaves", "map", "paths", "reduce", "structure", "unflatten"]


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of `tree` in order, and its structure, which is hashable.

    >>> import limelight as ll
    >>> ll.tree.flatten({"b": 1, "a": (2, 3)})[0]
    [2, 3, 1]
    """
    return nest.flatten(tree)


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree of `structure` with these leaves. Raises ArgumentError for another number of leaves.

    >>> import limelight as ll
    >>> ll.tree.unflatten(ll.tree.structure({"b": 1, "a": (2, 3)}), [20, 30, 10])
    {'b': 10, 'a': (20, 30)}
    """
    if not isinstance(structure, Structure):
        given = "leaves, then the structure" if isinstance(leaves, Structure) else type(structure).__name__
        raise ArgumentError(
            f"tree.unflatten: the structure comes first, as ll.tree.structure(tree) gives it, then the leaves; got "
            f"{given}"
        )
    return nest.unflatten(structure, leaves)


def map(function: Callable[..., Any], tree: Any, /, *others: Any) -> Any:
    """`tree` with `function(leaf, *leaves of the others)` at each leaf. Raises ArgumentError where structures differ.

    >>> import limelight as ll
    >>> ll.tree.map(abs, [-1, {"x": -2}])
    [1, {'x': 2}]
    """
    _require_function("map", function, tree)
    return nest.map_structure(function, tree, *others)


def leaves(tree: Any) -> list[Any]:
    """The leaves of `tree`, in order.

    >>> import limelight as ll
    >>> ll.tree.leaves([1, (2, None)])
    [1, 2, None]
    """
    return nest.leaves_of(tree)


def structure(tree: Any) -> Structure:
    """The structure of `tree` without its leaves; equal for trees of the same form.

    >>> import limelight as ll
    >>> print(ll.tree.structure([1, {"x": 2}]))
    [*, {x: *}]
    """
    return nest.flatten(tree)[1]


def paths(tree: Any, root: str = "") -> list[str]:
    """Code that leads from `root` to each leaf, in the order of `leaves`.

    >>> import limelight as ll
    >>> ll.tree.paths({"x": [1, 2]}, "batch")
    ['batch["x"][0]', 'batch["x"][1]']
    """
    return nest.paths(structure(tree), root)


def reduce(function: Callable[[Any, Any], Any], tree: Any, *initial: Any) -> Any:
    """The leaves joined one after the other by `function(so far, leaf)`, from `initial` on if that is given.

    >>> import limelight as ll
    >>> ll.tree.reduce(lambda total, x: total + x, [1, (2, 3)])
    6
    """
    _require_function("reduce", function, tree)
    return functools.reduce(function, leaves(tree), *initial)


def _require_function(name: str, function: Any, tree: Any) -> None:
    if not callable(function):
        swapped = f"; write ll.tree.{name}(function, tree)" if callable(tree) else ""
        raise ArgumentError(f"tree.{name}: the function comes first, got {type(function).__name__}{swapped}")


if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("tree")
__dir__ = hints.listing(__all__)
