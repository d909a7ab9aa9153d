"""Gradient rules that a trace has met before: their nodes are written once more, without running the rule.

A rule is a function of the output's gradient and of what was saved for it, and in a trace it sees types, no values: for
tensors of the same types, and otherwise the same objects, it would write the same ops again. In a gradient of many
alike ops most of the time would go into dispatching these, so the tracer keeps the nodes of a rule as a `Fragment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple
from weakref import ref

from limelight.core.devices import CPU0
from limelight.core.op import Op
from limelight.core.spec import Spec
from limelight.graph.ir import Node, Value
from limelight.ops.create.literal import constant_op
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code.source_line import GENERATED_PREFIX, Source


class Step(NamedTuple):
    """One node; its operands are places among the values so far."""

    op: Op
    operands: tuple[int, ...]
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

    __slots__ = ("_results", "_shared", "_write", "kept", "steps")

    def __init__(self, kept: Any, steps: list[Step] | None, shared: list[Value], results: tuple[int, ...]) -> None:
        self.kept = kept
        self.steps = steps
        self._shared = shared
        self._results = results
        self._write: Any = None

    def write(
        self, tensors: list[SymbolicTensor], nodes: list[Node], stack: tuple[Source, ...], scope: str, tracer: Any
    ) -> Sequence[Any]:
        """Adds the nodes to `nodes`; returns the results.

        Args:
            tensors: those that are given.
            nodes: the nodes of the graph so far.
            stack: the lines that the nodes belong to.
            scope: their name scope.
            tracer: that of the new tensors.
        """
        write = self._write
        if write is None:
            steps = self.steps or []
            make = _writer(len(tensors), len(self._shared), tuple([step.operands for step in steps]), self._results)
            write = self._write = make(*self._shared, *[x for step in steps for x in (step.op, step.params, step.spec)])
        return write(tensors, nodes, stack, scope, tracer)  # type: ignore[no-any-return]


@cache
def _writer(n_tensors: int, n_shared: int, operands: tuple[tuple[int, ...], ...], results: tuple[int, ...]) -> Any:
    """A function from the shared values, and the op, parameters and spec of each node, to one that writes the nodes.

    It is `node_with_one_output` unrolled, which takes two thirds of the time of a loop over the steps. There are few of
    different form: rules of many ops share them.
    """
    first = n_tensors + n_shared
    read = {place for each in operands for place in each}
    made = sorted({place for place in results if place >= n_tensors})
    given = [f"v{n_tensors + i}" for i in range(n_shared)]
    given += [name for i in range(len(operands)) for name in (f"op{i}", f"params{i}", f"spec{i}")]
    lines = [f"t{i} = tensors[{i}]" for i in range(n_tensors) if i in read or i in results]
    lines += [f"v{i} = t{i}._value" for i in range(n_tensors) if i in read]
    for i, places in enumerate(operands):
        value, inputs = f"v{first + i}", "".join([f"v{place}, " for place in places])
        lines += [f"n{i} = blank(Node)", f"{value} = blank(Value)", f"{value}.spec = spec{i}"]
        lines += [f"{value}._node = ref(n{i})", f"{value}.index = 0", f"n{i}.op = op{i}", f"n{i}.inputs = ({inputs})"]
        lines += [
            f"n{i}.params = params{i}",
            f"n{i}.outputs = ({value},)",
            f"n{i}.device = None",
            f"n{i}.stack = stack",
        ]
        lines += [f"n{i}.scope = scope", f"n{i}.after = ()"]
    lines.append(f"nodes += ({''.join([f'n{i}, ' for i in range(len(operands))])})")
    for place in made:
        lines += [f"t{place} = blank(SymbolicTensor)", f"t{place}._value = v{place}", f"t{place}._tracer = tracer"]
        lines += [f"t{place}._device = CPU0", f"t{place}._uid = 0"]
    lines.append(f"return ({''.join(['None, ' if place < 0 else f't{place}, ' for place in results])})")
    inner = "".join([f"        {line}\n" for line in lines])
    head = f"def make({', '.join(given)}):\n    def write(tensors, nodes, stack, scope, tracer):\n"
    source = f"{head}{inner}    return write"
    names = {"blank": object.__new__, "Node": Node, "Value": Value, "ref": ref, "CPU0": CPU0}
    scope = names | {"SymbolicTensor": SymbolicTensor}
    exec(compile(source, f"{GENERATED_PREFIX}repeated rule>", "exec"), scope)
    return scope["make"]


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
        Step(node.op, tuple([places[value] for value in node.inputs]), node.params, node.outputs[0].spec)
        for node in written
    ]
    return Fragment(kept, steps, shared, tuple([-1 if x is None else places[x._value] for x in results]))


def _is_plain(node: Node) -> bool:
    op = node.op
    return op.effect is None and not op.higher_order and node.device is None and len(node.outputs) == 1
