"""What a node does besides computing its outputs: which variables it reads and writes, which chains it belongs to."""

from __future__ import annotations

from typing import Final, NamedTuple

from limelight.core.spec import VariableSpec
from limelight.errors import GraphError
from limelight.graph.ir import Graph, Node, Value


class Effects(NamedTuple):
    """`reads` and `writes` are variable inputs of the node or graph; `chains` a subset of {"random", "io"}.

    `depth` is how many calls within calls a graph makes.
    """

    reads: frozenset[Value]
    writes: frozenset[Value]
    chains: frozenset[str]
    depth: int = 0

    @property
    def any(self) -> bool:
        return bool(self.reads or self.writes or self.chains)

    @property
    def changes(self) -> bool:
        """Whether running the node can be noticed by others: such a node is never removed."""
        return bool(self.writes or self.chains)


WRITES: Final = "writes"
"""The effect of an op that assigns each variable which it takes: a table of an executor."""
NONE = Effects(frozenset(), frozenset(), frozenset())


def effects_of(node: Node) -> Effects:
    """The effects of one node, those of the functions that it calls included. A draw writes to its generator."""
    effect = node.op.effect
    if effect == WRITES:
        written = [value for value in node.inputs if isinstance(value.spec, VariableSpec)]
        return Effects(frozenset(), frozenset(written), frozenset())
    if node.op.higher_order:
        return _of_functions(node)
    if effect is None:
        return NONE
    target = frozenset(node.inputs[:1])
    if effect == "read":
        return Effects(target, frozenset(), frozenset())
    if effect == "write" or (effect == "random" and all(isinstance(value.spec, VariableSpec) for value in target)):
        return Effects(frozenset(), target, frozenset())
    return Effects(frozenset(), frozenset(), frozenset([effect]))


def effects_of_graph(graph: Graph) -> Effects:
    """The effects of running a whole graph, in terms of its inputs. Raises GraphError for a graph that calls itself."""
    waiting = [graph]
    entered: set[int] = set()  # callers of what is on top: the others in `waiting` are only called by the same graph
    while waiting:  # callees first, without recursion, each graph once
        current = waiting[-1]
        unknown = [f.graph for f in current.functions() if f.graph.summary is None] if current.summary is None else []
        if not unknown:
            current.summary = current.summary or _summarise(current)
            waiting.pop()
            continue
        entered.add(id(current))
        if not entered.isdisjoint(map(id, unknown)):
            raise GraphError(f"graph {current.name} calls a function that is calling it: recursion has no graph")
        waiting += unknown
    summary: Effects = graph.summary
    return summary


def _summarise(graph: Graph) -> Effects:
    effects_of_nodes = [effects_of(node) for node in graph.nodes if node.op.effect is not None or node.op.higher_order]
    outside = set(graph.inputs)  # generators that the graph splits off are nobody else's
    reads = frozenset(value for effects in effects_of_nodes for value in effects.reads if value in outside)
    writes = frozenset(value for effects in effects_of_nodes for value in effects.writes if value in outside)
    depth = max((1 + effects_of_graph(function.graph).depth for function in graph.functions()), default=0)
    return Effects(reads, writes, frozenset(chain for effects in effects_of_nodes for chain in effects.chains), depth)


def _of_functions(node: Node) -> Effects:
    """A called function's effects, in terms of the caller's values: its inputs are the last inputs of the node."""
    reads: set[Value] = set()
    writes: set[Value] = set()
    chains: set[str] = set(["io"] if node.op.effect == "io" else [])
    for function in node.functions:
        inner = effects_of_graph(function.graph)
        outer = dict(
            zip(function.graph.inputs, node.inputs[len(node.inputs) - len(function.graph.inputs) :], strict=True)
        )
        reads |= {outer[value] for value in inner.reads}
        writes |= {outer[value] for value in inner.writes}
        chains |= inner.chains
    assert all(isinstance(value.spec, VariableSpec) for value in reads | writes)
    return Effects(frozenset(reads), frozenset(writes), frozenset(chains))


class EffectOrder:
    """Gives each node with an effect the nodes that must run before it: its effect edges, `Node.after`.

    A read follows the last write of its variable; a write follows that write and the reads since. A draw writes to its
    generator. What belongs to no variable, such as input and output, forms one chain of each kind.
    """

    def __init__(self) -> None:
        self._writes: dict[Value, Node] = {}
        self._reads: dict[Value, list[Node]] = {}
        self._chains: dict[str, Node] = {}

    def place(self, node: Node) -> tuple[Node, ...]:
        effects: Effects = effects_of(node)
        after: dict[Node, None] = {}
        for value in effects.reads:
            if value in self._writes:
                after[self._writes[value]] = None
        for value in effects.writes:
            after |= dict.fromkeys(self._reads.get(value, ()))
            if value in self._writes:
                after[self._writes[value]] = None
        for chain in effects.chains:
            if chain in self._chains:
                after[self._chains[chain]] = None
        self._note(node, effects)
        return tuple(after)

    def _note(self, node: Node, effects: Effects) -> None:
        for value in effects.reads:
            self._reads.setdefault(value, []).append(node)
        for value in effects.writes:
            self._writes[value] = node
            self._reads[value] = []
        for chain in effects.chains:
            self._chains[chain] = node
