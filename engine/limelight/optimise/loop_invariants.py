"""Computes before a loop what is the same in each of its iterations.

Only what depends on captured tensors and literals alone, and only ops that cannot fail on operands of known sizes: a
loop may have no iteration at all, and then nothing of its body may be noticed. For the same reason the work must be
little, unless the loop is known to run: the condition holds for its first, literal values, or there are rows to scan.
Exact.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from limelight.core.spec import TensorSpec
from limelight.graph.build import Rewriter
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import FunctionLike, Graph, Node, Value
from limelight.ops.create.literal import constant_op
from limelight.optimise.pass_record import PassRecord, Recorder
from limelight.optimise.rewriter import constant_of, static, tensor
from limelight.optimise.view_algebra import VIEWS

LITTLE: Final = 1 << 16
"""Multiplications, or so, that a loop may be made to cost that never runs."""
DEEPEST: Final = 20
"""Loops within loops that are looked into."""
_WHILE: Final = ("cond", "body", "n_vars", "maximum_iterations")
_SCAN: Final = ("body", "n_carry", "n_xs", "length")
_SAFE: Final = VIEWS.union(
    ["add", "subtract", "multiply", "divide", "negative", "reciprocal", "abs", "square", "sqrt", "rsqrt", "matmul"],
    ["exp", "log", "log1p", "expm1", "tanh", "sigmoid", "sin", "cos", "relu", "softplus", "maximum", "minimum"],
    ["sum", "mean", "sum_to", "where", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"],
)
"""Ops that do not fail on operands that fit. They are listed here and do not say so themselves, since nobody else asks,
and an op that nobody has looked at with this in mind must stay where it is."""


def hoist(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with the invariant part of each loop's condition and body in front of the loop."""
    recorder = Recorder("hoist", graph)
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        invariants = _Invariants(node) if node.op.higher_order and _is_loop(node) and node.device is None else None
        if invariants is None or not invariants.worthwhile(rewriter.inputs(node)):
            rewriter.keep(node)
            continue
        extra, copies = invariants.copy_out(rewriter, node)
        loop = rewriter.rebuild(node, (*rewriter.inputs(node), *extra))
        functions = invariants.functions()
        loop.params = (*functions, *node.params[len(functions) :])
        moved = "this node is" if len(copies) == 1 else f"these {len(copies)} nodes are"
        reason = f"{moved} the same in every iteration of the {node.op}"
        recorder.note("loop invariant", reason, (), tuple(copies), added=len(copies))
    return recorder.finish(rewriter)


def _is_loop(node: Node) -> bool:
    return node.op.attrs[:4] in (_WHILE, _SCAN)


class _Invariants:
    """What is the same in every iteration of a loop, and may be computed in front of it."""

    def __init__(self, loop: Node) -> None:
        self._loop = loop
        scans = loop.op.attrs[:4] == _SCAN
        self._n: int = loop.params[1] + loop.params[2] if scans else loop.params[2]  # inputs that change as it goes
        self._functions: tuple[FunctionLike, ...] = loop.params[: 1 if scans else 2]
        same = [hasattr(f, "with_graph") and len(f.graph.inputs) == len(loop.inputs) for f in self._functions]
        self._graphs = [_with_loops_hoisted(f.graph) for f in self._functions]
        self._invariant = [_invariant(graph, self._n) if all(same) else {} for graph in self._graphs]
        self._boundary_values = [
            _boundary_values(graph, invariant) for graph, invariant in zip(self._graphs, self._invariant, strict=True)
        ]

    def worthwhile(self, inputs: tuple[Value, ...]) -> bool:
        moved = [node for invariant in self._invariant for node in invariant if node.op is not constant_op]
        if not any(self._boundary_values) or all(node.op.name in VIEWS for node in moved):
            return False
        return sum(map(_cost, self._invariant[-1])) <= LITTLE or _surely_iterates(self._loop, inputs)

    def copy_out(self, rewriter: Rewriter, loop: Node) -> tuple[list[Value], list[Node]]:
        """The values that the loop captures besides, and the nodes in front of it that make them."""
        extra: list[Value] = []
        copies: list[Node] = []
        outer = rewriter.inputs(loop)
        for graph, invariant, crossing in zip(self._graphs, self._invariant, self._boundary_values, strict=True):
            values: dict[Value, Value] = dict(zip(graph.inputs, outer, strict=True))
            for node in invariant:
                copy = Node(
                    node.op,
                    tuple([values[x] for x in node.inputs]),
                    node.params,
                    [x.spec for x in node.outputs],
                    stack=node.stack,
                    scope=node.scope,
                )
                values[node.outputs[0]] = copy.outputs[0]
                copies.append(copy)
            extra += [values[value] for value in crossing]
        rewriter.nodes += copies
        return extra, copies

    def functions(self) -> list[Any]:
        """The loop's functions with the values that cross as their last inputs, each with those of both."""
        both = [value for crossing in self._boundary_values for value in crossing]
        functions = []
        for function, graph, invariant in zip(self._functions, self._graphs, self._invariant, strict=True):
            new = {value: Value(value.spec) for value in both}
            functions.append(function.with_graph(_without(graph, invariant, new)))  # type: ignore[attr-defined]  # staged
        return functions


