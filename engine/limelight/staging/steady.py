"""Which values of a loop's body have the same shape in every step, although the trace does not know it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

from limelight.errors import LimelightError
from limelight.graph.contents import inferred
from limelight.graph.ir import Graph, Node, Value
from limelight.shapes import Shape, is_static
from limelight.spec import Spec, TensorSpec, known
from limelight.staging.gradient import sharper

_FIRST: Final = 100_003
"""The first number that stands for an unknown size: larger than those that programs mention, mostly."""


def unsteady(graph: Graph, n: int) -> frozenset[Value]:
    """The tensors of a body whose shapes may vary from step to step; its first `n` inputs are handed on.

    Unknown sizes of inputs get numbers in place of them, each another one. Where the shape rules then know a shape, it
    depends on sizes that do not vary. Sizes that meet in an op that wants them alike get one number. What is in doubt
    (of branches, of loops inside) counts as varying.
    """
    unknown = [v for v in _values(graph) if isinstance(v.spec, TensorSpec) and not is_static(v.spec.shape)]
    if not unknown:
        return frozenset()
    found = _Shapes(graph, n).settled()
    return frozenset([v for v in unknown if not is_static(found[v].shape)])


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for node in graph.nodes:
        yield from node.outputs


class _Shapes:
    """Specs of the values of a body with numbers for unknown sizes of its inputs."""

    def __init__(self, graph: Graph, n: int) -> None:
        self._graph, self._n = graph, n
        self._numbers: set[int] = set()
        self._inputs = [self._numbered(v.spec) for v in graph.inputs]

    def _numbered(self, spec: Spec) -> Spec:
        if not isinstance(spec, TensorSpec) or is_static(spec.shape):
            return spec
        sizes = tuple([self._another() if m is None else m for m in spec.shape])
        return known(sizes, spec.dtype)

    def _another(self) -> int:
        found = _FIRST + len(self._numbers)
        self._numbers.add(found)
        return found

    def settled(self) -> dict[Value, Any]:
        """Repeats until every size that is handed on as it came has its number, and the others have none."""
        while True:
            found = self._followed()
            if found is None:
                continue  # two sizes have become one
            before, graph = self._inputs[: self._n], self._graph
            kept = [
                _agreed(spec, found[y], x.spec) for spec, x, y in zip(before, graph.inputs, graph.outputs, strict=False)
            ]
            if kept == before:
                return found
            self._inputs[: self._n] = kept

    def _followed(self) -> dict[Value, Any] | None:
        found: dict[Value, Any] = dict(zip(self._graph.inputs, self._inputs, strict=True))
        for node in self._graph.nodes:
            given = [found[v] for v in node.inputs]
            try:
                results = _results(node, given)
            except LimelightError:
                if self._united(given):
                    return None
                results = [v.spec for v in node.outputs]
            found.update(zip(node.outputs, results, strict=True))
        return found

    def _united(self, given: Sequence[Any]) -> bool:
        """Whether two unknown sizes meet, counted from the last axis; from now on they have one number."""
        shapes = [spec.shape[::-1] for spec in given if isinstance(spec, TensorSpec)]
        for sizes in itertools.zip_longest(*shapes):
            meet = self._numbers.intersection(sizes)
            if len(meet) > 1:
                one = min(meet)
                self._inputs = [_replaced(spec, meet, one) for spec in self._inputs]
                return True
        return False


def _replaced(spec: Spec, numbers: set[int], one: int) -> Spec:
    if not isinstance(spec, TensorSpec) or numbers.isdisjoint(spec.shape):
        return spec
    return known(tuple([one if m in numbers else m for m in spec.shape]), spec.dtype)


def _results(node: Node, given: Sequence[Any]) -> Sequence[Any]:
    if node.op in ("call", "call_forward"):
        return _of_call(node.functions[0].graph, given)
    if node.op.higher_order:
        return [v.spec for v in node.outputs]
    return [sharper(spec, v) for spec, v in zip(inferred(node.op, given, node.params), node.outputs, strict=True)]


def _of_call(graph: Graph, given: Sequence[Any]) -> list[Any]:
    found: dict[Value, Any] = dict(zip(graph.inputs, given, strict=True))
    for node in graph.nodes:
        found.update(zip(node.outputs, _results(node, [found[v] for v in node.inputs]), strict=True))
    return [found[v] for v in graph.outputs]


def _agreed(before: Any, after: Any, declared: Any) -> Any:
    """What is known of a value that is handed on: sizes that a step leaves as they were."""
    if not isinstance(before, TensorSpec):
        return before
    sizes: Shape = tuple(
        [m if m == k else d for m, k, d in zip(before.shape, after.shape, declared.shape, strict=True)]
    )
    return before if sizes == before.shape else known(sizes, before.dtype)
