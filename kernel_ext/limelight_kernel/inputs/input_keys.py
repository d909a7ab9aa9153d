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
from limelight.core.variable import Resource
from limelight.errors import SignatureError
from limelight.staging.key_parts import bare_part
from limelight_kernel.inputs.pins import Pinned, Pins, by_value
from limelight_kernel.inputs.portraits import becomes_tensor

_NUMBERS = (bool, int, float, complex)
PLAIN = frozenset([bool, int, float, complex, str, bytes, type(None)])
_LARGE = (list, dict, tuple)
_SMALL = 1 << 16
_AT_ONCE = PLAIN | {Tensor}
MANY = 64
"""From so many leaves on a container without tensors is compared as a whole, rather than keyed leaf by leaf."""

HUGE = 1000
"""From so many on also one with tensors, which the graph takes as they are, as long as it holds the same ones."""

_MOST_BYTES = 1 << 26


def goes_into_graph(value: object) -> bool:
    """Whether `value` is, or holds, something that goes into the graph."""
    return any(map(_travels, nest.leaves_of(value)))


def _travels(leaf: object) -> bool:
    if isinstance(leaf, np.ndarray):
        return becomes_tensor(leaf)
    return isinstance(leaf, (Tensor, Resource))


def as_argument(name: str, value: Any, pins: Pins, closed_over: Collection[int] = ()) -> Any:
    """`value` as an argument that the engine can key: with stand-ins for leaves that the engine cannot key.

    Args:
        name: of the input.
        value: what it means now.
        pins: the cell's.
        closed_over: ids of variables that are no arguments, although variables are, by type: helpers mean these very
            ones, so the graph captures them, and the cell must mean them too.
    """
    if type(value) in _AT_ONCE or (type(value) is np.ndarray and becomes_tensor(value)):
        return value
    if isinstance(value, _LARGE) and len(value) >= MANY and (whole := pins.known(name, value)) is not None:
        return whole
    leaves, structure = nest.flatten(value)
    if len(leaves) >= MANY and all(type(leaf) in PLAIN for leaf in leaves):
        return pins.pin(name, value)
    if len(leaves) >= HUGE and not pins.has(name) and _are_kept(leaves):
        return pins.pin(name, value)  # until another tensor is put into it
    pinned = [_leaf(f"{name}#{i}", x, pins, closed_over) for i, x in enumerate(leaves)]
    return value if all(map(operator.is_, pinned, leaves)) else nest.unflatten(structure, pinned)


def _are_kept(leaves: list[Any]) -> bool:
    """Whether they are plain values and tensors that a pin may keep alive."""
    if not _AT_ONCE.issuperset(map(type, leaves)):
        return False
    return sum(leaf.nbytes for leaf in leaves if type(leaf) is Tensor) <= _MOST_BYTES


def _leaf(name: str, leaf: Any, pins: Pins, closed_over: Collection[int]) -> Any:
    if isinstance(leaf, np.generic):
        return leaf if isinstance(leaf, (np.str_, np.bytes_)) else by_value(leaf)
    if isinstance(leaf, np.ndarray) and not becomes_tensor(leaf):
        return pins.pin(name, leaf) if leaf.dtype.hasobject or leaf.nbytes > _SMALL else by_value(leaf)
    return leaf if id(leaf) not in closed_over and _keyable(leaf) else pins.pin(name, leaf)


def variables_in(values: Iterable[object]) -> frozenset[int]:
    """The ids of the variables that `values` are or hold."""
    return frozenset(id(leaf) for value in values for leaf in _leaves_of(value) if isinstance(leaf, Resource))


def _leaves_of(value: Any) -> Iterable[Any]:
    """Those of a value, but for a large container of plain values and tensors, which is told from others at once."""
    if isinstance(value, _LARGE) and len(value) >= MANY:
        inside = value.values() if isinstance(value, dict) else value
        if _AT_ONCE.issuperset(map(type, inside)):
            return ()
    return nest.leaves_of(value)


def without_pins(value: Any) -> Any:
    """`value` with what its pins stand for."""
    return nest.map_structure(lambda leaf: leaf.value if isinstance(leaf, Pinned) else leaf, value)


def numbers_as_tensors(value: object, spec: TensorSpec | None) -> object:
    """`value` with its plain numbers as tensors, so that new values find the same trace."""
    dtype = None if spec is None else spec.dtype
    return nest.map_structure(lambda x: constant(x, dtype) if isinstance(x, _NUMBERS) else x, value)


def _keyable(leaf: object) -> bool:
    """Whether the engine takes `leaf` as part of a key, as what it is."""
    try:
        return isinstance(leaf, (Tensor, Resource, np.ndarray)) or bool(bare_part(leaf, {}))
    except SignatureError:
        return False
