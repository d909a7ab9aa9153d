"""Which parts of a call's arguments, or of a result, are one and the same object.

A trace has containers of its own around symbolic tensors of its own. What lies at two places of the arguments is one
object to Python: a change through one name is seen through the other, and `xs[0] is x` says so. So it is one object to
the trace, too. A trace that was made for such a call, or of code that changes containers or asks for identities
(`user_code.identity_questions`), holds for calls that are alike in this, and the key says in words what is the same.
Other functions pay nothing for it.

Variables are not told of here: their keys are numbered (`key_parts`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import nest
from limelight.core.nest import LEAF, Structure
from limelight.core.tensor import Tensor
from limelight.staging.key import Call
from limelight.staging.signature import Signature

NOTHING: Final = 0
CONTAINERS: Final = 1
TENSORS: Final = 2
"""Of what a function may tell whether it is the same: nothing, lists and dictionaries, tensors and arrays as well."""


class Sharing(NamedTuple):
    """What lies at two places or more.

    `words` say which, as in "b is a, rows[1] is a"; `containers` and `leaves` lead from the number of a place to that
    of the first one at which the same object lies. Containers and leaves together are counted as the structure is
    written, from 0 for the outermost; leaves among themselves.
    """

    words: str = ""
    containers: Mapping[int, int] = {}
    leaves: Mapping[int, int] = {}


_NONE: Final = Sharing()


def of(tree: Any, roots: Sequence[str] = (), tensors: bool = True) -> Sharing:
    """What is the same in a nest.

    Args:
        tree: the nest.
        roots: what the user's code calls its children, where it has no name for the nest.
        tensors: whether tensors and arrays count, too.

    >>> a = [1]
    >>> of((a, {"k": a}), ("x", "y")).words
    'y["k"] is x'
    """
    walk = _Walk(tensors)
    walk.visit(tree, "", roots)
    return Sharing(", ".join(walk.words), walk.containers, walk.leaves) if walk.leaves or walk.containers else _NONE


def of_call(call: Call, signature: Signature, tensors: bool) -> Sharing:
    """What is the same among the arguments of a call."""
    args = call.args
    if len(args) < 2 and not call.kwargs and not any(nest.opened(x) for x in args):
        return _NONE
    roots = [signature.root(i) for i in range(len(args))]
    if not signature.takes_keywords:
        return of(args, roots, tensors)
    kwargs = call.kwargs or {}
    walk = _Walk(tensors)
    next(walk.numbers)
    walk.visit(args, "", roots)
    walk.visit(kwargs, "", sorted(kwargs))
    return Sharing(", ".join(walk.words), walk.containers, walk.leaves) if walk.leaves or walk.containers else _NONE


def keyed(call: Call, signature: Signature, asked: int) -> Call:
    """`call` with a key that says what is the same among its arguments."""
    words = of_call(call, signature, asked == TENSORS).words
    return call._replace(lookup=call.lookup._replace(shared=words)) if words else call


def may_share(call: Call, asked: int) -> bool:
    """Whether a call with a key like this one's may have arguments of which two are the same, as far as is asked."""
    if asked == NOTHING:
        return False
    parts, structure = call.lookup.parts, call.lookup.structure
    if asked == TENSORS and sum(part[0] == "tensor" for part in parts) > 1:
        return True
    return structure is not None and _n_mutable(structure) > 1


def _n_mutable(structure: Structure) -> int:
    own = structure.kind is not None and not issubclass(structure.kind, tuple)
    return own + sum([_n_mutable(child) for child in structure.children if child is not LEAF])


def rebuilt(structure: Structure, leaves: Iterable[Any], sharing: Sharing) -> Any:
    """The nest of this structure around `leaves`, in which what is the same is one object again."""
    feed = iter(leaves)
    if not sharing.containers:
        return nest.unflatten(structure, feed)
    return _built(structure, feed, sharing.containers, itertools.count(), {})


def _built(
    structure: Structure,
    feed: Iterator[Any],
    containers: Mapping[int, int],
    numbers: Iterator[int],
    made: dict[int, Any],
) -> Any:
    """One part of `rebuilt`. No function within that one: it would refer to itself, and keep the leaves as garbage."""
    number = next(numbers)
    if structure.kind is None:
        return next(feed)
    children = [_built(child, feed, containers, numbers, made) for child in structure.children]
    first = containers.get(number)
    made[number] = nest.packed(structure, children) if first is None else made[first]
    return made[number]


class _Walk:
    """One way through a nest, in the order of `nest.flatten`."""

    def __init__(self, tensors: bool) -> None:
        self.numbers = itertools.count()
        self.words: list[str] = []
        self.containers: dict[int, int] = {}
        self.leaves: dict[int, int] = {}
        self._tensors = tensors
        self._n_leaves = 0
        self._met: dict[int, tuple[Any, int, int, str]] = {}  # by id: the object, its number, its first leaf, its path

    def visit(self, x: Any, path: str, names: Sequence[str] = (), copy_of: int | None = None) -> None:
        """Goes through `x`; `copy_of` is the first leaf of what it is the same as, where that has been seen."""
        number, leaf = next(self.numbers), self._n_leaves
        opened = nest.opened(x)
        if opened is None:
            self._n_leaves += 1
            if copy_of is not None:
                self.leaves[leaf] = copy_of
            elif self._tensors and isinstance(x, (Tensor, np.ndarray)):
                known = self._met.setdefault(id(x), (x, number, leaf, path))
                if known[1] != number:
                    self.leaves[leaf] = known[2]
                    self.words.append(f"{path} is {known[3]}")
            return
        kind, keys, children = opened
        if copy_of is None and not isinstance(x, tuple) and path:
            known = self._met.setdefault(id(x), (x, number, leaf, path))
            if known[1] != number:
                self.containers[number] = known[1]
                self.words.append(f"{path} is {known[3]}")
                copy_of = known[2]
        offset = 0 if copy_of is None else copy_of - leaf
        steps = names or [path + nest.step(kind, key) for key in keys]
        for child, its_path in zip(children, steps, strict=True):
            self.visit(child, its_path, (), None if copy_of is None else self._n_leaves + offset)
