"""Finds long sums in a graph, and what their terms have in common, for the pass in `stacked_sums`."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

from limelight.core import dtypes
from limelight.graph.ir import Graph, Node, Value
from limelight.optimise.rewriter import static, tensor, uses_of

FEWEST: Final = 4
"""Terms that are worth stacking."""
LARGEST: Final = 4096
"""Elements that the operand of a term may have."""
DEEPEST: Final = 3
"""Sums within products within sums."""
_FLOATS: Final = frozenset([dtypes.float32, dtypes.float64])


class Term(NamedTuple):
    """One summand; `sign` is 1 or -1."""

    sign: int
    value: Value


class LikeTerms(NamedTuple):
    """Terms of a sum that are alike: products or sums whose operands are stacked, or products with one `factor`."""

    sign: int
    nodes: list[Node]
    factor: Value | None = None
    inner: Sum | None = None


class Sum(NamedTuple):
    """A sum: parts of alike terms, the rest of the terms, and the nodes that computed all this."""

    parts: list[LikeTerms]
    rest: list[Term]
    absorbed: list[Node]

    @property
    def n_alike(self) -> int:
        return sum(len(part.nodes) for part in self.parts)


class SumFinder:
    """Finds the sums of a graph in which there is something to gain."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._uses = uses_of(graph)

    def sums(self) -> dict[Node, Sum]:
        """The sums in which there is something to gain, by the node of the last addition."""
        sums: dict[Node, Sum] = {}
        inner: set[Node] = set()
        for node in reversed(self._graph.nodes):
            if node in inner or node.op.name not in ("add", "subtract") or not self._is_plain(node):
                continue
            total = self._sum([Term(1, node.outputs[0])], root=node)
            inner.update(total.absorbed)
            if total.parts:
                sums[node] = total
        return sums

    def _is_plain(self, node: Node) -> bool:
        """Whether all its operands have the shape of its result, of a dtype for which there are fast products."""
        output = node.outputs[0]
        alike = all(value.spec == output.spec for value in node.inputs)
        return alike and node.device is None and static(output) and tensor(output).dtype in _FLOATS

    def _sum(self, start: list[Term], depth: int = 0, root: Node | None = None) -> Sum:
        terms, absorbed = self._terms(start, root)
        if len(terms) < FEWEST:
            return Sum([], terms, absorbed)
        rest, parts = terms, []
        for choose in (self._stacking_kinds, self._common_factors):
            groups, rest = _by_kind(rest, choose(rest))
            parts += [self._like_terms(sign, kind, nodes, depth, absorbed) for (sign, kind), nodes in groups.items()]
        return Sum(parts, rest, absorbed)

    def _like_terms(self, sign: int, kind: Any, nodes: list[Node], depth: int, absorbed: list[Node]) -> LikeTerms:
        absorbed += nodes
        if not isinstance(kind, Value):
            return LikeTerms(sign, nodes)
        terms = [Term(1, _other(node, kind)) for node in nodes]
        inner = self._sum(terms, depth + 1) if depth < DEEPEST else Sum([], terms, [])
        absorbed += inner.absorbed
        return LikeTerms(sign, nodes, kind, inner)

    def _terms(self, start: list[Term], root: Node | None) -> tuple[list[Term], list[Node]]:
        """What is added up in all, from left to right, and the additions that do so, but for `root`."""
        terms: list[Term] = []
        additions: list[Node] = []
        waiting = start[::-1]
        while waiting:
            sign, value = waiting.pop()
            node = value.node
            inside = node is not None and (node is root or self._uses[value] == 1) and self._is_plain(node)
            if node is None or not inside or node.op.name not in ("add", "subtract", "negative"):
                terms.append(Term(sign, value))
                continue
            if node is not root:
                additions.append(node)
            first, *others = node.inputs
            waiting += [Term(sign if node.op.name == "add" else -sign, other) for other in others]
            waiting.append(Term(-sign if node.op.name == "negative" else sign, first))
        return terms, additions

    def _stacking_kinds(self, terms: list[Term]) -> list[Any]:
        """For each term what others must have in common with it to be stacked; None for one that cannot be."""
        return [self._stacking_kind(value) for _, value in terms]

    def _stacking_kind(self, value: Value) -> Any:
        node = value.node
        if node is None or node.device is not None or self._uses[value] != 1 or not all(map(_is_small, node.inputs)):
            return None
        shapes = tuple([tensor(x).shape for x in node.inputs])
        if node.op.name == "matmul" and [*map(len, shapes)] == [2, 2] and left_of(node) is not None:
            return ("matmul", shapes, repeated(node) is not None and tensor(_summed(node)).shape)
        if node.op.name == "sum_to" and shapes[0]:
            shape = tensor(value).shape
            over_rows = len(shape) < len(shapes[0]) or (shape[0] == 1 and shapes[0][0] != 1)
            return ("sum_to", shapes) if over_rows else None
        return None

    def _common_factors(self, terms: list[Term]) -> list[Any]:
        """For each term that is a product its factor, if others share it."""
        nodes = [value.node if self._is_product(value) else None for _, value in terms]
        counts = Counter(x for node in nodes if node is not None for x in set(node.inputs))
        return [None if node is None else _factor(node, counts) for node in nodes]

    def _is_product(self, value: Value) -> bool:
        node = value.node
        return node is not None and node.op.name == "multiply" and self._uses[value] == 1 and self._is_plain(node)


