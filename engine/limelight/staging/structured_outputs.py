"""What a traced function returns: checked, flattened, and put back together on each call.

A generator of random numbers may be returned: it is the object that the graph refers to, the same at each call. As the
graph does, its trace holds it weakly.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import nest
from limelight.core.nest import Structure
from limelight.core.spec import GENERATOR
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Resource, itself
from limelight.errors import DTypeError, SignatureError
from limelight.staging.sharing import Sharing, rebuilt
from limelight.staging.symbolic import SymbolicTensor, UnknownState
from limelight.user_code import source_line

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)


class Outputs(NamedTuple):
    """The structure of a function's result: which leaves are tensors, and the values of the others."""

    structure: Structure
    static: tuple[Any, ...]  # for each leaf: _TENSOR, None, or a weak reference to a generator
    bare: bool  # whether the result is one tensor and nothing else
    sharing: Sharing = Sharing()  # which of its parts are one and the same: of a function's

    @property
    def are_tensors(self) -> list[bool]:
        """For each leaf whether it is a tensor."""
        return [leaf is _TENSOR for leaf in self.static]

    def paths(self, root: str) -> list[str]:
        """How the user's code reaches each tensor from the result, `root`: 'output["loss"]'."""
        leaves = zip(nest.paths(self.structure, root), self.static, strict=True)
        return [path for path, leaf in leaves if leaf is _TENSOR]

    def describe(self, tensors: Sequence[Any]) -> str:
        """The result as Python writes it, with words for `tensors`."""
        remaining = iter(tensors)
        others = ["None" if leaf is None else "generator" for leaf in self.static]
        leaves = zip(self.static, others, strict=True)
        return nest.words(self.structure, [str(next(remaining)) if leaf is _TENSOR else word for leaf, word in leaves])

    def rebuild(self, tensors: Sequence[Any]) -> Any:
        if self.bare:
            return tensors[0]
        only_tensors = self.static.count(_TENSOR) == len(self.static)
        if only_tensors and self.structure.kind is tuple and self.structure.is_flat and not any(self.sharing):
            return tuple(tensors)  # as of each cell of a notebook
        remaining = iter(tensors)
        leaves = [next(remaining) if leaf is _TENSOR else None if leaf is None else leaf() for leaf in self.static]
        for again, first in self.sharing.leaves.items():
            leaves[again] = leaves[first]
        return rebuilt(self.structure, leaves, self.sharing)

    def compiled(self, name: str) -> Callable[[Sequence[Any]], Any]:
        """Code that does the same as `rebuild`, in an eighth of its time; `name` is the function's, for profilers."""
        if self.sharing.containers or len(self.static) > _MOST or _depth(self.structure) > _DEEPEST:
            return self.rebuild
        names: dict[str, Any] = {"packed": nest.packed}
        given = [f"x{i}" for i in range(self.static.count(_TENSOR))]
        remaining = iter(given)
        leaves = []
        for i, leaf in enumerate(self.static):
            names[f"g{i}"] = leaf
            leaves.append(next(remaining) if leaf is _TENSOR else "None" if leaf is None else f"g{i}()")
        for again, first in self.sharing.leaves.items():
            leaves[again] = leaves[first]
        result = _expression(self.structure, iter(leaves), names)
        code = f"def rebuilt(tensors):\n    {''.join([f'{x}, ' for x in given])}{'= tensors' if given else 'pass'}\n"
        exec(compile(f"{code}    return {result}\n", f"<result of {name}>", "exec"), names)  # of our own words
        function: Callable[[Sequence[Any]], Any] = names.pop("rebuilt")
        return function


_MOST: Final = 500
"""Leaves up to which a result has code of its own."""
_DEEPEST: Final = 40
"""Containers within one another up to which it has: Python's parser takes 200 brackets, and some take two."""


def _depth(structure: Structure) -> int:
    """How many containers stand within one another; without recursion, which results may be too deep for."""
    depth, level = 0, [structure]
    while level := [child for one in level for child in one.children if child.kind is not None]:
        depth += 1
    return depth


