"""The records, the rewriter, DOT."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import limelight as ll  # noqa: F401  # registers the ops
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.errors import GraphError
from limelight.graph import Graph, Literal, Node, Value, parse, to_dot, verify
from limelight.graph.build import Rewriter
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import is_function

CHAIN = """\
graph chain
  input %0: f32[3]  x
  capture %1: var f32[3]  v
  %2: f32[3] = tanh(%0)
  !0 %3: f32[3] = read_variable(%1)
  !1 %4: f32[3] = assign(%1, %2)  after !0
  %5: f32[3] = read_variable(%1)  after !1
  %6: f32[3] = add(%2, %5)  # model.py:3  in dense/
  return %6
"""


def test_a_graph_dies_with_its_last_reference() -> None:
    gc.disable()
    try:
        literal = Literal(np.ones(3, dtype=np.float32))
        x = Value(TensorSpec((3,)))
        constant = Node(get("constant"), (), (literal,), (x.spec,))
        total = Node(get("add"), (x, *constant.outputs), (), (x.spec,))
        graph = Graph("g", [x], [constant, total], total.outputs)
        dead = [weakref.ref(one) for one in (graph, constant, total)]
        del graph, constant, total, x
        assert [ref() for ref in dead] == [None, None, None]
    finally:
        gc.enable()


def test_values_know_their_place() -> None:
    graph = parse(CHAIN)
    last = graph.nodes[-1]
    assert last.outputs[0].node is last
    assert graph.inputs[0].node is None
    assert graph.captures == graph.inputs[1:]
    assert graph.arguments == graph.inputs[:1]
    assert repr(last.outputs[0]) == "<value f32[3] of add>"
    assert repr(graph) == "<graph chain: 2 inputs, 5 nodes, 1 outputs>"


def test_literals_are_read_only_arrays() -> None:
    literal = Literal(np.float32(2.0))
    assert literal.array.shape == ()
    with pytest.raises(ValueError, match="read-only"):
        literal.array[...] = 3.0


def test_looking_for_functions_makes_nothing_run() -> None:
    class Lazy:
        name = "lazy"
        graph = None

        @property
        def run(self) -> object:
            raise AssertionError("asked to run")

    lazy = Lazy()
    lazy.graph = parse(CHAIN)
    assert is_function(lazy)
    assert not is_function(lazy.graph)
    assert not is_function((1, 2))


class OfOwn:
    """Has what it is given."""

    def __init__(self, **given: object) -> None:
        vars(self).update(given)


class OfClass(OfOwn):
    graph = run = "there"

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(f"asked for {name}")


class WithSlots:
    __slots__ = ("graph", "run")


@pytest.mark.parametrize(
    ("param", "expected"),
    [
        (OfOwn(graph=1, run=2), True),
        (OfOwn(graph=1), False),
        (OfOwn(graph=None, run=2), False),  # one that is not made yet
        (OfOwn(graph=1, run=0), True),
        (WithSlots(), True),
        (object(), False),
        (TensorSpec((3,)), False),
        (OfOwn, False),
        (np.zeros(2), False),
        (None, False),
        ("run", False),
        (len, False),
        (lambda: None, False),
    ],
)
def test_a_function_is_what_has_a_graph_and_runs(param: object, expected: bool) -> None:
    assert is_function(param) is expected


def test_looking_for_functions_runs_no_code_of_a_class() -> None:
    lazy = object.__new__(OfClass)
    assert is_function(lazy)
    object.__setattr__(lazy, "graph", None)
    assert not is_function(lazy)


def test_rewriting_nothing_gives_the_same_graph() -> None:
    graph = parse(CHAIN)
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        assert rewriter.keep(node) is node
    assert rewriter.finish() is graph


def test_only_what_changes_is_rebuilt() -> None:
    graph = parse(CHAIN)
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "tanh":
            new = rewriter.add(node, get("exp"), node.inputs, ())
            rewriter.replace(node, new.outputs)
        else:
            rewriter.keep(node)
    result = verify(rewriter.finish())
    assert result.text() == CHAIN.replace("tanh", "exp")
    assert [a is b for a, b in zip(graph.nodes, result.nodes, strict=True)] == [False, True, False, False, False]
    assert set(rewriter.rewired) == set(graph.nodes[2:])
    assert result.nodes[-1].source == ("model.py", 3)
    assert result.nodes[-1].scope == "dense/"
    assert graph.text() == CHAIN, "passes never change the graph that they are given"


def test_effect_edges_pass_over_what_is_dropped() -> None:
    graph = parse(CHAIN.replace("return %6", "return %2"))
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "assign":
            rewriter.drop(node)
        else:
            rewriter.keep(node)
    result = verify(rewriter.finish())
    first, second = [node for node in result.nodes if node.op == "read_variable"]
    assert second.after == (first,), "what followed the write follows what the write followed"


def test_dot_draws_nodes_edges_order_and_functions() -> None:
    dot = parse(CHAIN).to_dot()
    assert "g0_n0 [label=tanh" in dot
    assert "g0_in0 -> g0_n0" in dot
    assert "g0_n1 -> g0_n2 [style=dashed]" in dot
    assert "model.py line 3" in dot
    assert dot.count("shape=ellipse") == 3


def test_dot_quotes_what_graphviz_would_take_for_its_own() -> None:
    x = Value(TensorSpec((2,)))
    odd = Graph('a "graph" -> {x}', [x], [], [x], input_names=['batch["x"]\\n<b>'])
    dot = to_dot(odd)
    assert 'digraph "a \\"graph\\" -> {x}"' in dot
    assert 'batch[\\"x\\"]\\\\n<b>' in dot


def test_dot_draws_each_function_once() -> None:
    dot = to_dot(
        parse("""\
