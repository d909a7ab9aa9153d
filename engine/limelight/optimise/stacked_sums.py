"""Sums of many small products, and of many small sums, as one of stacked operands.

The gradient of a parameter that is used forty times is a sum of forty products, `A1' G1 + A2' G2 + ...`; that is one
product of the stacked A and the stacked G. In the same way forty sums over the rows of small matrices are one sum over
the rows of their stack, and products with one factor are one product with a sum. Forty products of 10 x 10 with 10 x 2
and their additions take 95 us, stacking included one takes 22. Large operands are left alone: there the arithmetic
costs, and a stack would be a copy for nothing.

Several products with one left operand, `x @ W1`, `x @ W2`, are not joined: the results would be columns of a matrix,
and arithmetic on those takes three times as long as on small arrays of their own.

The terms are added in another order, so results differ by rounding: by units in the last place of the largest terms.
Whether anything overflows may depend on the order as well, so `guarded_sum` has the last word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.core.op import Op, get
from limelight.core.spec import known
from limelight.graph.build import Rewriter
from limelight.graph.ir import Graph, Node, Value
from limelight.optimise.guarded_sum import Bound, Bounds, Norm, Product, Scaled, guarded
from limelight.optimise.pass_record import PassRecord, Recorder
from limelight.optimise.rewriter import tensor
from limelight.optimise.sum_terms import LikeTerms, Sum, SumFinder, Term, repeated, rows_of


def stack(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with long sums of like terms computed from stacked operands."""
    recorder = Recorder("stack", graph)
    rewriter = Rewriter(graph)
    sums = SumFinder(graph).sums()
    if not sums:
        return recorder.unchanged(graph)
    absorbed = {node for total in sums.values() for node in total.absorbed}
    places = {node: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        if node in sums:
            total = sums[node]
            written = sorted({*total.absorbed, *_behind(total.absorbed), node}, key=places.__getitem__)
            nodes = _Builder(rewriter, node).build(total, written)
            rewriter.replace(node, nodes[-1].outputs)
            reason = f"{total.n_alike} terms of one form are one product or sum of stacked operands"
            recorder.note("sum of like terms", reason, (*total.absorbed, node), tuple(nodes), added=len(nodes))
        elif node in absorbed:
            rewriter.drop(node)
        else:
            rewriter.keep(node)
    return recorder.finish(rewriter)


def _behind(absorbed: list[Node]) -> list[Node]:
    """What makes the operands of products that are stacked: nobody may need these transposes and sums any more."""
    products = [node for node in absorbed if node.op.name == "matmul"]
    makers = [node.inputs[0].node for node in products]
    makers += [node.inputs[1].node for node in products if repeated(node) is not None]
    return [node for node in makers if node is not None]


class _Builder:
    """Makes the nodes of a stacked sum, at the place of `like`."""

    def __init__(self, rewriter: Rewriter, like: Node) -> None:
        self._rewriter = rewriter
        self._like = like
        self._made: list[Node] = []

    def build(self, total: Sum, written: Sequence[Node]) -> list[Node]:
        """The nodes for a sum of which `written` are the nodes as it was written."""
        value, bounds = self._sum(total)
        self._made.append(guarded(self._rewriter, self._like, value, bounds, written))
        return self._made

    def _sum(self, total: Sum) -> tuple[Value, Bounds]:
        parts = [self._like_terms(part) for part in total.parts]
        rest = [Term(sign, self._rewriter.value(value)) for sign, value in total.rest]
        terms = [Term(part.sign, value) for part, (value, _) in zip(total.parts, parts, strict=True)] + rest
        terms.sort(key=lambda term: -term.sign)  # something to subtract from first
        sign, value = terms[0]
        if sign < 0:
            value = self._add("negative", value)
        for sign, other in terms[1:]:
            value = self._add("add" if sign > 0 else "subtract", value, other)
        return value, (*[bound for _, bound in parts], *[Norm(term.value) for term in rest])

    def _like_terms(self, part: LikeTerms) -> tuple[Value, Bound]:
        first = part.nodes[0]
        if part.inner is not None and part.factor is not None:
            inner, bounds = self._sum(part.inner)
            factor = self._rewriter.value(part.factor)
            return self._add("multiply", inner, factor), Scaled(bounds, factor)
        if first.op.name == "sum_to":
            rows = self._stacked([node.inputs[0] for node in part.nodes])
            return self._add(first.op, rows, params=first.params), Norm(rows, tensor(rows).size or 0)
        pairs = [rows_of(node) for node in part.nodes]
        n = tensor(pairs[0][1]).shape[0] or 0
        left = self._stacked([a for a, _ in pairs], n)
        right = self._stacked([g for _, g in pairs])
        return self._add("matmul", self._add("matrix_transpose", left), right), Product(left, right)

    def _stacked(self, values: list[Value], n: int | None = None) -> Value:
        """The values one below the other, single rows repeated so that each has `n`."""
        first = tensor(values[0])
        rows = first.shape[0] or 0
        operands = [self._rewriter.value(value) for value in values]
        if n is not None and n != rows:
            shape = (n, *first.shape[1:])
            repeated = {value: self._add("broadcast_to", value, params=(shape,)) for value in dict.fromkeys(operands)}
            operands, rows = [repeated[value] for value in operands], n
        spec = known((len(values) * rows, *first.shape[1:]), first.dtype)
        return self._add("concat", *operands, params=(0,), spec=spec)

    def _add(self, op: str | Op, *inputs: Value, params: tuple[Any, ...] = (), spec: Any = None) -> Value:
        op = get(op) if isinstance(op, str) else op
        node = self._rewriter.add(self._like, op, inputs, params, () if spec is None else (spec,))
        self._made.append(node)
        return node.outputs[0]
