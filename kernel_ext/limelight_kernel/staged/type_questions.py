"""`isinstance`, `hasattr`, `getattr`, `type`, `id` while a cell is traced: stand-ins are what they stand for.

An array of NumPy's among the inputs is a tensor in the trace, and a helper that asks `isinstance(x, np.ndarray)` would
go the other way. For the time of a trace these names stand in the notebook, and in the user's modules that ask.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from limelight.core import nest
from limelight.core.tensor import Tensor
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code import source_line
from limelight.user_code.source_line import Source
from limelight_kernel.staged.array_stand_ins import SymbolicArray


def is_instance(x: Any, kinds: Any) -> bool:
    """As `isinstance`, of what a stand-in for an array means."""
    return isinstance(x.meant if type(x) is SymbolicArray else x, kinds)


def has_attribute(x: Any, name: str) -> bool:
    """As `hasattr`, of what a stand-in for an array means."""
    return hasattr(x.meant if type(x) is SymbolicArray else x, name)


def get_attribute(x: Any, name: str, *default: Any) -> Any:
    """As `getattr`, of what a stand-in for an array means: it has no attributes that an array lacks."""
    if type(x) is SymbolicArray and not hasattr(x.meant, name):
        return getattr(x.meant, name, *default)  # which raises NumPy's own error
    return getattr(x, name, *default)


def type_of(x: Any) -> type:
    """As `type`, of what a stand-in means."""
    if type(x) is SymbolicArray:
        return type(x.meant)
    return Tensor if type(x) is SymbolicTensor else type(x)


class _Type:
    """Stands for `type`: asks as `type_of` does, and makes classes, is a base and is compared as `type` is."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return type_of(args[0]) if len(args) == 1 and not options else type(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(type, name)

    def __instancecheck__(self, x: object) -> bool:
        return isinstance(x, type)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, type)

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (type,)

    def __getitem__(self, kind: Any) -> Any:
        return type[kind]

    def __or__(self, other: Any) -> Any:
        return type | other

    def __ror__(self, other: Any) -> Any:
        return other | type

    def __eq__(self, other: object) -> bool:
        return other is self or other is type

    def __hash__(self) -> int:
        return hash(type)


_TYPE: Final = _Type()


def answers(asks_type: bool, id_of: Callable[[Any], int]) -> dict[str, Any]:
    """The names that stand in the notebook while a cell is traced; `type` only where code asks it."""
    asked = {"isinstance": is_instance, "hasattr": has_attribute, "getattr": get_attribute, "id": id_of}
    return {**asked, "type": _TYPE} if asks_type else asked


def unanswered(
    tree: ast.Module, inputs: Mapping[str, Any], patterns: Iterable[Source] = ()
) -> Iterator[tuple[str, str, int]]:
    """Code that is answered of a stand-in, as it asks in other ways: what asks, where else, and its line, 0 for none.

    `patterns` are those for tensors in helpers.
    """
    arrays = any(isinstance(leaf, np.ndarray) for x in inputs.values() for leaf in nest.leaves_of(x))
    for node in ast.walk(tree):
        if arrays and isinstance(node, ast.MatchClass) and ast.unparse(node.cls) == "ll.Tensor":
            yield f"case {ast.unparse(node)}", "", node.lineno
    for line in patterns if arrays else ():
        yield line.text, source_line.at(line), 0