graph outer
  input %0: f32[]  x
  %1: f32[] = call(%0)  {function=@inner}
  %2: f32[] = call(%1)  {function=@inner}
  return %2

graph inner
  input %0: f32[]  x
  return %0
""")
    )
    assert dot.count("subgraph cluster_g1") == 1
    assert dot.count("function=@inner") == 2


def test_text_of_another_graphs_value_is_refused() -> None:
    with pytest.raises(GraphError, match="is not a value of graph chain"):
        parse(CHAIN).name_of(parse(CHAIN).outputs[0])


def test_effects_of_a_graph_are_found_once_however_often_it_is_called() -> None:
    levels = 30
    inner = "graph f0\n  input %0: var f32[]  v\n  %1: f32[] = read_variable(%0)\n  return %1\n"
    text = [inner]
    for i in range(1, levels):
        calls = f"  %1: f32[] = call(%0)  {{function=@f{i - 1}}}\n  %2: f32[] = call(%0)  {{function=@f{i - 1}}}\n"
        text.append(f"graph f{i}\n  input %0: var f32[]  v\n{calls}  return %2\n")
    graph = parse("\n".join(reversed(text)))
    effects = effects_of_graph(graph)  # 2 ** 30 calls, were each looked at
    assert effects.reads == {graph.inputs[0]}
    assert not effects.changes


def test_functions_that_a_graph_calls_may_call_each_other() -> None:
    leaf = "graph {}\n  input %0: f32[3]  x\n  return %0\n"
    calls = "  %1: f32[3] = call(%0)  {{function=@{}}}\n"
    middle = f"graph middle\n  input %0: f32[3]  x\n{calls.format('leaf')}  return %1\n"
    both = calls.format("leaf") + calls.format("middle").replace("%1:", "%2:")
    graph = parse("\n".join([f"graph f\n  input %0: f32[3]  x\n{both}  return %2\n", middle, leaf.format("leaf")]))
    assert effects_of_graph(graph).depth == 2


def test_effects_of_recursion_are_refused() -> None:
    graph = parse("graph f\n  input %0: f32[3]  x\n  %1: f32[3] = call(%0)  {function=@f}\n  return %1\n")
    with pytest.raises(GraphError, match="recursion has no graph"):
        effects_of_graph(graph)
