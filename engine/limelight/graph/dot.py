"""Graphs in Graphviz's DOT language. Only text is written here: no `dot` program is needed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from limelight.graph.ir import Graph, Value
from limelight.graph.printer import nested
from limelight.graph.tokens import write, write_spec


def to_dot(graph: Graph) -> str:
    """`graph` in DOT: a box for each op, an ellipse for each input, dashed edges for effect order.

    Functions that it calls are clusters below it, each drawn once; a calling node names its functions.
    """
    import graphviz  # noqa: PLC0415  # 20 ms that nothing else needs

    functions = nested(graph)
    ids = {id(f): i for i, f in enumerate(functions, 1)}
    dot = graphviz.Digraph(graph.name, node_attr={"shape": "box", "fontname": "sans-serif"})
    _draw(dot, graphviz.escape, graph, "g0")
    for function in functions:
        prefix = f"g{ids[id(function)]}"
        with dot.subgraph(name=f"cluster_{prefix}") as cluster:
            cluster.attr(label=graphviz.escape(function.name))
            _draw(cluster, graphviz.escape, function.graph, prefix)
    return str(dot.source)


def _draw(dot: Any, escape: Callable[[str], str], graph: Graph, prefix: str) -> None:
    names: dict[Value, str] = {}
    for value, name in zip(graph.inputs, graph.input_names, strict=True):
        names[value] = f"{prefix}_in{len(names)}"
        label = f"{name}\n{write_spec(value.spec)}"
        dot.node(names[value], escape(label), shape="ellipse")
    numbers = count()
    boxes = {node: f"{prefix}_n{next(numbers)}" for node in graph.nodes}
    for node in graph.nodes:
        box = boxes[node]
        functions = {id(f): f.name for f in node.functions}
        params = "".join([f"\n{name}={write(param, functions)}" for name, param in node.attrs.items()])
        where = f"\n{node.device.short}" if node.device is not None else ""
        tip = f"{node.stack[0]}: {node.stack[0].text}" if node.stack else ""
        dot.node(box, escape(f"{node.op}{params}{where}"), tooltip=escape(tip))
        for value in node.inputs:
            dot.edge(names[value], box, label=escape(write_spec(value.spec)))
        for earlier in node.after:
            dot.edge(boxes[earlier], box, style="dashed")
        names.update(dict.fromkeys(node.outputs, box))
    for i, value in enumerate(graph.outputs):
        out = f"{prefix}_out{i}"
        dot.node(out, f"output {i}", shape="ellipse", style="bold")
        dot.edge(names[value], out, label=escape(write_spec(value.spec)))


Graph.to_dot = to_dot  # type: ignore[assignment,method-assign]
