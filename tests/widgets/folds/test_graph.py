"""The fold of the graph view."""

from __future__ import annotations

import gc
import weakref

import pytest

import limelight as ll
from limelight import events, nn
from limelight_widgets.figures import visible_boxes
from limelight_widgets.figures.box_text import words
from limelight_widgets.figures.graph import graph_figure
from limelight_widgets.figures.visible_boxes import visible
from limelight_widgets.folds.graph import LARGE, MIDDLE, GraphFold


def traced(function_id=-7, entry=0):
    return events.Traced("step", function_id, entry, 3, 0.01)


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
    for one in (fold, third):
        assert one.apply(events.CacheCleared("step", -7, 1))
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


def test_as_many_traces_as_before_may_be_others(staged, network):
    staged.add(network)
    fold = GraphFold(staged)
    staged.trace_cache.clear()
    staged.add(network, signature="f32[5,3]").index = 1
    fold.catch_up()
    assert fold.state()["signature"] == "f32[5,3]"


def test_a_trace_that_failed_while_nobody_looked_is_caught_up():
    @ll.function
    def project(x):
        return ll.tanh(x) @ ll.ones((3, 3))

    fold = GraphFold(project)
    with pytest.raises(ll.errors.ShapeError):
        project(ll.ones((2, 2)))
    assert "has not been traced" in fold.state()["empty"]
    fold.catch_up()
    assert "empty" not in fold.state()
    _, mark = fold.since(0)
    fold.catch_up()
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


def test_a_trace_that_was_asked_for_stays_as_it_was_described_and_knows_of_newer_ones(staged, network, make):
    staged.add(network)
    newest, own = GraphFold(staged), GraphFold(staged, trace=0)
    before = own.state()
    assert "newer" not in before
    small = make("step")
    staged.add(small.graph(small.node("exp", small.input("x"))))
    for fold in (newest, own):
        assert fold.apply(traced(entry=1))
    after = own.state()
    assert (after["label"], after["newer"]) == ("trace #1 of 2", "#2 is newer")
    assert after["sources"] is before["sources"], "described once: its cell may be called otherwise by now"
    assert after["graphs"] is before["graphs"]
    assert after["described"] == before["described"]
    assert (newest.state()["label"], "newer" in newest.state()) == ("trace #2 of 2", False)


def test_a_trace_is_found_by_its_number_when_those_before_it_have_gone(staged, network, make):
    small = make("step")
    staged.add(network)
    staged.add(small.graph(small.node("exp", small.input("x"))))
    fold = GraphFold(staged, trace=1)
    del staged.trace_cache[0]
    assert fold.apply(traced(entry=1))
    assert [node["op"] for node in fold.state()["graphs"][0]["nodes"]] == ["exp"]
    del staged.trace_cache[0]
    staged.add(network)
    staged.trace_cache[0].index = 2
    assert fold.apply(traced(entry=2))
    assert "has forgotten the trace that was shown here" in fold.state()["empty"]


def test_of_a_large_graph_the_other_version_is_described_when_somebody_asks(monkeypatch):
    """Nodes described are most of what a view of many ops costs, in the kernel, on the wire and in the page."""
    count = LARGE + 10

    @ll.function
    def long(x):
        for _ in range(count):
            x = ll.tanh(x)
        return x

    long(ll.ones((2,)))
    fold = GraphFold(long)
    state = fold.state()
    assert [one["key"] for one in state["variants"]] == ["optimised"]
    assert state["waiting"] == "traced"
    assert sum(len(one["nodes"]) for one in state["graphs"]) == count
    assert "was" not in state["graphs"][0]["nodes"][0]
    numbered = []
    monkeypatch.setattr(visible_boxes, "_table", lambda graph, of=visible_boxes._table: numbered.append(1) or of(graph))
    assert "optimised" in graph_figure(state, "optimised").text
    assert len(numbered) == 1  # not for each picture that is tried
    fold.describe_all()
    whole = fold.state()
    assert [one["key"] for one in whole["variants"]] == ["traced", "optimised"]
    assert "waiting" not in whole
    assert whole["described"] != state["described"]
    assert whole["graphs"][1]["nodes"][0]["was"] == [0]
    gone = GraphFold(long)
    assert gone.state()["waiting"] == "traced"
    del long
    gc.collect()
    gone.describe_all()
    assert "waiting" not in gone.state()
    assert [one["key"] for one in gone.state()["variants"]] == ["optimised"]


@pytest.fixture
def middling():
    """A training step of as many ops as are not described in both versions at once."""
    net = nn.Sequential(*(nn.Dense(4, activation="tanh") for _ in range(60)))
    x = ll.ones((2, 4))
    net(x)

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            loss = ll.sum(net(x) * 1.0)
        return tape.gradient(loss, net.trainable_variables)

    step(x)
    assert MIDDLE < len(step.trace_cache[-1].graph.nodes) < LARGE
    return step


def test_the_version_that_is_shown_comes_first_and_the_rest_says_what_it_follows_on(middling):
    fold = GraphFold(middling, brief=True)
    part, mark = fold.shown(), fold.since(0)[1]
    assert [one["key"] for one in part["variants"]] == ["optimised"]
    assert part["soon"]
    assert "history" not in part
    fold.describe_all()
    whole, later = fold.since(mark)
    assert later != mark
    assert [one["key"] for one in whole["variants"]] == ["traced", "optimised"]
    assert whole["history"]
    assert "soon" not in whole
    assert "waiting" not in whole
    assert whole["completes"] == part["described"] != whole["described"]


def test_what_anybody_may_read_is_whole(middling):
    assert [one["key"] for one in GraphFold(middling, brief=True).state()["variants"]] == ["traced", "optimised"]
    assert "history" in GraphFold(middling, begin={"stop": 1}, brief=True).shown()
    assert "history" in GraphFold(middling, "traced", brief=True).shown()  # it says on its boxes what became of them


def test_a_newer_trace_does_not_complete_the_last_one(middling):
    fold = GraphFold(middling, brief=True)
    fold.shown()
    middling(ll.ones((3, 4)))
    fold.describe_all()
    assert fold.apply(traced(function_id=middling.id, entry=1))
    assert "completes" not in fold.shown()


def test_the_forms_before_the_rest_has_come_say_what_the_passes_did(middling):
    """How many ops had which fate is known once both versions are."""
    part, whole = GraphFold(middling, brief=True).shown(), GraphFold(middling, brief=True).state()
    one, other = [graph_figure(state, "optimised") for state in (part, whole)]
    assert one.svg == other.svg
    before, after = [figure.text.split("what the optimiser did to the ") for figure in (one, other)]
    assert before[0] == after[0]
    ops = len(middling.trace_cache[-1].graph.nodes)
    said = " ".join(before[1].split())
    assert said.startswith(f"{ops} ops as traced: ")
    assert "pruned" in after[1]
    assert said.rpartition("; ")[2] == " ".join(after[1].split()).rpartition("; ")[2]
    for one in part["passes"]:
        assert (f"{one['name']} −{one['removed']}" in said) == bool(one["removed"])
