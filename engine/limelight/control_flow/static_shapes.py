"""Which values of a loop's body have the same shape in every step, although the trace does not know the shape.

Unknown sizes of the body's inputs get numbers in their place, a different one each. What the shape rules then know does
not vary from step to step, so a batch of unknown size costs a loop nothing.
"""

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
from limelight.staging.call_gradient import refine_spec

_FIRST_NUMBER: Final = 1_000_003
"""The first number that stands for an unknown size: larger than sizes that programs mention."""
_NUMBER_STEP: Final = 10_007
"""The distance between two such numbers, so that arithmetic on sizes hardly makes one of the other."""


class Varying(NamedTuple):
    """The tensors of a body whose shapes vary from step to step, or may."""

    uneven: frozenset[Value]  # these may have any shape in any step
    # These have one shape, of which some sizes may be known; or they are empty, where they are residuals of a branch
    # that was not taken, and then nobody reads them.
    hollow: Mapping[Value, Shape]


def varying_shapes(graph: Graph, n: int) -> Varying:
    """What varies in a body whose first `n` inputs are carried values.

    Sizes that meet in an elementwise op get one number. What is in doubt (results of inner loops, of branches that
    disagree) counts as uneven.
    """
    unknown = [v for v in _values(graph) if isinstance(v.spec, TensorSpec) and not is_static(v.spec.shape)]
    if not unknown:
        return Varying(frozenset(), {})
    inferred_specs = _ShapeInference(graph, n).fixed_point()
    vary = [v for v in unknown if not is_static(inferred_specs.specs[v].shape)]
    hollow = {v: inferred_specs.hollow[v].declared for v in vary if v in inferred_specs.hollow}
    return Varying(frozenset(vary) - hollow.keys(), hollow)


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for node in graph.nodes:
        yield from node.outputs


class _NonEmpty(NamedTuple):
    """A hollow value where it is not empty: its spec with numbers, and as much of its shape as the trace knows."""

    spec: TensorSpec
    declared: Shape


