"""Calling an op by itself, for ops that have no public function: what `ll.defop` returns can be called."""

from __future__ import annotations

from typing import Any

from limelight.core.dispatch import apply
from limelight.core.eager.operands import prepare
from limelight.core.op import Op
from limelight.errors import ArgumentError, SignatureError


def call(self: Op, *given: Any, **named: Any) -> Any:
    """Runs the op on `given` inputs, followed by its parameters, in order or by name (by name where "*xs" are inputs).

    Raises SignatureError for another number of inputs or parameters, ArgumentError for a parameter that is not
    hashable, and whatever the op's own shape rule raises.
    """
    op = self
    n = len(given) if op.variadic else len(op.operands)
    inputs, values = given[:n], given[n:]
    rest = op.attrs[len(values) :]
    if len(inputs) != n or len(values) > len(op.attrs) or set(rest) != set(named):
        raise SignatureError(f"op {op.name} takes {_signature(op)}, got {_written(given, named)}")
    attrs = (*values, *[named[name] for name in rest])
    for name, value in zip(op.attrs, attrs, strict=True):
        _check_hashable(op, name, value)
    return apply(op, prepare(op, inputs), attrs)


Op.__call__ = call  # type: ignore[method-assign]  # declared there for its types


def _signature(op: Op) -> str:
    inputs = ", ".join([f"{'*' if op.variadic else ''}{operand.name}" for operand in op.operands])
    return f"({inputs}{'; ' if op.attrs and inputs else ''}{', '.join(op.attrs)})"


def _written(given: tuple[Any, ...], named: dict[str, Any]) -> str:
    shown = [str(x.spec) if hasattr(x, "spec") else type(x).__name__ for x in given]
    return f"({', '.join([*shown, *[f'{name}=...' for name in named]])})"


def _check_hashable(op: Op, name: str, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(
            f"op {op.name}: the parameter `{name}` must be hashable, since it is part of a graph, "
            f"got a {type(value).__name__}; give a tuple, or make it an input"
        ) from None
