"""How each input of a staged cell travels: into the graph, or as a part of the key under which the trace is kept.

Tensors, arrays and variables travel into the graph. Everything else is part of the key: plain values by value, other
objects by identity, as pins.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from limelight.core import nest
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, constant
from limelight.core.variable import Resource, Variable
from limelight.errors import SignatureError
from limelight.staging.key_parts import bare_part
from limelight.staging.weak_identity import describe_object

_ARRAYS = (Tensor, Resource, np.ndarray, np.generic)
_NUMBERS = (bool, int, float, complex)


class Pinned:
    """Stands for a value that a cell reads but that is no argument of its graph: it is keyed by identity."""

    __limelight_leaf__ = True
    __slots__ = ("__dict__", "__weakref__", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        variable = f"variable {value.name}" if isinstance(value, Variable) else ""
        self.__limelight_name__ = variable or describe_object(value)  # what signatures call it

    def __repr__(self) -> str:
        named = f" {self.value.name}" if isinstance(self.value, Variable) else ""
        return f"this {type(self.value).__name__}{named}"


class Pins:
    """Hands out one `Pinned` for each name, and a new one when the name means another object, or the object changed."""

    def __init__(self) -> None:
        self._by_name: dict[str, tuple[Pinned, object]] = {}

    def pin(self, name: str, value: object) -> Pinned:
        contents = _contents(value)
        known = self._by_name.get(name)
        if known is None or known[0].value is not value or known[1] != contents:
            known = self._by_name[name] = (Pinned(value), contents)
        return known[0]


def _contents(value: object) -> object:
    """What tells whether a container without a key has changed in place since; a 1 is no True here."""
    if isinstance(value, set | frozenset):
        return frozenset((type(x), x) for x in value)
    return bytes(value) if isinstance(value, bytearray) else None


def goes_into_graph(value: object) -> bool:
    """Whether `value` is, or holds, something that goes into the graph."""
    return any(isinstance(leaf, _ARRAYS) for leaf in nest.leaves_of(value))


def as_argument(name: str, value: Any, pins: Pins, closed_over: Collection[int] = ()) -> Any:
    """`value` as an argument that the engine can key: with pins for leaves that the engine cannot key.

    Args:
        name: of the input.
        value: what it means now.
        pins: the cell's.
        closed_over: ids of variables that are no arguments, although variables are, by type: helpers mean these very
            ones, so the graph captures them, and the cell must mean them too.
    """
    leaves, structure = nest.flatten(value)
    pinned = [
        x if _keyable(x) and id(x) not in closed_over else pins.pin(f"{name}#{i}", x) for i, x in enumerate(leaves)
    ]
    return value if all(map(operator.is_, pinned, leaves)) else nest.unflatten(structure, pinned)


def variables_in(values: Iterable[object]) -> frozenset[int]:
    """The ids of the variables that `values` are or hold."""
    return frozenset(id(leaf) for value in values for leaf in nest.leaves_of(value) if isinstance(leaf, Resource))


def without_pins(value: Any) -> Any:
    """`value` with what its pins stand for."""
    return nest.map_structure(lambda leaf: leaf.value if isinstance(leaf, Pinned) else leaf, value)


def numbers_as_tensors(value: object, spec: TensorSpec | None) -> object:
    """`value` with its plain numbers as tensors, so that new values find the same trace."""
    dtype = None if spec is None else spec.dtype
    return nest.map_structure(lambda x: constant(x, dtype) if isinstance(x, _NUMBERS) else x, value)


def _keyable(leaf: object) -> bool:
    """Whether the engine takes `leaf` as part of a key, as what it is: arrays of dates, say, are refused later on."""
    try:
        return isinstance(leaf, _ARRAYS) or bool(bare_part(leaf, {}))
    except SignatureError:
        return False
