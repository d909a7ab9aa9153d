"""Peephole rewriting: a table of rules by op, and one walk over a graph that applies them.

A rule sees one node and what produces its operands. Declared sizes stay: what stands for a value knows as much of its
shape. A new node is given the sizes that were declared, and an existing one that knows less is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from limelight.core.op import Op, get
from limelight.core.shapes import is_static
from limelight.core.spec import Spec, TensorSpec, known
from limelight.graph.build import Rewriter
from limelight.graph.ir import Graph, Literal, Node, Value
from limelight.ops.create.literal import constant_op, literal_value
from limelight.optimise.layouts import Layouts
from limelight.optimise.pass_record import PassRecord, Recorder
from limelight.optimise.product_operands import Partners, would_meet


class Replacement(NamedTuple):
    """What a rule puts in the place of a node's (only) output, and why."""

    rule: str
    reason: str
    value: Value


Rule: TypeAlias = "Callable[[RewriteContext, Node, tuple[Value, ...]], Replacement | None]"
"""Looks at a node of the old graph and its operands in the new one; None where it has nothing better."""


_ANY: Final[Mapping[str, frozenset[str]]] = {}
_NONE: Final[Partners] = {}


class RewriteContext:
    """The new graph as far as it has been written, with what rules ask about it."""

    def __init__(self, graph: Graph, apart: Partners, layouts: Layouts | None) -> None:
        self.rewriter = Rewriter(graph)
        self.apart = apart
        self.layouts = layouts
        self.uses = uses_of(graph)
        self._new_nodes: list[Node] = []
        self._node: Node | None = None

    def start_node(self, node: Node) -> None:
        """Rules look at `node` from now on."""
        self._node, self._new_nodes = node, []

    def discard_nodes(self) -> None:
        """Removes the nodes that were added for the node that rules look at."""
        if self._new_nodes:
            del self.rewriter.nodes[-len(self._new_nodes) :]
            self._new_nodes = []

    @property
    def added(self) -> tuple[Node, ...]:
        """The nodes that were added for the node that rules look at."""
        return tuple(self._new_nodes)

    def add(self, op: str | Op, *inputs: Value, params: tuple[Any, ...] = (), spec: Spec | None = None) -> Value:
        """The output of a new node; its spec is inferred if it is not given."""
        assert self._node is not None
        op = get(op) if isinstance(op, str) else op
        node = self.rewriter.add(self._node, op, inputs, params, () if spec is None else (spec,))
        self._new_nodes.append(node)
        return node.outputs[0]

    def declare(self, value: Value, spec: Spec) -> bool:
        """Whether as much is known of `value` as `spec` says; the spec of a value made just now is refined to it."""
        if value.spec == spec:
            return True
        mine, new = value.spec, self._new_nodes and self._new_nodes[-1].outputs[0] is value
        if not new or not isinstance(mine, TensorSpec) or not isinstance(spec, TensorSpec) or not _refines(spec, mine):
            return False
        value.spec = spec
        return True

    def literal(self, array: Any, dtype: Any) -> Value:
        """A new constant."""
        constant = np.array(array, dtype=dtype)
        return self.add(constant_op, params=(Literal(constant),), spec=known(constant.shape, constant.dtype))

    def keeps_bits(self, old: Value, new: Value) -> bool:
        """Whether `new` may stand for `old` where bits are promised: lies as it does, and meets no partner of it."""
        if would_meet(self.apart, self.rewriter, old, new):
            return False
        return self.layouts is None or self.layouts.same(old, new)

    def producer(self, value: Value, *ops: str) -> Node | None:
        """The node that makes `value`, if it is one of these ops and runs wherever its operands are."""
        node = value.node
        return node if node is not None and node.device is None and node.op.name in ops else None

    def used_once(self, value: Value) -> bool:
        """Whether nothing else uses `value`, as far as is known."""
        return self.uses.get(value, 1) <= 1


def _refines(spec: TensorSpec, other: TensorSpec) -> bool:
    """Whether `spec` knows all that `other` knows, and contradicts nothing."""
    if (spec.dtype, spec.rank) != (other.dtype, other.rank):
        return False
    return all(n is None or n == m for m, n in zip(spec.shape, other.shape, strict=True))