def _factor(node: Node, counts: Counter[Value]) -> Value | None:
    factor = max(node.inputs, key=counts.__getitem__)
    return factor if counts[factor] >= FEWEST else None


def _other(product: Node, factor: Value) -> Value:
    left, right = product.inputs
    return right if left is factor else left


def _by_kind(terms: list[Term], kinds: list[Any]) -> tuple[dict[Any, list[Node]], list[Term]]:
    """The terms of each kind of which there are enough, by sign and kind, and the other terms."""
    keys = [None if kind is None else (term.sign, kind) for term, kind in zip(terms, kinds, strict=True)]
    counts = Counter(key for key in keys if key is not None)
    groups: dict[Any, list[Node]] = {}
    rest = []
    for term, key in zip(terms, keys, strict=True):
        if key is not None and counts[key] >= FEWEST and term.value.node is not None:
            groups.setdefault(key, []).append(term.value.node)
        else:
            rest.append(term)
    return groups, rest


def _is_small(value: Value) -> bool:
    return static(value) and 0 < (tensor(value).size or 0) <= LARGEST


def left_of(product: Node) -> Value | None:
    """A, where a product is A' @ G."""
    left = product.inputs[0].node
    return left.inputs[0] if left is not None and left.op.name == "matrix_transpose" and left.device is None else None


def repeated(product: Node) -> Value | None:
    """A, where a product is A' @ G with a single row A and G the sum of some rows: A repeated does for all of them."""
    left, right = left_of(product), product.inputs[1].node
    if left is None or tensor(left).shape[0] != 1:
        return None
    rows = right is not None and right.op.name == "sum_to" and right.device is None
    whole = _summed(product) if rows else None
    fits = whole is not None and tensor(whole).rank == 2 and _is_small(whole)
    return left if fits and whole is not None and tensor(whole).shape[1] == tensor(product.inputs[1]).shape[1] else None


def _summed(product: Node) -> Value:
    """What the right operand of a product is the sum of."""
    node = product.inputs[1].node
    assert node is not None
    return node.inputs[0]


def rows_of(product: Node) -> tuple[Value, Value]:
    """A and G, to be stacked, of a product A' @ G; a single row stands for as many as G has."""
    row = repeated(product)
    left = left_of(product)
    assert left is not None
    return (left, product.inputs[1]) if row is None else (row, _summed(product))
