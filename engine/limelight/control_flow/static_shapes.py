"""Which values of a loop's body have the same shape in every step, although the trace does not know it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from limelight.core.shapes import Shape, generalise, is_static
from limelight.core.spec import Spec, TensorSpec, known
from limelight.errors import LimelightError
from limelight.graph.ir import Graph, Node, Value
from limelight.graph.known_sizes import inferred
from limelight.staging.call_gradient import sharper

_FIRST: Final = 1_000_003
"""The first number that stands for an unknown size: larger than those that programs mention, mostly."""
_APART: Final = 10_007
"""From one number to the next: they are not to meet by arithmetic on sizes."""


class Varying(NamedTuple):
    """The tensors of a body whose shapes vary from step to step, or may.

    `hollow` ones have one shape, of which some sizes may be known, or are empty where the branch that they come from is
    not taken, and then nobody reads them. `uneven` ones may have any.
    """

    uneven: frozenset[Value]
    hollow: Mapping[Value, Shape]


def varying(graph: Graph, n: int) -> Varying:
    """What varies in a body whose first `n` inputs are handed on.

    Unknown sizes of inputs get numbers in place of them, each another one. Where the shape rules then know a shape, it
    depends on sizes that do not vary. Sizes that meet in an op that wants them alike get one number. What is in doubt
    (of loops inside, of branches that do not agree) counts as uneven.
    """
    unknown = [v for v in _values(graph) if isinstance(v.spec, TensorSpec) and not is_static(v.spec.shape)]
    if not unknown:
        return Varying(frozenset(), {})
    found = _Shapes(graph, n).settled()
    vary = [v for v in unknown if not is_static(found.specs[v].shape)]
    hollow = {v: found.hollow[v].declared for v in vary if v in found.hollow}
    return Varying(frozenset(vary) - hollow.keys(), hollow)


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for node in graph.nodes:
        yield from node.outputs


class _Full(NamedTuple):
    """What a hollow value is where it is not empty: its spec with numbers, and as much of its shape as traces know."""

    spec: TensorSpec
    declared: Shape


@dataclass(slots=True)
class _Found:
    """The specs of values; where these say nothing, since a value may be empty, what it is where it is not."""

    specs: dict[Value, Any]
    hollow: dict[Value, _Full] = field(default_factory=dict)

    def follow(self, node: Node) -> None:
        """Adds the results of a node. Raises ShapeError where sizes do not fit."""
        given = [self.specs[v] for v in node.inputs]
        self.specs.update((v, v.spec) for v in node.outputs)
        if node.op in ("call", "call_forward"):
            self._take(node, [_of_graph(node.functions[0].graph, given)])
        elif node.op in ("cond_forward", "switch_forward", "cond", "switch"):
            self._take(node, [_of_graph(f.graph, given[len(given) - len(f.graph.inputs) :]) for f in node.functions])
        elif not node.op.higher_order:
            results = inferred(node.op, given, node.params)
            self.specs.update((v, sharper(spec, v)) for v, spec in zip(node.outputs, results, strict=True))

    def _take(self, node: Node, sides: Sequence[_Found]) -> None:
        """Results that all functions agree on, but for empty places."""
        functions = node.functions
        for i, value in enumerate(node.outputs):
            full = [k for k, f in enumerate(functions) if i not in getattr(f, "blanks", ())]
            given = [x for k in full if (x := sides[k].full(functions[k].graph.outputs[i])) is not None]
            if len(given) < max(len(full), 1) or any(x.spec != given[0].spec for x in given):
                continue
            found = functools.reduce(_either, given)
            if len(full) == len(functions) and not any(functions[k].graph.outputs[i] in sides[k].hollow for k in full):
                self.specs[value] = found.spec
            else:
                self.hollow[value] = found

    def full(self, value: Value) -> _Full | None:
        """What a value is where it is not empty; None where that varies."""
        if value in self.hollow:
            return self.hollow[value]
        spec = self.specs[value]
        declared = value.spec
        if not isinstance(spec, TensorSpec) or not isinstance(declared, TensorSpec) or not is_static(spec.shape):
            return None
        return _Full(spec, declared.shape)


def _either(a: _Full, b: _Full) -> _Full:
    return _Full(a.spec, generalise(a.declared, b.declared) or a.declared)


def _of_graph(graph: Graph, given: Sequence[Any]) -> _Found:
    found = _Found(dict(zip(graph.inputs, given, strict=True)))
    for node in graph.nodes:
        found.follow(node)
    return found


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
        found = _FIRST + _APART * len(self._numbers)
        self._numbers.add(found)
        return found

    def settled(self) -> _Found:
        """Repeats until every size that is handed on as it came has its number, and the others have none."""
        while True:
            found = self._followed()
            if found is None:
                continue  # two sizes have become one
            before, graph = self._inputs[: self._n], self._graph
            handed_on = zip(before, graph.inputs, graph.outputs, strict=False)
            kept = [_agreed(spec, found.specs[y], x.spec) for spec, x, y in handed_on]
            if kept == before:
                return found
            self._inputs[: self._n] = kept

    def _followed(self) -> _Found | None:
        found = _Found(dict(zip(self._graph.inputs, self._inputs, strict=True)))
        for node in self._graph.nodes:
            try:
                found.follow(node)
            except LimelightError:
                if node.op.elementwise and self._united([found.specs[v] for v in node.inputs]):
                    return None
        return found

    def _united(self, given: Sequence[Any]) -> bool:
        """Whether an unknown size meets another size, counted from the last axis; from now on they have one number."""
        shapes = [spec.shape[::-1] for spec in given if isinstance(spec, TensorSpec)]
        for sizes in itertools.zip_longest(*shapes):
            ours = self._numbers.intersection(sizes)
            one = next((m for m in sizes if m is not None and m > 1 and m not in ours), min(ours, default=0))
            replaced = [_replaced(spec, ours - {one}, one) for spec in self._inputs]
            if replaced != self._inputs:
                self._inputs = replaced
                return True
        return False


def _replaced(spec: Spec, numbers: set[int], one: int) -> Spec:
    if not isinstance(spec, TensorSpec) or numbers.isdisjoint(spec.shape):
        return spec
    return known(tuple([one if m in numbers else m for m in spec.shape]), spec.dtype)


def _agreed(before: Any, after: Any, declared: Any) -> Any:
    """What is known of a value that is handed on: sizes that a step leaves as they were."""
    if not isinstance(before, TensorSpec):
        return before
    sizes: Shape = tuple(
        [m if m == k else d for m, k, d in zip(before.shape, after.shape, declared.shape, strict=True)]
    )
    return before if sizes == before.shape else known(sizes, before.dtype)