def _with_loops_hoisted(graph: Graph) -> Graph:
    """A body in which loops have handed out what is invariant for them: it may be so for this loop, too."""
    loops = any(node.op.higher_order and _is_loop(node) for node in graph.nodes)
    return hoist(graph)[0] if loops and effects_of_graph(graph).depth <= DEEPEST else graph


def _invariant(graph: Graph, n_vars: int) -> dict[Node, None]:
    """The nodes that compute the same each time, with the literals that they need."""
    same_values = {value for value in graph.inputs[n_vars:] if isinstance(value.spec, TensorSpec)}
    literals: dict[Value, Node] = {}
    invariant: dict[Node, None] = {}
    for node in graph.nodes:
        if node.op is constant_op and node.device is None:
            literals[node.outputs[0]] = node
        elif node.op.name in _SAFE and node.device is None and _is_invariant(node, same_values, literals):
            invariant.update(dict.fromkeys(literals[x] for x in node.inputs if x in literals))
            invariant[node] = None
            same_values.add(node.outputs[0])
    return invariant


def _is_invariant(node: Node, same_values: set[Value], literals: dict[Value, Node]) -> bool:
    known = all(value in same_values or value in literals for value in node.inputs)
    return known and all(map(static, (*node.inputs, *node.outputs)))


def _boundary_values(graph: Graph, invariant: dict[Node, None]) -> list[Value]:
    """The values that stay behind as captures: those that other nodes use, or the graph returns."""
    moved = {node.outputs[0] for node in invariant if node.op is not constant_op}
    used = dict.fromkeys(x for node in graph.nodes if node not in invariant for x in node.inputs if x in moved)
    return list(used | dict.fromkeys(x for x in graph.outputs if x in moved))


def _without(graph: Graph, invariant: dict[Node, None], new: dict[Value, Value]) -> Graph:
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node in invariant and node.op is not constant_op:
            rewriter.replace(node, [new.get(value, value) for value in node.outputs])
        else:
            rewriter.keep(node)
    rest = rewriter.finish()
    names = [*graph.input_names, *[f"invariant{i}" for i in range(len(new))]]
    inputs = [*graph.inputs, *new.values()]
    n = graph.n_captures + len(new)
    return Graph(graph.name, inputs, rest.nodes, rest.outputs, input_names=names, n_captures=n)


def _cost(node: Node) -> int:
    """Roughly the multiplications that a node takes."""
    if node.op is constant_op or node.op.name in VIEWS:
        return 0
    inner = tensor(node.inputs[0]).shape[-1] or 0 if node.op.name == "matmul" else 1
    return max(tensor(x).size or 0 for x in (*node.inputs, *node.outputs)) * inner


def _surely_iterates(loop: Node, inputs: tuple[Value, ...]) -> bool:
    """Whether the loop is known to have an iteration: its condition holds for literals, or there is a row to scan."""
    if loop.op.attrs[:4] == _SCAN:
        n, m, length = loop.params[1:4]
        rows = [tensor(x).shape[0] for x in inputs[n : n + m] if isinstance(x.spec, TensorSpec)]
        return any(size is not None and size > 0 for size in (length, *rows))
    graph = loop.params[0].graph
    if loop.params[3] == 0:
        return False
    values = {inner: constant_of(outer) for inner, outer in zip(graph.inputs, inputs, strict=False)}
    for node in graph.nodes:
        operands = [values.get(value) for value in node.inputs]
        if any(x is None for x in operands) or node.op.effect is not None or not node.op.direct or node.op.placement:
            continue
        try:
            with np.errstate(all="ignore"):
                values[node.outputs[0]] = node.op.numpy_kernel(*operands, *node.params)
        except Exception:  # noqa: BLE001  # it says so when it runs
            return False
    answer = values.get(graph.outputs[0])
    return answer is not None and bool(np.all(answer))
