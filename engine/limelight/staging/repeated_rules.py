"""Gradient rules that a trace has met before: their nodes are written once more, without running the rule.

A rule is a function of the output's gradient and of what was saved for it, and in a trace it sees types, no values: for
tensors of the same types, and otherwise the same objects, it would write the same ops again. In a gradient of many
alike ops most of the time would go into dispatching these, so the tracer keeps the nodes of a rule as a `Fragment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple
from weakref import ref

from limelight.core.op import Op
from limelight.core.spec import Spec
from limelight.graph.ir import Node, Value
from limelight.ops.create.literal import constant_op
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code.source_line import Source

_blank: Final[Any] = object.__new__


class Step(NamedTuple):
    """One node: its operands are picked out of the values so far."""

    op: Op
    operands: Any
    params: tuple[Any, ...]
    spec: Spec


class Fragment:
    """What has been written for tensors of certain types.

    Args:
        kept: what was given; where the types are known by `id`, no other object may get theirs.
        steps: the nodes, None where they cannot be written again.
        shared: values from outside that they use, captures and literals.
        results: the places of the results among the values, which are those of the tensors, the shared ones, and what
            each step adds; -1 for None.
    """

    __slots__ = ("kept", "results", "shared", "steps")

    def __init__(self, kept: Any, steps: list[Step] | None, shared: list[Value], results: tuple[int, ...]) -> None:
        self.kept = kept
        self.steps = steps
        self.shared = shared
        self.results = results

    def write(self, values: list[Value], nodes: list[Node], stack: tuple[Source, ...], scope: str) -> None:
        """Adds the nodes to `nodes`, and what they make to `values`.

        Args:
            values: those of the tensors that are given.
            nodes: the nodes of the graph so far.
            stack: the lines that the nodes belong to.
            scope: their name scope.
        """
        values += self.shared
        add = values.append
        for op, operands, params, spec in self.steps or ():  # `node_with_one_output`, whose call takes a tenth of it
            node: Any = _blank(Node)
            output: Any = _blank(Value)
            output.spec = spec
            output._node = ref(node)
            output.index = 0
            node.op = op
            node.inputs = operands(values)
            node.params = params
            node.outputs = (output,)
            node.device = None
            node.stack = stack
            node.scope = scope
            node.after = ()
            nodes.append(node)
            add(output)


def fragment_of(
    tensors: Sequence[SymbolicTensor], operands: Sequence[Any], nodes: Sequence[Node], results: Sequence[Any]
) -> Fragment:
    """What has been written as a fragment.

    Args:
        tensors: those of this trace among the operands; none of them twice, so that it is clear which is used where.
        operands: what was given.
        nodes: what was written.
        results: what came of it.
    """
    values = [x._value for x in tensors]
    kept = (operands, [value.spec for value in values])
    if not tensors:  # a rule of what came from outside the trace alone
        return Fragment(kept, None, [], ())
    wanted = [x._value for x in results if type(x) is SymbolicTensor and x._tracer is tensors[0]._tracer]
    missing = [x for x in results if x is None]
    if len(wanted) + len(missing) < len(results) or not all(map(_is_plain, nodes)):
        return Fragment(kept, None, [], ())
    written = [node for node in nodes if node.op is not constant_op]  # constants stand in the graph for all that follow
    made = [node.outputs[0] for node in written]
    own = {*values, *made}
    read = [value for node in written for value in node.inputs]
    shared = list(dict.fromkeys([value for value in [*read, *wanted] if value not in own]))
    places = {value: i for i, value in enumerate([*values, *shared, *made])}
    steps = [
        Step(node.op, _picker([places[value] for value in node.inputs]), node.params, node.outputs[0].spec)
        for node in written
    ]
    return Fragment(kept, steps, shared, tuple([-1 if x is None else places[x._value] for x in results]))


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
