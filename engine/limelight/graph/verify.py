"""What every graph must satisfy. Passes and parsers are checked against it in tests.

inputs      names and captures are counted, no input stands twice
arity       a node has as many operands and parameters as its op
defined     an operand is an input or the output of an earlier node
once        a value is made by one node
types       the op's shape and dtype rule agrees with the outputs (an unknown size agrees with any)
variables   only ops that take a variable get one
order       an effect follows, by `after` or by data, the effects that it must not overtake
after       effect edges lead to earlier nodes of the same graph
outputs     the graph returns values that it has
functions   called functions have the inputs that they are given, satisfy all this, and do not call themselves
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from limelight.core import shapes
from limelight.core.spec import Spec, TensorSpec, VariableSpec
from limelight.errors import GraphError, LimelightError
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Node, Value
from limelight.graph.printer import describe


def verify(graph: Graph) -> Graph:
    """Returns `graph`; raises GraphError that names the graph, the node and the rule that it breaks.

    Where a rule of an op could not deal with the node's parameters, what it raised is the error's cause.
    """
    for one in _callees_first(graph):
        _verify_one(one)
    return graph


def _callees_first(graph: Graph) -> list[Graph]:
    """The graph and those that it calls, each once, after those that it calls itself: rules and effects rely on them.

    Raises GraphError if one of them calls itself.
    """
    met = {id(graph)}
    done: list[Graph] = []
    path: list[tuple[Graph, Iterator[Graph]]] = [(graph, _callees(graph))]
    while path:  # depth first, without recursion, so that a call back into the path is seen
        current, callees = path[-1]
        callee = next(callees, None)
        if callee is None:
            done.append(path.pop()[0])
        elif any(callee is caller for caller, _ in path):
            raise GraphError(
                f"graph {current.name}: functions: it calls {callee.name}, which is calling it: recursion has no graph"
            )
        elif id(callee) not in met:
            met.add(id(callee))
            path.append((callee, _callees(callee)))
    return done


def _callees(graph: Graph) -> Iterator[Graph]:
    return iter([function.graph for function in graph.functions()])


def _verify_one(graph: Graph) -> None:
    _check_inputs(graph)
    places: dict[Node, int] = {}
    defined = set(graph.inputs)
    order = _Order(places)
    for node in graph.nodes:
        problem = (
            _arity(node)
            or _defined(graph, node, defined)
            or _variables(graph, node)
            or _rules_of_op(graph, node)
            or _after(node, places)
            or order.check(graph, node)
        )
        if problem:
            raise _broken(graph, node, problem)
        places[node] = len(places)
        defined.update(node.outputs)
    for i, value in enumerate(graph.outputs):
        if value not in defined:
            raise GraphError(f"graph {graph.name}: outputs: output {i} ({value.spec}) is not a value of this graph")


def _broken(graph: Graph, node: Node, problem: str) -> GraphError:
    return GraphError(f"graph {graph.name}: {_describe(graph, node)}: {problem}")


def _describe(graph: Graph, node: Node) -> str:
    try:
        return describe(graph, node)
    except (GraphError, ValueError):  # values that have no name here, or parameters that have none
        return f"node {graph.nodes.index(node)} ({node.op})"


def _check_inputs(graph: Graph) -> None:
    n_inputs = len(graph.inputs)
    if len(graph.input_names) != n_inputs:
        raise GraphError(f"graph {graph.name}: inputs: {n_inputs} inputs have {len(graph.input_names)} names")
    if not 0 <= graph.n_captures <= n_inputs:
        raise GraphError(f"graph {graph.name}: inputs: {graph.n_captures} captures among {n_inputs} inputs")
    if len(set(graph.inputs)) != n_inputs:
        raise GraphError(f"graph {graph.name}: inputs: the same value stands twice among the inputs")
    for name, value in zip(graph.input_names, graph.inputs, strict=True):
        if value.node is not None:
            raise GraphError(f"graph {graph.name}: inputs: {name} is made by a node")


def _arity(node: Node) -> str:
    op = node.op
    if not op.variadic and len(node.inputs) != len(op.operands):
        return f"arity: {op} takes {len(op.operands)} operands, this node has {len(node.inputs)}"
    if len(node.params) != len(op.attrs):
        return f"arity: {op} has the parameters {list(op.attrs)}, this node has {len(node.params)}"
    return ""


def _defined(graph: Graph, node: Node, defined: set[Value]) -> str:
    for i, value in enumerate(node.inputs):
        if value not in defined:
            return f"defined: operand {i} ({value.spec}) is not an input or the output of an earlier node"
    for value in node.outputs:
        if value in defined:
            return f"once: {graph.name_of(value)} is made twice"
        if value.node is not node:
            return f"once: {graph.name_of(value)} says that another node makes it"
    return ""


def _rules_of_op(graph: Graph, node: Node) -> str:
    """What the op's own rules say: its functions' inputs, and its outputs.

    They are written for parameters that a trace has checked, so that from others anything may come, also a result that
    cannot even be printed. What they raise becomes the cause, which shows a fault of a rule where it is.
    """
    try:
        return _functions(node) or _types(node)
    except LimelightError as error:
        raise _broken(graph, node, f"types: {error.bare}") from error
    except Exception as error:
        raise _broken(graph, node, f"types: the rule of {node.op} fails: {type(error).__name__}: {error}") from error


def _types(node: Node) -> str:
    result = node.op.infer(*[value.spec for value in node.inputs], *node.params)
    inferred = result if isinstance(result, tuple) else (result,)
    if len(inferred) != len(node.outputs):
        return f"types: {node.op} has {len(inferred)} outputs, this node {len(node.outputs)}"
    for i, (spec, value) in enumerate(zip(inferred, node.outputs, strict=True)):
        if not _specs_agree(spec, value.spec):
            return f"types: output {i} is {value.spec}, the rule of {node.op} says {spec}"
    return ""


def _specs_agree(a: Spec, b: Spec) -> bool:
    if isinstance(a, TensorSpec) and isinstance(b, TensorSpec):
        return (
            a.dtype == b.dtype
            and a.rank == b.rank
            and all(m == n or m is None or n is None for m, n in zip(a.shape, b.shape, strict=True))
        )
    return a == b


def _variables(graph: Graph, node: Node) -> str:
    if node.op.higher_order:
        return ""
    for i, value in enumerate(node.inputs):
        takes = not node.op.variadic and node.op.operands[i].accepts == "var"
        if takes != isinstance(value.spec, VariableSpec):
            return (
                f"variables: operand {i} is {value.spec}, {node.op} takes {'a variable' if takes else 'values'} there"
            )
    if node.op.effect in ("read", "write") and (not node.inputs or not isinstance(node.inputs[0].spec, VariableSpec)):
        return "variables: the first operand must be the variable that it reads or writes"
    return ""


def _functions(node: Node) -> str:
    for function in node.functions:
        wanted = function.graph.inputs
        if len(wanted) > len(node.inputs):
            return f"functions: {function.name} takes {len(wanted)} inputs, {node.op} has {len(node.inputs)}"
        passed: Sequence[Spec] = [value.spec for value in node.inputs[len(node.inputs) - len(wanted) :]]
        if node.op.passes is not None:
            passed = node.op.passes(passed, node.params)
        for name, inner, outer in zip(function.graph.input_names, wanted, passed, strict=True):
            if not _may_be_passed(outer, inner.spec):
                return f"functions: {function.name} takes {inner.spec} as {name}, it is given {outer}"
    return ""


def _may_be_passed(passed: Spec, wanted: Spec) -> bool:
    if isinstance(passed, VariableSpec) and isinstance(wanted, VariableSpec) and passed.anywhere == wanted.anywhere:
        return passed.dtype == wanted.dtype and shapes.compatible(passed.shape, wanted.shape)
    return _specs_agree(passed, wanted)


def _after(node: Node, places: dict[Node, int]) -> str:
    for earlier in node.after:
        if earlier not in places:
            return f"after: it must follow {earlier.op}, which does not come before it in this graph"
    return ""


class _Order:
    """Follows the effects through a graph and checks that each comes after those that it must not overtake."""

    def __init__(self, places: dict[Node, int]) -> None:
        self._places = places
        self._writes: dict[Value, Node] = {}
        self._reads: dict[Value, list[Node]] = {}
        self._chains: dict[str, Node] = {}

    def check(self, graph: Graph, node: Node) -> str:
        if node.op.effect is None and not node.op.higher_order:
            return ""
        effects = effects_of(node)
        before: list[tuple[Node, str]] = []
        written = [variable for variable in effects.reads | effects.writes if variable in self._writes]
        before += [(self._writes[variable], f"the write of {graph.name_of(variable)}") for variable in written]
        for variable in effects.writes:
            before += [(read, f"a read of {graph.name_of(variable)}") for read in self._reads.get(variable, ())]
            self._reads[variable] = []
            self._writes[variable] = node
        for chain in effects.chains:
            if chain in self._chains:
                before.append((self._chains[chain], f"the {chain} chain"))
            self._chains[chain] = node
        for variable in effects.reads - effects.writes:
            self._reads.setdefault(variable, []).append(node)
        for earlier, what in before:
            if not self._follows(node, earlier):
                return f"order: no edge makes it follow {earlier.op} ({what})"
        return ""

    def _follows(self, node: Node, earlier: Node) -> bool:
        """Whether a path of effect and data edges leads from `node` to `earlier`; looks only between them."""
        limit = self._places[earlier]
        seen: set[Node] = set()
        waiting = [node]
        while waiting:
            current = waiting.pop()
            producers = (value.node for value in current.inputs)
            for previous in (*current.after, *(p for p in producers if p is not None)):
                if previous is earlier:
                    return True
                if previous not in seen and self._places.get(previous, -1) > limit:
                    seen.add(previous)
                    waiting.append(previous)
        return False
