from __future__ import annotations

import gc
import json
import sys
import weakref

import numpy as np
import pytest

from limelight import events
from limelight.user_code.source_line import Source
from limelight_widgets.figures.boxes import words
from limelight_widgets.figures.visible import visible
from limelight_widgets.folds import GraphFold
from limelight_widgets.folds.describe import Describer, attribute_text
from limelight_widgets.folds.groups import MOST_CHILDREN, Hierarchy
from limelight_widgets.folds.sources import as_written


def traced(function_id=7, entry=0):
    return events.Traced("step", function_id, entry, 3, 0.01)


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
    assert step["groups"] == [{"label": "dense", "kind": "scope", "parent": -1, "size": 2}]
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
    assert [node.get("inline", False) for node in nodes] == [True, False, False, False, False, False, False]
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


# --- following a function


def test_an_untraced_function_says_what_to_do(staged):
    state = GraphFold(staged).state()
    assert state["variants"] == []
    assert "Call it once" in state["empty"]


def test_the_newest_trace_is_followed(staged, network, make):
    staged.add(network)
    fold = GraphFold(staged)
    assert fold.state()["trace"] == 0
    staged.add(network, signature="f32[5,3]")
    assert fold.apply(traced(entry=1))
    assert (fold.state()["trace"], fold.state()["traces"], fold.state()["signature"]) == (1, 2, "f32[5,3]")


def test_a_cleared_function_says_so_and_traces_keep_the_numbers_of_the_cache(staged, network):
    entry = staged.add(network)
    fold, third = GraphFold(staged), GraphFold(staged, trace=0)
    assert fold.state()["label"] == "trace #1 of 1"
    staged.trace_cache.clear()
    staged.trace_count = 1
    for one in (fold, third):
        assert one.apply(events.CacheCleared("step", 7, 1))
        assert "step has forgotten its traces" in one.state()["empty"]
    entry.index = 2
    staged.trace_cache.append(entry)
    assert fold.apply(traced(entry=2))
    assert fold.state()["label"] == "trace #3, 1 kept"
    with pytest.raises(IndexError, match="there is no 4"):
        GraphFold(staged, trace=4)


def test_outputs_have_the_names_that_their_function_knows(staged, network):
    staged.output_names = lambda entry: [f"{entry.reason}[{k}]" for k in range(len(network.outputs))]
    staged.add(network, reason="loss")
    state = GraphFold(staged).state()
    shown = state["graphs"][state["variants"][0]["graph"]]
    assert shown["output_names"] == ["loss[0]"]
    output = next(box for box in visible(state, 0).boxes if box.kind == "output")
    assert words(state, output).title == "loss[0]"
    staged.output_names = lambda entry: ["a", "b", "c"]
    assert "output_names" not in GraphFold(staged).state()["graphs"][0]


def test_another_functions_traces_change_nothing(staged, network):
    staged.add(network)
    fold = GraphFold(staged)
    _, mark = fold.since(0)
    assert not fold.apply(traced(function_id=8))
    assert fold.since(mark) == ({}, mark)


def test_a_trace_missed_while_nobody_looked_is_caught_up(staged, network):
    fold = GraphFold(staged)
    _, mark = fold.since(0)
    staged.add(network)
    fold.catch_up()
    state, _ = fold.since(mark)
    assert state["traces"] == 1


def test_both_versions_and_what_the_optimiser_did(staged, network, make):
    small = make("step")
    optimised = small.graph(small.node("exp", small.input("x")))
    staged.add(network, optimised=optimised)
    state = GraphFold(staged).state()
    assert [v["key"] for v in state["variants"]] == ["traced", "optimised"]
    assert [len(state["graphs"][v["graph"]]["nodes"]) for v in state["variants"]] == [5, 1]


def test_the_fold_keeps_neither_the_function_nor_its_graphs_alive(make):
    class Staged:
        name, id = "f", 1

    maker = make()
    graph = maker.graph(maker.node("exp", maker.input("x")))
    function = Staged()
    function.trace_cache = []
    alive = [weakref.ref(graph), weakref.ref(function)]
    folds = [GraphFold(graph), GraphFold(function)]
    del graph, maker, function
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    assert [fold.state()["kind"] for fold in folds] == ["graph", "graph"]


