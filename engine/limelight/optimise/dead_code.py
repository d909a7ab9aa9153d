"""Removes what nobody can notice: pure nodes and reads of variables that lead to no output and no effect."""

from __future__ import annotations

from limelight.graph.build import Rewriter
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Node
from limelight.optimise.pass_record import PassRecord, Recorder


def prune(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` without the nodes whose results are unused; writes, random draws and I/O stay."""
    recorder = Recorder("prune", graph)
    rewriter = Rewriter(graph)
    needed = _needed(graph)
    for node in graph.nodes:
        if node in needed:
            rewriter.keep(node)
        else:
            rewriter.drop(node)
            recorder.note("unused", f"nothing that is returned or noticed depends on this {node.op}", (node,))
    return recorder.finish(rewriter)


def pruned(graph: Graph) -> Graph:
    """The same without a record."""
    needed = _needed(graph)
    if len(needed) == len(graph.nodes):
        return graph
    if any(node.after for node in needed):
        return prune(graph)[0]
    nodes = [node for node in graph.nodes if node in needed]
    names = graph.input_names
    return Graph(graph.name, graph.inputs, nodes, graph.outputs, input_names=names, n_captures=graph.n_captures)


def _needed(graph: Graph) -> set[Node]:
    wanted = set(graph.outputs)
    needed: set[Node] = set()
    is_unused, want, need = wanted.isdisjoint, wanted.update, needed.add
    for node in reversed(graph.nodes):
        if not is_unused(node.outputs) or _has_effect(node):
            need(node)
            want(node.inputs)
    return needed


def _has_effect(node: Node) -> bool:
    op = node.op
    return (op.effect is not None or op.higher_order) and effects_of(node).changes
