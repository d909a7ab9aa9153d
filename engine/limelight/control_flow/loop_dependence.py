"""Which inputs of a loop its results depend on: as many gradients are None as when the loop runs eagerly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from limelight.autodiff import INEXACT
from limelight.core.spec import ObjectSpec
from limelight.graph.ir import Graph, Value

_MANY: Final = 1000
"""Steps that are looked at one by one."""


def influences(graph: Graph) -> tuple[frozenset[int], ...]:
    """For each output of `graph`, the numbers of the inputs that a gradient of it may lead to; rather too many."""
    found: dict[Value, frozenset[int]] = {value: frozenset([i]) for i, value in enumerate(graph.inputs)}
    for node in graph.nodes:
        of_inputs = [found[value] if _continuous(value) else _NOTHING for value in node.inputs]
        everything = _NOTHING if node.op.vjp is None else _NOTHING.union(*of_inputs)
        of_outputs = [everything] * len(node.outputs)
        if node.op.name in ("call", "call_forward"):
            inner = influences(node.functions[0].graph)
            of_outputs = [_NOTHING.union(*[of_inputs[i] for i in places]) for places in inner]
        for value, places in zip(node.outputs, of_outputs, strict=True):
            found[value] = places if _continuous(value) else _NOTHING
    return tuple([found[value] if _continuous(value) else _NOTHING for value in graph.outputs])


_NOTHING: Final[frozenset[int]] = frozenset()


def _continuous(value: Value) -> bool:
    """Whether gradients may go through a value: not through integers; through opaque ones, as far as one can tell."""
    return isinstance(value.spec, ObjectSpec) or value.spec.dtype in INEXACT


def reached(of: Sequence[Iterable[int]], n: int, last: Iterable[int], shown: Iterable[int], steps: Any) -> set[int]:
    """The inputs of a loop that have gradients.

    `of`: for each output of the body, the inputs that it depends on, of which the first `n` are handed on. `last`: the
    numbers of the carries that have gradients after the loop, `shown` those of the outputs whose stacks have. `steps`:
    how many steps there are, None where that is not known.
    """
    carries, shown = frozenset(last), frozenset(shown)
    others: set[int] = set()
    ever = set(carries)
    seen: set[frozenset[int]] = set()
    known = isinstance(steps, int) and steps <= _MANY
    for _ in range(steps if known else _MANY):
        if carries in seen and not known:
            break
        seen.add(carries)
        places = _NOTHING.union(*[of[j] for j in carries | shown])
        carries = frozenset([i for i in places if i < n])
        others |= {i for i in places if i >= n}
        ever |= carries
    return others | (set(carries) if known else ever)
