"""The inputs of a staged cell: which names of the notebook they are, and how each one travels.

Tensors, arrays and variables travel into the graph. Everything else is part of the key under which the trace is kept:
plain values by value, other objects by identity.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from limelight.core import nest
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, constant
from limelight.core.variable import Resource, Variable
from limelight.errors import SignatureError
from limelight.staging.signature import part_of
from limelight.staging.weak_identity import describe_object
from limelight_kernel.analysis import Names, analyse
from limelight_kernel.arguments import did_you_mean, unquoted
from limelight_kernel.cell import Cell
from limelight_kernel.helpers import reads_of

_ARRAYS = (Tensor, Resource, np.ndarray, np.generic)
_NUMBERS = (bool, int, float, complex)
_DATA = (*_NUMBERS, str, bytes, list, tuple, dict, type(None))


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


class NamesRead:
    """What a cell reads and writes, through the notebook's helper functions as they are now.

    Asking again is cheap: the analysis holds as long as the names that it met stand for the same helpers.
    """

    def __init__(self, shell: InteractiveShell, cell: Cell) -> None:
        self._shell = shell
        self._tree = cell.tree
        self._met: dict[str, tuple[object, frozenset[str]]] = {}
        self._names: Names | None = None

    def __call__(self) -> Names:
        if self._names is None or not self._still_holds():
            self._met.clear()
            self._names = analyse(self._tree, self._indirect)
        return self._names

    def _indirect(self, name: str) -> Iterable[str]:
        self._met[name] = met = self._look(name)
        return met[1]

    def _look(self, name: str) -> tuple[object, frozenset[str]]:
        """What `name` stands for, and the names that it reads; of plain data only the type, so that it is not kept."""
        space = self._shell.user_ns
        if name not in space or name in self._shell.user_ns_hidden:
            return None, frozenset()
        value = space[name]
        kind = type(value)
        if isinstance(value, _ARRAYS) or kind in _DATA:
            return kind, frozenset()
        return value, reads_of(value, space)

    def _still_holds(self) -> bool:
        for name, (stood_for, reads) in self._met.items():
            if self._shell.user_ns.get(name) is not stood_for:
                now = self._look(name)
                if now[1] != reads:
                    return False
                self._met[name] = now
        return True


def travels(value: object) -> bool:
    """Whether `value` is, or holds, something that goes into the graph."""
    return any(isinstance(leaf, _ARRAYS) for leaf in nest.leaves_of(value))


def keyed(name: str, value: Any, pins: Pins, closed_over: Collection[int] = ()) -> Any:
    """`value` as an argument that the engine can key: with pins for leaves that the engine cannot key.

    Variables are arguments, by type, but for those whose ids are `closed_over`: helpers mean these very ones, so the
    graph captures them, and the cell must mean them too.
    """
    leaves, structure = nest.flatten(value)
    pinned = [
        x if _keyable(x) and id(x) not in closed_over else pins.pin(f"{name}#{i}", x) for i, x in enumerate(leaves)
    ]
    return value if all(map(operator.is_, pinned, leaves)) else nest.unflatten(structure, pinned)


def variables_in(values: Iterable[object]) -> frozenset[int]:
    """The ids of the variables that `values` are or hold."""
    return frozenset(id(leaf) for value in values for leaf in nest.leaves_of(value) if isinstance(leaf, Resource))


def unpinned(value: Any) -> Any:
    """`value` with what its pins stand for."""
    return nest.map_structure(lambda leaf: leaf.value if isinstance(leaf, Pinned) else leaf, value)


def by_type(value: object, spec: TensorSpec | None) -> object:
    """`value` with its plain numbers as tensors, so that new values find the same trace."""
    dtype = None if spec is None else spec.dtype
    return nest.map_structure(lambda x: constant(x, dtype) if isinstance(x, _NUMBERS) else x, value)


def specs_from(shell: InteractiveShell, texts: Iterable[str]) -> tuple[tuple[str, TensorSpec], ...]:
    """The specs in "x=ll.TensorSpec([None, 64])", evaluated in the notebook.

    Raises UsageError, one line, for what is no such expression.
    """
    found: dict[str, TensorSpec] = {}
    for text in map(unquoted, texts):
        if "=" not in text and "**" not in text:
            raise UsageError(
                f"%%stage --spec: {text!r} names no input and spec: write {_example(text)}=ll.TensorSpec([None, 64])"
            )
        try:
            given = eval(f"dict({text})", shell.user_global_ns, shell.user_ns)
        except Exception as error:  # noqa: BLE001  # whatever the expression raises is the user's to read
            problem = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise UsageError(f"%%stage --spec {text!r}: {problem}; write x=ll.TensorSpec([None, 64])") from None
        for name, spec in given.items():
            if not isinstance(spec, TensorSpec):
                kind = type(spec).__name__
                raise UsageError(
                    f"%%stage --spec: {name} is a {kind}, not a spec; write {name}=ll.TensorSpec([None, 64])"
                )
            found[name] = spec
    return tuple(found.items())


def nameable(values: Mapping[str, object]) -> list[str]:
    """The inputs that a call may well give: modules are what the code is written with."""
    return [name for name, value in values.items() if not isinstance(value, ModuleType)]


def _example(text: str) -> str:
    return text if text.isidentifier() else "x"


def check_known(names: Iterable[str], values: Mapping[str, object], flag: str) -> None:
    """Raises UsageError for names that are no inputs of the cell."""
    for name in names:
        if name not in values:
            known = sorted(nameable(values))
            hint = did_you_mean(name, known) or f"; its inputs are {', '.join(known) or 'none'}"
            raise UsageError(f"%%stage {flag}: the cell reads no {name!r}{hint}")


def _keyable(leaf: object) -> bool:
    """Whether the engine takes `leaf` as part of a key, as what it is: arrays of dates, say, are refused later on."""
    try:
        return isinstance(leaf, _ARRAYS) or bool(part_of(leaf, {}))
    except SignatureError:
        return False
