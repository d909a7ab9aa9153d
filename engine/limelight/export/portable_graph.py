"""Graphs as text that another process reads: what a trace refers to besides text goes into named arrays.

The text is that of `limelight.graph.printer`, of a copy in which

    literals of many elements        are names of arrays;
    ops that a tape recorded         are the ops that they are variants of: what a `call_forward` returns for a backward
                                     pass are results like any others, and differentiating goes by the graph;
    pairs of custom gradients        are their parts (`CustomPair.parts`), so that the user's rule travels as traced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from limelight.control_flow.custom_call import CustomPair
from limelight.core import op as registry
from limelight.errors import ExportError, GraphError, LimelightError
from limelight.graph import tokens
from limelight.graph.ir import Graph, Literal, Node, Value, is_function, with_functions
from limelight.graph.lexer import Lexer
from limelight.graph.parser import parse
from limelight.graph.printer import nested, show
from limelight.graph.verify import verify
from limelight.staging.graph_function import GraphFunction

MOST_IN_TEXT: Final = 16
"""Literals of more elements than this are arrays of their own."""
_CUSTOM: Final = ("custom_call", "custom_forward")
_PLAIN_OP: Final = {"call_forward": "call", "cond_forward": "cond", "switch_forward": "switch", "scan_forward": "scan"}


class _Writer:
    """Copies graphs into ones that text can hold."""

    def __init__(self, name: str, arrays: dict[str, Any]) -> None:
        self._name = name
        self._arrays = arrays
        self._functions: dict[int, GraphFunction] = {}

    def graph(self, graph: Graph) -> Graph:
        values: dict[Value, Value] = {value: Value(value.spec) for value in graph.inputs}
        nodes: dict[Node, Node] = {}
        for node in graph.nodes:
            nodes[node] = copy = self._node(node, values, nodes)
            values.update(zip(node.outputs, copy.outputs, strict=True))
        return Graph(
            graph.name,
            [values[value] for value in graph.inputs],
            list(nodes.values()),
            [values[value] for value in graph.outputs],
            input_names=graph.input_names,
            n_captures=graph.n_captures,
        )

    def _node(self, node: Node, values: Mapping[Value, Value], nodes: Mapping[Node, Node]) -> Node:
        op, params = self._op_and_params(node)
        for name, param in zip(op.attrs, params, strict=True):
            self._check(node, name, param)
        return Node(
            op,
            tuple([values[value] for value in node.inputs]),
            params,
            [value.spec for value in node.outputs],
            device=node.device,
            stack=node.stack,
            scope=node.scope,
            after=tuple([nodes[earlier] for earlier in node.after]),
        )

    def _op_and_params(self, node: Node) -> tuple[Any, tuple[Any, ...]]:
        """The op that a file holds, and its parameters, with functions copied."""
        if not _is_ours(node.op):
            raise self.refusal(node, f"the op {node.op.name} is defined in {_home(node.op)}, which a file cannot hold")
        name, params = node.op.name, node.params
        if name in _PLAIN_OP:
            op = registry.get(_PLAIN_OP[name])
            params = params[: len(op.attrs)]
        elif name == "while_forward":  # it stacks residuals, as no other op does; differentiating makes another record
            op, params = node.op, (*params[:-1], None)
        elif name in _CUSTOM:
            op, params = node.op, (params[0], self._pair(node, params[1]), *[None for _ in params[2:]])
        else:
            op = node.op
        if name == "constant":
            return op, (self._literal(params[0]),)
        return op, with_functions(self._function, params) if op.higher_order else params

    def _pair(self, node: Node, pair: CustomPair) -> tuple[Any, ...]:
        parts = pair.parts
        if parts is None:
            raise self.refusal(node, "the rule of a custom gradient raises an error")
        return parts

    def _function(self, function: Any) -> Any:
        if not is_function(function):  # a plain part of a custom gradient
            return function
        copy = self._functions.get(id(function))
        if copy is None:
            copy = self._functions[id(function)] = GraphFunction(self.graph(function.graph))
            copy.blanks = getattr(function, "blanks", frozenset())
        return copy

    def _literal(self, literal: Literal) -> Literal | str:
        array = np.asarray(literal.array)
        if array.size <= MOST_IN_TEXT:
            return literal
        name = f"literals/{len(self._arrays)}"
        self._arrays[name] = array
        return name

    def _check(self, node: Node, name: str, param: Any) -> None:
        """Refuses a parameter that text cannot hold."""
        if is_function(param) or (type(param) is tuple and any(map(is_function, param))):
            return
        try:
            Lexer(tokens.write(param, {}, full=True), lambda name: None).value()
        except (LimelightError, ValueError, RecursionError):
            what = getattr(param, "__name__", None) or type(param).__name__
            raise self.refusal(
                node, f"{node.op.name} calls Python ({what}), which a file cannot hold", f" (its parameter {name})"
            ) from None

    def refusal(self, node: Node, what: str, detail: str = "") -> ExportError:
        line = f" at {node.source[0]}:{node.source[1]}" if node.source else ""
        return ExportError(
            f"{self._name} cannot be saved: {what}{line}{detail}. Write that part with ll's ops, or leave it out of "
            "the function that is saved"
        )


def _is_ours(op: Any) -> bool:
    return _home(op).partition(".")[0] == "limelight"


def _home(op: Any) -> str:
    return registry.home_of(op.name)


def to_text(name: str, function: GraphFunction, arrays: dict[str, Any]) -> tuple[str, list[list[int]]]:
    """A trace's graph as text, and the blanks of each function in it, in the order of the text.

    Args:
        name: the user's name of the function, for messages.
        function: the trace's graph function.
        arrays: takes the literals that are not part of the text, by name.

    Raises:
        ExportError: an op's parameter is no data; tells function, op and the user's line.
    """
    writer = _Writer(name, arrays)
    graph = writer.graph(function.graph)
    blanks = [function.blanks, *[getattr(f, "blanks", ()) for f in nested(graph)]]
    return show(graph, literals="full"), [sorted(numbers) for numbers in blanks]


def from_text(text: str, blanks: list[list[int]], arrays: Mapping[str, Any]) -> GraphFunction:
    """The inverse of `to_text`. Raises ExportError for what it never wrote."""
    try:
        graph = parse(text)
        reader = _Reader(arrays)
        functions = [reader.function(graph, graph), *[reader.function(f, f.graph) for f in list(nested(graph))]]
        for function, numbers in zip(functions, blanks, strict=True):
            function.blanks = frozenset(map(int, numbers))
        for function in functions:
            reader.restore(function.graph)
        verify(graph)
    except (GraphError, KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise ExportError(f"the file is damaged: its graphs cannot be read ({error})") from error
    return functions[0]


class _Reader:
    """Makes functions that run, and differentiate, of those that were parsed."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = arrays
        self._functions: dict[int, GraphFunction] = {}

    def function(self, parsed: Any, graph: Graph) -> GraphFunction:
        made = self._functions[id(parsed)] = GraphFunction(graph)
        return made

    def restore(self, graph: Graph) -> None:
        for node in graph.nodes:
            if node.op.higher_order:
                params = with_functions(lambda f: self._functions.get(id(f), f), node.params)
                pair = CustomPair.of_parts(params[1]) if node.op.name in _CUSTOM else None
                node.params = params if pair is None else (params[0], pair, *params[2:])
            elif node.op.name == "constant" and isinstance(node.params[0], str):
                node.params = (Literal(self._arrays[node.params[0]]),)
