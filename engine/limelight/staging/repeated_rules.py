"""Gradient rules that a trace has met before: their nodes are written once more, without running the rule.

A rule is a function of the output's gradient and of what was saved for it, and in a trace it sees types, no values: for
tensors of the same types, and otherwise the same objects, it would write the same ops again. In a gradient of many
alike ops most of the time would go into dispatching these, so the tracer keeps the nodes of a rule as a `Fragment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from limelight.core.op import Op
from limelight.core.spec import Spec
from limelight.graph.ir import Node, Value, node_with_one_output
from limelight.ops.create.literal import constant_op
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code.source_line import Source


class Step(NamedTuple):
    """One node: its operands are picked out of the values so far."""

    op: Op
    operands: Any
    params: tuple[Any, ...]
    spec: Spec


class Fragment:
    """What a rule has written for tensors of certain types.

    Args:
        kept: what was saved; where the types are known by `id`, no other object may get theirs.
        steps: the nodes, None where they cannot be written again.
        shared: values from outside of the rule that they use, captures and literals.
        result: the place of the result among the values, which are those of the tensors, the shared ones, and what
            each step adds; -1 for None.
    """

    __slots__ = ("kept", "result", "shared", "steps")

    def __init__(self, kept: Any, steps: list[Step] | None, shared: list[Value], result: int) -> None:
        self.kept = kept
        self.steps = steps
        self.shared = shared
        self.result = result

    def write(self, values: list[Value], nodes: list[Node], stack: tuple[Source, ...], scope: str) -> Value:
        """Adds the nodes to `nodes`; returns the value of the result.

        Args:
            values: those of the tensors that the rule is given.
            nodes: the nodes of the graph so far.
            stack: the lines that the nodes belong to.
            scope: their name scope.
        """
        values += self.shared
        for op, operands, params, spec in self.steps or ():
            node = node_with_one_output(op, operands(values), params, spec, stack, scope)
            nodes.append(node)
            values.append(node.outputs[0])
        return values[self.result]


def fragment(given: Sequence[SymbolicTensor], kept: Any, nodes: Sequence[Node], result: Any) -> Fragment:
    """What a rule has written as a fragment.

    Args:
        given: the tensors that it was given; none of them twice, so that each operand is one of them for sure.
        kept: whatever else it was given.
        nodes: what it wrote.
        result: what it returned.
    """
    values = [x._value for x in given]
    alone = (kept, [value.spec for value in values])
    alike = type(result) is SymbolicTensor and result._tracer is given[0]._tracer
    if not (alike or result is None) or not all(map(_is_plain, nodes)):
        return Fragment(alone, None, [], -1)
    written = [node for node in nodes if node.op is not constant_op]  # constants stand in the graph for all that follow
    own = {node.outputs[0] for node in written}
    operands = [value for node in written for value in node.inputs] + ([result._value] if alike else [])
    shared = list(dict.fromkeys([value for value in operands if value not in own and value not in values]))
    places = {value: i for i, value in enumerate([*values, *shared, *[node.outputs[0] for node in written]])}
    steps = [
        Step(node.op, _picker([places[value] for value in node.inputs]), node.params, node.outputs[0].spec)
        for node in written
    ]
    return Fragment(alone, steps, shared, places[result._value] if alike else -1)


def _is_plain(node: Node) -> bool:
    op = node.op
    return op.effect is None and not op.higher_order and node.device is None and len(node.outputs) == 1


def _picker(places: Sequence[int]) -> Any:
    """A function that picks the values at `places` out of a list, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    if not places:
        return lambda values: ()
    (place,) = places
    return lambda values: (values[place],)
