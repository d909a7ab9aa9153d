"""Rules that give the same numbers but for rounding, a few units in the last place. Integers stay exact.

They neither make infinities nor lose them, not even by a rounding at the end of the range: constants are joined only
where no step can leave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from limelight.graph.ir import Node, Value
from limelight.optimise.rewriter import Replacement, RewriteContext, Rule, all_equal, static, tensor

_FEW: Final = 3
"""Equal summands of which the sum rounds once, as the product does."""


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
    """The constant that does for both; None where that could make or lose an infinity, or round a sum once more."""
    with np.errstate(all="ignore"):
        joined = c * d if op == "multiply" else c + d
    if c.dtype.kind in "iu":
        return joined
    if c.dtype.kind != "f" or c.dtype.itemsize < 4 or not (np.isfinite(joined) and c and d):
        return None
    return _joined_addend(joined, c, d) if op == "add" else _joined_factor(joined, c, d)


def _joined_addend(joined: Any, c: Any, d: Any) -> Any:
    """C + d where it is exact, of one sign, and so small that no sum with it leaves the range.

    Rounded, as 1 + 1e-12 is to 1, it would give other numbers altogether where x is -c.
    """
    limits = np.finfo(c.dtype)
    small = abs(joined) < limits.max * limits.eps / 8
    exact = joined - c == d and joined - d == c
    return joined if small and exact and (c > 0) == (d > 0) else None


def _joined_factor(joined: Any, c: Any, d: Any) -> Any:
    """C * d where both only make smaller: at the end of the range a product more or less decides what is infinite."""
    return joined if abs(c) <= 1 and abs(d) <= 1 and abs(joined) > 2.0**-60 else None


def _power(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    number = all_equal(inputs[1])
    x = inputs[0]
    if number is None or number.dtype.kind != "f" or x.spec != node.outputs[0].spec:
        return None
    if number == 1:
        return Replacement("x ** 1", "the first power is the number itself", x)
    if number == -1:
        return Replacement("x ** -1", "a division is cheaper than a power", context.add("reciprocal", x))
    if number != 2:  # x * x * x rounds twice, and may leave the range where a power does not
        return None
    return Replacement("x ** 2", "a product is cheaper than a power", context.add("square", x))


def _sum_of_broadcast(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    """The sum over what a broadcast has repeated, as a product with how often."""
    inner = context.producer(inputs[0], "broadcast_to")
    if inner is None or not static(inputs[0]) or not static(node.outputs[0]):
        return None
    x = inner.inputs[0]
    size, total = tensor(x).size, tensor(inputs[0]).size
    if x.spec != node.outputs[0].spec or tensor(x).dtype.kind != "f" or not size or not total:
        return None
    if tensor(x).dtype.itemsize < 4 or total // size > _FEW:  # a longer sum may round across the end of the range
        return None
    value = context.add("multiply", x, context.literal(total // size, tensor(x).dtype))
    return Replacement("sum of a broadcast", "equal summands are a product", value)


INEXACT: Final[Mapping[str, Sequence[Rule]]] = {
    "add": (_join_constants,),
    "multiply": (_join_constants,),
    "pow": (_power,),
    "sum_to": (_sum_of_broadcast,),
}