@pytest.mark.parametrize("trace", [1, -2])
def test_a_trace_that_does_not_exist_is_refused(staged, network, trace):
    staged.add(network)
    with pytest.raises(IndexError, match="step has 1 traces"):
        GraphFold(staged, trace=trace)


def test_what_is_no_graph_is_refused():
    with pytest.raises(TypeError, match=r"this is a int\. Stage it first: F = limelight\.function"):
        GraphFold(3)
    with pytest.raises(ValueError, match='"traced" or "optimised"'):
        GraphFold(3, "best")


# --- groups


def test_every_container_is_small_whatever_the_graph():
    for count in (61, 1_000, 20_000):
        hierarchy = Hierarchy([""] * count, [""] * count)
        assert max(hierarchy.children().values()) <= MOST_CHILDREN
        assert sum(group.size for group in hierarchy.groups if group.parent == -1) == count


def test_runs_of_one_line_are_grouped_before_blocks():
    lines = [f"In[3] line {n // 4}" for n in range(200)]
    hierarchy = Hierarchy([""] * 200, lines)
    assert [group.label for group in hierarchy.groups[:2]] == ["In[3] line 0", "In[3] line 1"]
    assert {group.kind for group in hierarchy.groups} == {"line"}
    assert hierarchy.children()[-1] == 50


def test_small_graphs_are_not_grouped_by_line():
    assert Hierarchy([""] * 10, ["a line 1"] * 10).groups == []


def test_nested_scopes_without_own_nodes_are_one_group():
    hierarchy = Hierarchy(["model/dense/"] * 3 + ["model/out/"] + [""], [""] * 5)
    assert [(group.label, group.parent, group.size) for group in hierarchy.groups] == [
        ("model", -1, 4),
        ("dense", 0, 3),
    ]
    assert hierarchy.of == [1, 1, 1, 0, -1]
    assert [g.label for g in Hierarchy(["a/b/"] * 2, [""] * 2).groups] == ["a/b"]


def test_groups_are_opened_while_they_fit():
    scopes = [f"layer{n % 10}/" for n in range(100)]
    hierarchy = Hierarchy(scopes, [""] * 100)
    opened = hierarchy.initially_open()
    visible = hierarchy.children()[-1] + sum(hierarchy.children()[g] - 1 for g in opened)
    assert 50 < visible <= MOST_CHILDREN


def test_a_cell_is_one_source_whatever_file_its_lines_are_from(make, monkeypatch):
    """A staged cell has a file of its own, besides that which IPython has for it."""
    monkeypatch.setattr(Source, "label", property(lambda source: "In[4]" if source.file != "b.py" else "b.py"))
    maker = make("f")
    value = maker.node("exp", maker.input("x"))
    maker.nodes[0].stack = (Source("a", 2, "<module>"), Source("c", 1, "f"), Source("b.py", 7, "f"))
    state = GraphFold(maker.graph(value)).state()
    (node,) = state["graphs"][0]["nodes"]
    assert [source["label"] for source in state["sources"]] == ["b.py", "In[4]"]
    assert [position[:2] for position in node["stack"]] == [[1, 2], [1, 1], [0, 7]]


@pytest.mark.parametrize(
    ("made", "written"),
    [
        ("get_ipython().run_line_magic('trace_cache', 'g --why')", "%trace_cache g --why"),
        ("    x = get_ipython().run_line_magic('tape', '')", "    x = %tape"),
        ("# %%stage step -g", "%%stage step -g"),
        ("y = x  # get_ipython().run_line_magic(name, text)", "y = x  # get_ipython().run_line_magic(name, text)"),
    ],
)
def test_code_is_shown_as_its_author_wrote_it(made, written):
    assert as_written(made) == written


def test_what_a_branch_closes_over_has_the_name_that_it_has_outside(make, fake_function):
    branch = make("true_fn")
    first, second = (branch.input(f"capture{k}", captured=True) for k in range(2))
    inner = branch.graph(branch.node("add", first, second))
    outer = make("f")
    w, y = outer.input("w", captured=True), outer.node("tanh", outer.input("x"))
    value = outer.node("read_variable", w)
    result = outer.node("cond", outer.input("p"), value, y, functions=(fake_function("true_fn", inner),))
    describer = Describer()
    describer.graph(outer.graph(result, y), ["z", "y"])
    assert [given["name"] for given in describer.state()["graphs"][1]["inputs"]] == ["w", "y"]
