"""Graphs as text.

    text   ::= graph (blank line, graph)*          the graph itself, then each function that it calls, once
    graph  ::= "graph" name                        one line each, indented:
               ("input" | "capture") %n: spec  name
               [!k] [%n: spec, ... =] op(%n, ...)  [{param=word, ...}]  [@device]  [after !k, ...]  [# position]
               "return" %n, ...
    position ::= [file:line]  ["in" scope]

Values are numbered through: inputs, captures, then the outputs of each node. `!k` labels a node that a later one must
follow although no value says so. Words are described in `limelight.graph.tokens`. Names are quoted as JSON where they
are more than a plain word. What a node's position keeps is the innermost line; functions, outer frames and the names of
specs are not part of the text.

    graph layer
      input %0: f32[?,3]  x
      capture %1: var f32[3]  w
      %2: f32[3] = read_variable(%1)  # In[3]:4
      %3: f32[?,3] = multiply(%0, %2)  @CPU:1  # In[3]:4  in dense/
      return %3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal as OneOf

from limelight.graph.ir import FunctionLike, Graph, Node
from limelight.graph.tokens import device_word, quote, write, write_spec


def show(graph: Graph, *, literals: OneOf["short", "full"] = "short") -> str:
    """`graph` as text; with literals="full" even large ones, so that `limelight.graph.parser` can read it back."""
    functions = nested(graph)
    names = _unique_names(graph, functions)
    parts = [_show_one(graph, graph.name, names, literals == "full")]
    parts += [_show_one(f.graph, names[id(f)], names, literals == "full") for f in functions]
    return "\n".join(parts)


def nested(graph: Graph) -> list[FunctionLike]:
    """All functions that `graph` calls, directly or through others, each once, in the order of first mention."""
    functions: dict[int, FunctionLike] = {}
    waiting = [graph]
    for current in waiting:  # grows while it is walked: no recursion, however deep the nesting
        for function in current.functions():
            if id(function) not in functions:
                functions[id(function)] = function
                waiting.append(function.graph)
    return list(functions.values())


def describe(graph: Graph, node: Node) -> str:
    """One node as a line of text, with short literals and without its position: for messages."""
    names = {id(f): f.name for f in node.functions}
    return _equation(graph, node, names, False)


def _unique_names(graph: Graph, functions: list[FunctionLike]) -> dict[int, str]:
    taken = {graph.name}
    names: dict[int, str] = {}
    for function in functions:
        name, n = function.name, 0
        while name in taken:
            n += 1
            name = f"{function.name}.{n}"
        taken.add(name)
        names[id(function)] = name
    return names


def _show_one(graph: Graph, name: str, functions: Mapping[int, str], full: bool) -> str:
    lines = [f"graph {quote(name)}", *_inputs(graph)]
    labels = _labels(graph)
    for node in graph.nodes:
        label = f"!{labels[node]} " if node in labels else ""
        after = "  after " + ", ".join([f"!{labels[n]}" for n in node.after]) if node.after else ""
        lines.append(f"  {label}{_equation(graph, node, functions, full)}{after}{_position(node)}")
    returned = ", ".join([graph.name_of(value) for value in graph.outputs])
    lines.append(f"  return {returned}".rstrip())
    return "\n".join(lines) + "\n"


def _inputs(graph: Graph) -> Iterator[str]:
    first_capture = len(graph.inputs) - graph.n_captures
    for i, (value, name) in enumerate(zip(graph.inputs, graph.input_names, strict=True)):
        role = "input" if i < first_capture else "capture"
        yield f"  {role} {graph.name_of(value)}: {write_spec(value.spec)}  {quote(name)}"


def _labels(graph: Graph) -> dict[Node, int]:
    """Numbers for the nodes that others must follow."""
    followed = {earlier for node in graph.nodes for earlier in node.after}
    return {node: k for k, node in enumerate([node for node in graph.nodes if node in followed])}


def _equation(graph: Graph, node: Node, functions: Mapping[int, str], full: bool) -> str:
    left = ", ".join([f"{graph.name_of(value)}: {write_spec(value.spec)}" for value in node.outputs])
    operands = ", ".join([graph.name_of(value) for value in node.inputs])
    params = ""
    if node.params:
        written = [f"{name}={write(param, functions, full)}" for name, param in node.attrs.items()]
        params = "  {" + ", ".join(written) + "}"
    device = f"  @{device_word(node.device)}" if node.device is not None else ""
    return f"{left}{' = ' if left else ''}{quote(node.op.name)}({operands}){params}{device}"


def _position(node: Node) -> str:
    parts = []
    if node.stack:
        parts.append(f"{node.stack[0].label}:{node.stack[0].line}")
    if node.scope:
        parts.append(f"in {node.scope}")
    return "  # " + "  ".join(parts) if parts else ""


Graph.text = show  # type: ignore[assignment,method-assign]
Graph.__str__ = show  # type: ignore[method-assign]
