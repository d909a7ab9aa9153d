"""Passes that look at one node after another, and at what makes its operands: a table of rules and one walk."""

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
from limelight.optimise.pass_record import PassRecord, Recorder


class Found(NamedTuple):
    """What a rule puts in the place of a node's (only) output, and why."""

    rule: str
    reason: str
    value: Value


Rule: TypeAlias = "Callable[[Scene, Node, tuple[Value, ...]], Found | None]"
"""Looks at a node of the old graph and its operands in the new one; None where it has nothing better."""


_ANY: Final[Mapping[str, frozenset[str]]] = {}


class Scene:
    """The new graph as far as it goes, with what rules ask about it."""

    def __init__(self, graph: Graph) -> None:
        self.rewriter = Rewriter(graph)
        self.uses = uses_of(graph)
        self._made: list[Node] = []
        self._like: Node | None = None

    def at(self, node: Node) -> None:
        """Rules look at `node` from now on."""
        self._like, self._made = node, []

    def forget(self) -> None:
        """Takes back the nodes that were added."""
        if self._made:
            del self.rewriter.nodes[-len(self._made) :]
            self._made = []

    @property
    def made(self) -> tuple[Node, ...]:
        """The nodes that were added for the node that rules look at."""
        return tuple(self._made)

    def add(self, op: str | Op, *inputs: Value, params: tuple[Any, ...] = (), spec: Spec | None = None) -> Value:
        """The output of a new node; its spec is inferred if it is not given."""
        assert self._like is not None
        op = get(op) if isinstance(op, str) else op
        node = self.rewriter.add(self._like, op, inputs, params, () if spec is None else (spec,))
        self._made.append(node)
        return node.outputs[0]

    def promise(self, value: Value, spec: Spec) -> bool:
        """Whether as much is known of `value` as `spec` says; a value made just now is given what was declared."""
        if value.spec == spec:
            return True
        mine, made = value.spec, self._made and self._made[-1].outputs[0] is value
        if not made or not isinstance(mine, TensorSpec) or not isinstance(spec, TensorSpec) or not _sharper(spec, mine):
            return False
        value.spec = spec
        return True

    def literal(self, array: Any, dtype: Any) -> Value:
        """A new constant."""
        made = np.array(array, dtype=dtype)
        return self.add(constant_op, params=(Literal(made),), spec=known(made.shape, made.dtype))

    def maker(self, value: Value, *ops: str) -> Node | None:
        """The node that makes `value`, if it is one of these ops and runs wherever its operands are."""
        node = value.node
        return node if node is not None and node.device is None and node.op.name in ops else None

    def alone(self, value: Value) -> bool:
        """Whether nothing else uses `value`, as far as is known."""
        return self.uses.get(value, 1) <= 1


def _sharper(spec: TensorSpec, other: TensorSpec) -> bool:
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
    name: str, graph: Graph, rules: Mapping[str, Sequence[Rule]], makers: Mapping[str, frozenset[str]] = _ANY
) -> tuple[Graph, PassRecord]:
    """`graph` with each node replaced by what the first of its op's rules finds, operands before users.

    The rules of an op in `makers` find something only where one of those ops makes an operand; they are not asked where
    none does.
    """
    recorder = Recorder(name, graph)
    scene = Scene(graph)
    rewriter = scene.rewriter
    for node in graph.nodes:
        given = rules.get(node.op.name)
        found = None
        if given is not None and node.device is None:
            found = _first(scene, node, given, makers.get(node.op.name))
        if found is None:
            kept = rewriter.keep(node)
            if kept is not node:
                for old, copy in zip(node.outputs, kept.outputs, strict=True):
                    scene.uses[copy] = scene.uses.get(old, 1)
            continue
        rewriter.replace(node, [found.value])
        maker = found.value.node
        new = scene.made or ((maker,) if maker is not None else ())
        recorder.note(found.rule, found.reason, (node,), new, added=len(scene.made))
        known_uses, more = scene.uses.get(found.value, 0), scene.uses.get(node.outputs[0], 1)
        scene.uses[found.value] = known_uses + more - (0 if scene.made else 1)
    return recorder.finish(rewriter)


def _first(scene: Scene, node: Node, rules: Sequence[Rule], makers: frozenset[str] | None) -> Found | None:
    inputs = scene.rewriter.inputs(node)
    if makers is not None and not any((made := value.node) is not None and made.op.name in makers for value in inputs):
        return None
    scene.at(node)
    for rule in rules:
        found = rule(scene, node, inputs)
        if found is not None and scene.promise(found.value, node.outputs[0].spec):
            return found
        scene.forget()  # more or less may be known of its shape than of what it would replace
    return None


def tensor(value: Value) -> TensorSpec:
    """The spec of a value that is a tensor."""
    assert isinstance(value.spec, TensorSpec)
    return value.spec


def static(value: Value) -> bool:
    """Whether `value` is a tensor of which every size is known."""
    return isinstance(value.spec, TensorSpec) and is_static(value.spec.shape)


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
