"""`isinstance` and `type` as a cell's code finds them while it is traced: stand-ins are what they stand for.

An array of NumPy's among the inputs is a tensor in the trace, and a helper that asks `isinstance(x, np.ndarray)` would
go the other way. The two names stand in the notebook for the time of a trace, where helpers find them as well.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from limelight.core.tensor import Tensor
from limelight.staging.symbolic import SymbolicTensor
from limelight_kernel.staged.array_stand_ins import SymbolicArray


def is_instance(x: Any, kinds: Any) -> bool:
    """As `isinstance`, of what a stand-in for an array means."""
    return isinstance(x.meant if type(x) is SymbolicArray else x, kinds)


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


def answers(tree: ast.Module) -> dict[str, Any]:
    """The names that stand in the notebook while a cell is traced; `type` only where the cell itself asks it.

    >>> list(answers(ast.parse("kind = type(x)"))), list(answers(ast.parse("class A(type): pass")))
    (['isinstance', 'type'], ['isinstance'])
    """
    asks = any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "type"
        and len(node.args) == 1
        for node in ast.walk(tree)
    )
    return {"isinstance": is_instance, "type": _TYPE} if asks else {"isinstance": is_instance}
