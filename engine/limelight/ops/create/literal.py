"""Literals: values that are part of a graph."""

from __future__ import annotations

from typing import Any

from limelight.core import dtypes
from limelight.core.op import defop
from limelight.core.spec import known

constant_op = defop(
    "constant",
    inputs="",
    attrs="value",
    infer=lambda value: known(value.array.shape, dtypes.dtype(value.array.dtype)),
    kernel=lambda xp, value: value.array if isinstance(value.array, xp.ndarray) else xp.asarray(value.array),
    why_no_gradient="it has no inputs",
)


def literal_value(params: tuple[Any, ...]) -> Any:
    """The array of a `constant` node, from its parameters."""
    return params[0].array
