"""Which inputs of a loop its results depend on, so that the same gradients are None as when the loop runs eagerly.

The body is followed as many steps as are known. Gradients are zeros, not None, only where the dependence is decided by
values: a branch that is not taken, a loop without iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from limelight.autodiff import INEXACT
from limelight.core.spec import ObjectSpec
from limelight.graph.ir import Graph, Value

_MAX_STEPS: Final = 1000
"""How many steps are followed one by one."""


def input_dependence(graph: Graph) -> tuple[frozenset[int], ...]:
    """For each output of `graph`, the numbers of the inputs that its gradient may lead to; in doubt too many."""
    reaches: dict[Value, frozenset[int]] = {value: frozenset([i]) for i, value in enumerate(graph.inputs)}
    for node in graph.nodes:
        of_inputs = [reaches[value] if _continuous(value) else _NOTHING for value in node.inputs]
        everything = _NOTHING if node.op.vjp is None else _NOTHING.union(*of_inputs)
        of_outputs = [everything] * len(node.outputs)
        if node.op.name in ("call", "call_forward"):
            inner = input_dependence(node.functions[0].graph)
            of_outputs = [_NOTHING.union(*[of_inputs[i] for i in places]) for places in inner]
        for value, places in zip(node.outputs, of_outputs, strict=True):
            reaches[value] = places if _continuous(value) else _NOTHING
    return tuple([reaches[value] if _continuous(value) else _NOTHING for value in graph.outputs])


_NOTHING: Final[frozenset[int]] = frozenset()


def _continuous(value: Value) -> bool:
    """Whether gradients may go through a value: not through integers; through opaque values they may."""
    return isinstance(value.spec, ObjectSpec) or value.spec.dtype in INEXACT


def inputs_with_gradients(
    of: Sequence[Iterable[int]],
    n: int,
    last: Iterable[int],
    shown: Iterable[int],
    steps: Any,
    some_end_early: bool = False,
) -> set[int]:
    """The inputs of a loop that have gradients.

    Args:
        of: for each output of the body, the inputs that it depends on.
        n: the number of carried values, the first inputs and outputs of the body.
        last: the carried values that have gradients after the loop.
        shown: the outputs whose stacks have gradients.
        steps: the number of steps, None where it is not known.
        some_end_early: whether examples of a batch may make fewer steps than that, or none.
    """
    carried, shown = frozenset(last), frozenset(shown)
    others: set[int] = set()
    ever = set(carried)
    seen: set[frozenset[int]] = set()
    known = isinstance(steps, int) and steps <= _MAX_STEPS
    for _ in range(steps if known else _MAX_STEPS):
        if carried in seen and not known:
            break
        seen.add(carried)
        places = _NOTHING.union(*[of[j] for j in carried | shown])
        carried = frozenset([i for i in places if i < n])
        others |= {i for i in places if i >= n}
        ever |= carried
    return others | (set(carried) if known and not some_end_early else ever)
