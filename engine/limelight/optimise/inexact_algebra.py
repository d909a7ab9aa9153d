"""Rules that give the same numbers but for rounding, a few units in the last place. Integers stay exact.

They neither make infinities nor lose them: constants are joined only where the first step overflows no earlier than
the two together (both at least one, or both at most one, in magnitude; addends of one sign).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from limelight.graph.ir import Node, Value
from limelight.optimise.rewriter import Replacement, RewriteContext, Rule, all_equal, static, tensor

_POWERS: Final = (2, 3, 4)


def _join_constants(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    """(x * c) * d as x * (c * d); (x + c) + d as x + (c + d)."""
    for value, other in (inputs, inputs[::-1]):
        inner, outer_number = context.producer(value, node.op.name), all_equal(other)
        if inner is None or outer_number is None or tensor(other).shape != () or not context.used_once(value):
            continue
        for x, c in (inner.inputs, inner.inputs[::-1]):
            number = all_equal(c)
            if number is None or tensor(c).shape != () or all_equal(x) is not None:
                continue
            joined = _joined_constant(node.op.name, number, outer_number)
            if joined is None or x.spec != node.outputs[0].spec:
                continue
            merged = context.add(node.op, x, context.literal(joined, number.dtype))
            return Replacement(f"{node.op} of constants", "two constants become one", merged)
    return None


def _joined_constant(op: str, c: Any, d: Any) -> Any:
    """The constant that does for both; None where that could make another infinity or zero."""
    with np.errstate(all="ignore"):
        joined = c * d if op == "multiply" else c + d
    if c.dtype.kind in "iu":
        return joined
    if c.dtype.kind != "f" or c.dtype.itemsize < 4 or not (np.isfinite(joined) and c and d):
        return None
    if op == "add":
        return joined if (c > 0) == (d > 0) else None
    safe = (abs(c) >= 1) == (abs(d) >= 1) and 2.0**-60 < abs(joined) < 2.0**60
    return joined if safe else None


def _power(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    number = all_equal(inputs[1])
    x = inputs[0]
    if number is None or number.dtype.kind != "f" or x.spec != node.outputs[0].spec:
        return None
    if number == 1:
        return Replacement("x ** 1", "the first power is the number itself", x)
    if number == -1:
        return Replacement("x ** -1", "a division is cheaper than a power", context.add("reciprocal", x))
    if number not in _POWERS:
        return None
    squared = context.add("square", x)
    if number == 3:
        squared = context.add("multiply", squared, x)
    elif number == 4:
        squared = context.add("square", squared)
    return Replacement(f"x ** {int(number)}", "products are cheaper than a power", squared)


def _sum_of_broadcast(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    """The sum over what a broadcast has repeated, as a product with how often."""
    inner = context.producer(inputs[0], "broadcast_to")
    if inner is None or not static(inputs[0]) or not static(node.outputs[0]):
        return None
    x = inner.inputs[0]
    size, total = tensor(x).size, tensor(inputs[0]).size
    if x.spec != node.outputs[0].spec or tensor(x).dtype.kind != "f" or not size or not total:
        return None
    if tensor(x).dtype.itemsize < 4:
        return None
    value = context.add("multiply", x, context.literal(total // size, tensor(x).dtype))
    return Replacement("sum of a broadcast", "equal summands are a product", value)


INEXACT: Final[Mapping[str, Sequence[Rule]]] = {
    "add": (_join_constants,),
    "multiply": (_join_constants,),
    "pow": (_power,),
    "sum_to": (_sum_of_broadcast,),
}