@dataclass(slots=True)
class _Specs:
    """The specs of values with numbers for unknown sizes; of hollow values, what they are where they are not empty."""

    specs: dict[Value, Any]
    hollow: dict[Value, _NonEmpty] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Adds the results of a node. Raises ShapeError where sizes do not fit."""
        input_specs = [self.specs[v] for v in node.inputs]
        self.specs.update((v, v.spec) for v in node.outputs)
        if node.op in ("call", "call_forward"):
            self._add_agreed(node, [_infer_graph(node.functions[0].graph, input_specs)])
        elif node.op in ("cond_forward", "switch_forward", "cond", "switch"):
            self._add_agreed(
                node,
                [_infer_graph(f.graph, input_specs[len(input_specs) - len(f.graph.inputs) :]) for f in node.functions],
            )
        elif not node.op.higher_order:
            results = inferred(node.op, input_specs, node.params)
            self.specs.update((v, refine_spec(spec, v)) for v, spec in zip(node.outputs, results, strict=True))

    def _add_agreed(self, node: Node, inner: Sequence[_Specs]) -> None:
        """Adds those results of a call or a choice on which all functions agree that do not leave them blank."""
        functions = node.functions
        for i, value in enumerate(node.outputs):
            full = [k for k, f in enumerate(functions) if i not in getattr(f, "blanks", ())]
            values = [x for k in full if (x := inner[k].nonempty(functions[k].graph.outputs[i])) is not None]
            if len(values) < max(len(full), 1) or any(x.spec != values[0].spec for x in values):
                continue
            agreed = functools.reduce(_either, values)
            if len(full) == len(functions) and not any(functions[k].graph.outputs[i] in inner[k].hollow for k in full):
                self.specs[value] = agreed.spec
            else:
                self.hollow[value] = agreed

    def nonempty(self, value: Value) -> _NonEmpty | None:
        """A value where it is not empty; None where its shape varies."""
        if value in self.hollow:
            return self.hollow[value]
        spec = self.specs[value]
        declared = value.spec
        if not isinstance(spec, TensorSpec) or not isinstance(declared, TensorSpec) or not is_static(spec.shape):
            return None
        return _NonEmpty(spec, declared.shape)


def _either(a: _NonEmpty, b: _NonEmpty) -> _NonEmpty:
    return _NonEmpty(a.spec, generalise(a.declared, b.declared) or a.declared)


def _infer_graph(graph: Graph, input_specs: Sequence[Any]) -> _Specs:
    specs = _Specs(dict(zip(graph.inputs, input_specs, strict=True)))
    for node in graph.nodes:
        specs.add(node)
    return specs


class _ShapeInference:
    """Specs of the values of a body with numbers for unknown sizes of its inputs."""

    def __init__(self, graph: Graph, n: int) -> None:
        self._graph, self._n = graph, n
        self._numbers: set[int] = set()
        self._inputs = [self._numbered(v.spec) for v in graph.inputs]

    def _numbered(self, spec: Spec) -> Spec:
        if not isinstance(spec, TensorSpec) or is_static(spec.shape):
            return spec
        sizes = tuple([self._new_number() if m is None else m for m in spec.shape])
        return known(sizes, spec.dtype)

    def _new_number(self) -> int:
        number = _FIRST_NUMBER + _NUMBER_STEP * len(self._numbers)
        self._numbers.add(number)
        return number

    def fixed_point(self) -> _Specs:
        """Infers the body until exactly those sizes of carried values have numbers that a step leaves as they are."""
        while True:
            inferred_specs = self._infer_body()
            if inferred_specs is None:
                continue
            before, graph = self._inputs[: self._n], self._graph
            carried = zip(before, graph.inputs, graph.outputs, strict=False)
            kept = [_unchanged_sizes(spec, inferred_specs.specs[y], x.spec) for spec, x, y in carried]
            if kept == before:
                return inferred_specs
            self._inputs[: self._n] = kept

    def _infer_body(self) -> _Specs | None:
        """The specs of all values; None where two numbers have become one, and all has to be inferred again."""
        inferred_specs = _Specs(dict(zip(self._graph.inputs, self._inputs, strict=True)))
        for node in self._graph.nodes:
            try:
                inferred_specs.add(node)
            except LimelightError:  # sizes do not fit: numbers are different that stand for one size
                if node.op.elementwise and self._unify([inferred_specs.specs[v] for v in node.inputs]):
                    return None
        return inferred_specs

    def _unify(self, input_specs: Sequence[Any]) -> bool:
        """Gives one number to sizes that meet in an elementwise op, axis by axis from the last; whether any met."""
        shapes = [spec.shape[::-1] for spec in input_specs if isinstance(spec, TensorSpec)]
        for sizes in itertools.zip_longest(*shapes):
            ours = self._numbers.intersection(sizes)
            one = next((m for m in sizes if m is not None and m > 1 and m not in ours), min(ours, default=0))
            replaced = [_with_number(spec, ours - {one}, one) for spec in self._inputs]
            if replaced != self._inputs:
                self._inputs = replaced
                return True
        return False


def _with_number(spec: Spec, numbers: set[int], one: int) -> Spec:
    if not isinstance(spec, TensorSpec) or numbers.isdisjoint(spec.shape):
        return spec
    return known(tuple([one if m in numbers else m for m in spec.shape]), spec.dtype)


def _unchanged_sizes(before: Any, after: Any, declared: Any) -> Any:
    """The spec of a carried value with numbers for those sizes that a step leaves as they were."""
    if not isinstance(before, TensorSpec):
        return before
    sizes: Shape = tuple(
        [m if m == k else d for m, k, d in zip(before.shape, after.shape, declared.shape, strict=True)]
    )
    return before if sizes == before.shape else known(sizes, before.dtype)