def uses_of(graph: Graph) -> dict[Value, int]:
    """How often each value of a graph is used; being returned counts."""
    uses: dict[Value, int] = {}
    for node in graph.nodes:
        for value in node.inputs:
            uses[value] = uses.get(value, 0) + 1
    for value in graph.outputs:
        uses[value] = uses.get(value, 0) + 1
    return uses


def rewrite(
    name: str,
    graph: Graph,
    rules: Mapping[str, Sequence[Rule]],
    producers: Mapping[str, frozenset[str]] = _ANY,
    apart: Partners = _NONE,
    layouts: Layouts | None = None,
) -> tuple[Graph, PassRecord]:
    """Rewrites a graph node by node, operands before users, by the first rule of its op that finds something.

    Args:
        name: that of the pass, for its record.
        graph: the graph, which stays as it is.
        rules: the rules of each op, by the op's name.
        producers: of some ops, the ops of which one must produce an operand for their rules to find anything: where
            none does, no rule is asked. It decides nothing but how long the walk takes.
        apart: values that no replacement may make one with others.
        layouts: where these are to stay as they are, none known yet.

    Returns:
        The new graph and the record of the pass.
    """
    recorder = Recorder(name, graph)
    context = RewriteContext(graph, apart, layouts)
    rewriter = context.rewriter
    for node in graph.nodes:
        op_rules = rules.get(node.op.name)
        replacement = None
        if op_rules is not None and node.device is None:
            replacement = _first_replacement(context, node, op_rules, producers.get(node.op.name))
        if replacement is None:
            kept = rewriter.keep(node)
            if kept is not node:
                for old, copy in zip(node.outputs, kept.outputs, strict=True):
                    context.uses[copy] = context.uses.get(old, 1)
                    if layouts is not None:
                        layouts.stands_for(old, copy)
            continue
        value, added = replacement.value, context.added
        rewriter.replace(node, [value])
        producer = value.node
        new = added or ((producer,) if producer is not None else ())
        recorder.note(replacement.rule, replacement.reason, (node,), new, added=len(added))
        known_uses, more = context.uses.get(value, 0), context.uses.get(node.outputs[0], 1)
        context.uses[value] = known_uses + more - (0 if added else 1)
    return recorder.finish(rewriter)


def _first_replacement(
    context: RewriteContext, node: Node, rules: Sequence[Rule], producers: frozenset[str] | None
) -> Replacement | None:
    inputs = context.rewriter.inputs(node)
    if producers is not None and not any((p := value.node) is not None and p.op.name in producers for value in inputs):
        return None
    context.start_node(node)
    for rule in rules:
        replacement = rule(context, node, inputs)
        if (
            replacement is not None
            and context.keeps_bits(node.outputs[0], replacement.value)
            and context.declare(replacement.value, node.outputs[0].spec)
        ):
            return replacement
        context.discard_nodes()  # more or less may be known of its shape than of what it would replace
    return None


def tensor(value: Value) -> TensorSpec:
    """The spec of a value that is a tensor."""
    assert isinstance(value.spec, TensorSpec)
    return value.spec


def static(value: Value) -> bool:
    """Whether `value` is a tensor of which every size is known."""
    return isinstance(value.spec, TensorSpec) and is_static(value.spec.shape)


def repeats_nothing(other: Value, value: Value) -> bool:
    """Whether `other`, met by broadcasting, leaves `value` in its shape, if the result has the spec of `value`.

    An unknown size may be 1, and is repeated then where `other` may have another one.
    """
    mine, others = tensor(value).shape, tensor(other).shape
    unknown = [axis - len(mine) for axis, n in enumerate(mine) if n is None]
    return all(-axis > len(others) or others[axis] == 1 for axis in unknown)


def constant_of(value: Value) -> Any:
    """The array of a literal that is wherever it is wanted; None for any other value."""
    node = value.node
    return literal_value(node.params) if node is not None and node.op is constant_op and node.device is None else None


def all_equal(value: Value) -> Any:
    """The number that every element of a literal is, as a NumPy scalar; None for any other value."""
    array = constant_of(value)
    if array is None or array.size == 0 or array.size > 64:
        return None
    flat = np.asarray(array).reshape(-1)
    first = flat[0]
    return first if array.size == 1 or flat.tobytes() == first.tobytes() * array.size else None
