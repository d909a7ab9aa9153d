"""Graphs as JSON."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from limelight.user_code.source_line import Source
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.folds.graph_json import Describer, attribute_text
from limelight_widgets.folds.graph_names import Names


def test_a_graph_becomes_json(network):
    state = GraphFold(network).state()
    assert json.loads(json.dumps(state)) == state
    step, loss = state["graphs"]
    assert [i["name"] for i in step["inputs"]] == ["x", "y", "w"]
    assert [i.get("captured", False) for i in step["inputs"]] == [False, False, True]
    matmul, tanh, two, multiply, call = step["nodes"]
    assert matmul["in"] == [0, 2]
    assert matmul["names"] == ["%3"]
    assert tanh["in"] == [3]
    assert two["kind"] == "constant"
    assert two["attrs"] == {"value": "2.0"}
    assert multiply["in"] == [4, 5]
    assert call["kind"] == "call"
    assert call["calls"] == [[1, "loss"]]
    assert step["outputs"] == [7]
    assert loss["outputs"] == [4]
    assert state["rules"] == {"matmul": "ā = c̄ bᵀ,  b̄ = aᵀ c̄"}


def test_value_names_are_those_of_the_graphs_text(network):
    state = GraphFold(network).state()
    names = [name for node in state["graphs"][0]["nodes"] for name in node["names"]]
    assert names == [network.name_of(value) for node in network.nodes for value in node.outputs]


def test_scopes_become_groups(network):
    step = GraphFold(network).state()["graphs"][0]
    (group,) = step["groups"]
    assert (group["label"], group["kind"], group["parent"], group["size"]) == ("dense", "scope", -1, 2)
    assert [node.get("group", -1) for node in step["nodes"]] == [0, 0, -1, -1, -1]
    assert step["open"] == [0]


def test_positions_point_into_excerpts_of_the_source(make, tmp_path):
    file = tmp_path / "train.py"
    file.write_text("".join(f"line {n}\n" for n in range(1, 301)))
    maker = make(file=str(file))
    x = maker.input("x")
    state = GraphFold(maker.graph(maker.node("tanh", maker.node("exp", x, line=150), line=160))).state()
    (excerpt,) = state["sources"]
    assert excerpt["label"] == "train.py"
    assert excerpt["first"] == 146
    assert excerpt["text"][150 - 146] == "line 150"
    assert excerpt["text"][-1] == "line 164"
    assert [node["stack"] for node in state["graphs"][0]["nodes"]] == [[[0, 150, "f"]], [[0, 160, "f"]]]


def test_the_callers_of_a_function_are_not_in_its_stacks(make):
    maker = make("f")
    value = maker.node("exp", maker.input("x"))
    maker.nodes[0].stack = (Source("a.py", 3, "helper"), Source("a.py", 9, "f"), Source("a.py", 20, "train"))
    (node,) = GraphFold(maker.graph(value)).state()["graphs"][0]["nodes"]
    assert [line for _, line, _ in node["stack"]] == [3, 9]


def test_what_is_made_of_a_function_has_its_lines(make):
    maker = make("backward_forward_f")
    value = maker.node("exp", maker.input("x"))
    maker.nodes[0].stack = (Source("a.py", 3, "helper"), Source("a.py", 9, "f"), Source("b.py", 20, "<module>"))
    (node,) = GraphFold(maker.graph(value)).state()["graphs"][0]["nodes"]
    assert [line for _, line, _ in node["stack"]] == [3, 9]


def test_a_staged_cell_ends_its_stacks(make):
    maker = make("cell")
    value = maker.node("exp", maker.input("x"))
    maker.nodes[0].stack = (Source("a.py", 3, "helper"), Source("b.py", 2, "<module>"), Source("c.py", 1, "<module>"))
    state = GraphFold(maker.graph(value)).state()
    (node,) = state["graphs"][0]["nodes"]
    assert [line for _, line, _ in node["stack"]] == [3, 2]
    assert [source["label"] for source in state["sources"]] == ["b.py", "a.py"], "the function's own file comes first"


def test_a_function_called_often_is_described_once(make, fake_function):
    inner = make("g")
    callee = fake_function("g", inner.graph(inner.node("exp", inner.input("x"))))
    outer = make("f")
    x = outer.input("x")
    for _ in range(3):
        x = outer.node("call", x, functions=(callee,))
    assert [graph["name"] for graph in GraphFold(outer.graph(x)).state()["graphs"]] == ["f", "g"]


def test_nesting_without_end_is_described_without_recursion(make, fake_function):
    graph = None
    for depth in range(3 * sys.getrecursionlimit()):
        maker = make(f"f{depth}")
        x = maker.input("x")
        functions = () if graph is None else (fake_function(graph.name, graph),)
        graph = maker.graph(maker.node("call" if graph is not None else "exp", x, functions=functions))
    assert len(GraphFold(graph).state()["graphs"]) == 3 * sys.getrecursionlimit()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        ("<script>", "'<script>'"),
        ((1, None, "a"), "(1, None, 'a')"),
        (np.float32(2.0), "2.0"),
        (np.full(320, 1 / 320, "float32"), "all 0.003125"),
        (np.array(0.1, "float32"), "0.1"),
        (np.array(True), "True"),
        (np.array(1 + 2j), "(1+2j)"),
        (np.array(np.nan), "nan"),
        (np.zeros((3, 4), "float32"), "all 0.0"),
        (np.arange(12, dtype="float32").reshape(3, 4), "float32[3, 4]"),
        (np.array([1, 2]), "[1, 2]"),
        (np.array([[1.2], [1e-7], [1.0], [np.inf]], "float32"), "[[1.2], [1e-07], [1.0], [inf]]"),
        (np.array([1.2, 2.4j], "complex64"), "[(1.2+0j), 2.4j]"),
        (np.array([True, False]), "[True, False]"),
        (np.array(["a", "b'"]), "['a', \"b'\"]"),
        (np.zeros((2, 0), "float32"), "[[], []]"),
        (test_scopes_become_groups, "test_scopes_become_groups"),
        (object(), "<object>"),
    ],
)
def test_attributes_as_text(value, text):
    assert attribute_text(value) == text


def test_small_constants_are_written_on_what_reads_them(make):
    maker = make()
    x = maker.input("x")
    half = maker.node("constant", params={"value": np.float32(0.5)})
    table = maker.node("constant", params={"value": np.arange(100.0)})
    returned = maker.node("constant", params={"value": np.float32(3.0)})
    y = maker.node("subtract", half, maker.node("multiply", x, half))
    z = maker.node("add", maker.node("add", y, table), returned)
    nodes = GraphFold(maker.graph(z, returned)).state()["graphs"][0]["nodes"]
    assert [node.get("inline", False) for node in nodes] == [True, True, False, False, False, False, False]
    assert [node.get("operands", "") for node in nodes[3:]] == ["(·, 0.5)", "(0.5, ·)", "", ""]


def test_a_constant_that_goes_into_a_call_is_drawn(make, fake_function):
    inner = make("g")
    callee = fake_function("g", inner.graph(inner.node("exp", inner.input("x"))))
    maker = make()
    half = maker.node("constant", params={"value": np.float32(0.5)})
    graph = maker.graph(maker.node("call", half, functions=(callee,)))
    assert not any("inline" in node for node in GraphFold(graph).state()["graphs"][0]["nodes"])


def test_a_users_repr_is_never_called():
    class Loud:
        def __repr__(self):
            raise AssertionError("repr was called")

    assert attribute_text(Loud()) == "<Loud>"
    assert attribute_text([Loud()]) == "[<Loud>]"


def test_long_attributes_are_cut():
    assert len(attribute_text("a" * 10_000)) <= 160
    assert len(attribute_text(list(range(10_000)))) <= 160


def test_what_a_branch_closes_over_has_the_name_that_it_has_outside(make, fake_function):
    branch = make("true_fn")
    first, second = (branch.input(f"capture{k}", captured=True) for k in range(2))
    inner = branch.graph(branch.node("add", first, second))
    outer = make("f")
    w, y = outer.input("w", captured=True), outer.node("tanh", outer.input("x"))
    value = outer.node("read_variable", w)
    result = outer.node("cond", outer.input("p"), value, y, functions=(fake_function("true_fn", inner),))
    describer = Describer()
    describer.graph(outer.graph(result, y), Names(["z", "y"]))
    assert [given["name"] for given in describer.state()["graphs"][1]["inputs"]] == ["w", "y"]
