"""Operands of matrix products that are arrays of their own, and are to stay so where bits are promised.

Of `x @ x.T` BLAS computes one half (syrk), which rounds otherwise than the product of two arrays of equal numbers. So
what makes one value of two must not make one of both operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from limelight.graph.build import Rewriter
from limelight.graph.ir import Graph, Value

_PRODUCTS: Final = frozenset(["einsum_pair", "einsum_pair_to", "einsum_pair_to_dynamic", "matmul", "tensordot"])
Partners: TypeAlias = Mapping[Value, set[Value]]
"""By value, those with which it is multiplied as a matrix, all seen through views."""


def partners_of(graph: Graph) -> Partners:
    """Both operands of each matrix product in which they are different arrays."""
    partners: dict[Value, set[Value]] = {}
    for node in graph.nodes:
        if node.op.name in _PRODUCTS:
            x, y = (seen_through_views(value) for value in node.inputs[:2])
            if x is not y:
                partners.setdefault(x, set()).add(y)
                partners.setdefault(y, set()).add(x)
    return partners


def seen_through_views(value: Value) -> Value:
    """The value whose array `value` shows."""
    while (node := value.node) is not None and node.op.view:
        value = node.inputs[0]
    return value


def would_meet(partners: Partners, rewriter: Rewriter, old: Value, new: Value) -> bool:
    """Whether `new`, a value of the new graph, stands for a partner of `old` already."""
    others = partners.get(old, ())
    if not others:
        return False
    array = seen_through_views(new)
    return any(seen_through_views(rewriter.value(other)) is array for other in others)