def _expression(structure: Structure, leaves: Iterator[str], names: dict[str, Any]) -> str:
    """A nest as an expression; what is no plain container goes into `names`."""
    kind, keys = structure.kind, structure.keys
    if kind is None:
        return next(leaves)
    children = [_expression(child, leaves, names) for child in structure.children]
    if kind in (list, tuple) and not isinstance(keys, nest.KeysOfType):
        return f"[{', '.join(children)}]" if kind is list else f"({''.join([f'{child}, ' for child in children])})"
    if kind is dict and not isinstance(keys, nest.KeysOfType) and all(type(key) is str for key in keys):
        of_key = dict(zip(keys, children, strict=True))
        return f"{{{', '.join([f'{key!r}: {of_key[key]}' for key in getattr(keys, 'order', keys)])}}}"
    name = f"s{len(names)}"
    names[name] = structure
    return f"packed({name}, [{', '.join(children)}])"


def outputs_like(result: Any, marker: type, count: int) -> Outputs:
    """The recipe for a result that is `result` with the tensors, `count` in order, where it has a `marker`.

    Raises SignatureError where there are not so many.
    """
    leaves, structure = nest.flatten(result)
    static = tuple([_TENSOR if isinstance(leaf, marker) else leaf for leaf in leaves])
    if static.count(_TENSOR) != count or any(leaf is not None and leaf is not _TENSOR for leaf in static):
        raise SignatureError(f"a result {result!r} does not have the {count} tensors of a graph")
    return Outputs(structure, static, structure is nest.LEAF and static[0] is _TENSOR)


class _Marker:
    def __repr__(self) -> str:
        return "tensor"


_TENSOR = _Marker()


def split(result: Any, name: str, path: str = "result") -> tuple[list[Any], Outputs]:
    """The tensors in `result` and the recipe for the whole. Raises SignatureError for what a graph cannot return."""
    leaves, structure = nest.flatten(result)
    _refuse_keys(structure, name)
    paths = nest.paths(structure, path)
    tensors: list[Any] = []
    static: list[Any] = []
    for leaf, where in zip(leaves, paths, strict=True):
        if leaf is None:
            static.append(None)
        elif isinstance(leaf, Resource) and leaf.spec == GENERATOR:
            if isinstance(leaf._data, UnknownState):
                raise SignatureError(
                    f"{name} returns a generator at `{where}` that it splits off{source_line.here()}, which lasts as "
                    "long as the call. Return what it draws; or split outside, and pass the parts as arguments"
                )
            static.append(weakref.ref(itself(leaf)))  # a trace that returns its argument is for that one
        else:
            tensors.append(_as_output(leaf, name, where))
            static.append(_TENSOR)
    return tensors, Outputs(structure, tuple(static), structure is nest.LEAF and static[0] is _TENSOR)


def _refuse_keys(structure: Structure, name: str) -> None:
    """Raises SignatureError for a dictionary of which a key has a tensor of the trace as an attribute."""
    waiting = [structure]
    while waiting:
        one = waiting.pop()
        waiting += one.children
        for key in one.keys if one.kind is dict else ():
            if any(isinstance(x, SymbolicTensor) for x in getattr(key, "__dict__", {}).values()):
                raise SignatureError(
                    f"{name} returns a dictionary with a {type(key).__name__} as a key that has a tensor of the trace "
                    f"in it{source_line.here()}, which has a value only when the graph runs. Take a name or a number "
                    "as the key"
                )


def _as_output(leaf: Any, name: str, path: str) -> Any:
    if isinstance(leaf, Tensor):
        return leaf
    if isinstance(leaf, _NUMBERS) or (hasattr(leaf, "__as_tensor__") and not isinstance(leaf, type)):
        try:
            return as_tensor(leaf)
        except DTypeError as error:  # a number that no dtype holds
            raise DTypeError(f"{name}: `{path}`: {error.bare}") from None
    raise SignatureError(
        f"{name} returns a {type(leaf).__name__} at `{path}`; a staged function returns tensors, numbers, None "
        f"and nests of these{source_line.here()}. Make it a tensor with ll.constant(...), "
        "or return it from plain Python"
    )
