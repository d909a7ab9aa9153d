"""Graphs through the passes, and from a trace to another."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import limelight as ll
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.folds.graph_json import Describer
from limelight_widgets.folds.pass_history import of_traces

sys.path.insert(0, str(Path(__file__).parents[1]))
import models  # in the folder above


def alive(nodes, stop):
    return [k for k, node in enumerate(nodes) if node["born"] <= stop < node.get("gone", len(nodes) + 99)]


@pytest.mark.parametrize("name", ["conv_net", "vae", "gan", pytest.param("u_net", marks=pytest.mark.slow)])
def test_the_arithmetic_closes_at_every_stop_and_ends_with_the_graph_that_runs(name):
    state = GraphFold(models.MODELS[name]()).state()
    history = state["history"]
    nodes, stops = state["graphs"][history["graph"]]["nodes"], history["stops"]
    assert stops[0]["name"] == "traced"
    for k, stop in enumerate(stops):
        assert stop["before"] - stop["removed"] + stop["added"] == stop["after"]
        assert len(alive(nodes, k)) == stop["after"]
        if k:
            assert sum(node.get("gone") == k for node in nodes) == stop["removed"]
            assert sum(node["born"] == k for node in nodes) == stop["added"]
            told = {index for _, _, old, _ in stop["changes"] for index in old}
            assert told == {i for i, node in enumerate(nodes) if node.get("gone") == k}
    runs = state["graphs"][state["variants"][1]["graph"]]["nodes"]
    last = [nodes[k] for k in alive(nodes, len(stops) - 1)]
    assert sorted(node["op"] for node in last) == sorted(node["op"] for node in runs)


def test_what_a_node_reads_is_what_it_read_at_that_stop():
    @ll.function
    def twice(x):
        return ll.exp(x) + ll.exp(x)

    twice(ll.ones(2))
    state = GraphFold(twice).state()
    graph = state["graphs"][state["history"]["graph"]]
    add = next(node for node in graph["nodes"] if node["op"] == "add")
    assert [reads for _, reads in add["ins"]] == [[1, 2], [1, 1]]
    assert [node["op"] for node in graph["nodes"] if "gone" in node] == ["exp"]
    rule, reason, old, new = state["history"]["stops"][1]["changes"][0]
    assert (graph["nodes"][old[0]]["op"], graph["nodes"][new[0]]["op"]) == ("exp", "exp")
    assert rule
    assert reason


def test_two_traces_differ_in_what_only_one_has():
    @ll.function
    def shaped(x, flag):
        y = ll.tanh(x)
        return ll.exp(y) if flag else y * 2.0

    shaped(ll.ones(2), True)
    shaped(ll.ones(2), False)
    one, two = [entry.graph for entry in shaped.trace_cache]
    describer = Describer()
    history = of_traces(describer, one, two, ("trace #1", "trace #2"))
    nodes = describer.state()["graphs"][history["graph"]]["nodes"]
    stop = history["stops"][1]
    assert (stop["before"], stop["removed"], stop["added"], stop["after"]) == (2, 1, 2, 3)
    lives = {(node["op"], node["born"], node.get("gone")) for node in nodes if node["op"] != "constant"}
    assert lives == {("tanh", 0, None), ("multiply", 1, None), ("exp", 0, 1)}


def test_a_view_compares_two_traces_that_are_chosen():
    @ll.function
    def scale(x, by):
        return ll.tanh(x) * by

    scale(ll.ones(2), 2.0)
    scale(ll.ones(2), 3.0)
    state = GraphFold(scale, diff=(0, 1)).state()
    assert state["label"] == "trace #1 to #2"
    assert (state["which"], [stop["name"] for stop in state["history"]["stops"]]) == (
        "history",
        ["trace #1", "trace #2"],
    )
    with pytest.raises(IndexError, match="there is no 4"):
        GraphFold(scale, diff=(0, 4))


def test_a_graph_that_no_pass_changed_and_a_huge_one_have_no_history(monkeypatch):
    @ll.function
    def plain(x):
        return ll.tanh(x)

    plain(ll.ones(2))
    assert "history" not in GraphFold(plain).state()
    monkeypatch.setattr("limelight_widgets.folds.pass_history.MOST_NODES", 10)
    assert "history" not in GraphFold(models.vae()).state()


def test_a_graph_of_more_than_2_000_ops_has_a_history():
    assert "history" in GraphFold(models.unrolled(2_100)).state()


def test_traces_that_are_too_large_to_compare_are_told_with_the_limit_and_what_to_write(monkeypatch):
    @ll.function
    def scale(x):
        return x * 2.0 + 1.0

    scale(ll.ones(2))
    scale(ll.ones(3))
    monkeypatch.setattr("limelight_widgets.folds.pass_history.MOST_COMPARED", 1)
    monkeypatch.setattr("limelight_widgets.folds.graph.MOST_COMPARED", 1)
    said = GraphFold(scale, diff=(0, 1)).state()["empty"]
    sizes = [len(entry.graph.nodes) for entry in scale.trace_cache]
    assert f"These traces have {sizes[0]} and {sizes[1]} ops, and traces of up to 1 ops are compared" in said
    assert "%trace_cache scale --diff 1 2 tells" in said


def test_rounds_stay_one_after_another_though_passes_move_what_all_of_them_read():
    w, u, b = ll.Variable(ll.ones((4, 3))), ll.Variable(ll.eye(3)), ll.Variable(ll.zeros(3))

    def cell(h, x):
        return ll.tanh(x @ w + h @ u + b)

    @ll.function
    def step(seq):
        with ll.GradientTape() as tape:
            h = ll.zeros((2, 3))
            for t in range(6):
                h = cell(h, seq[t])
            loss = ll.sum(h**2)
        return tape.gradient(loss, [w, u, b])

    step(ll.ones((6, 2, 4)))
    state = GraphFold(step).state()
    graph = state["graphs"][state["history"]["graph"]]
    traced = state["graphs"][state["variants"][0]["graph"]]["nodes"]
    forward = [node["op"] for node in graph["nodes"] if node["born"] == 0 and node["lane"] == "forward"]
    assert forward == [node["op"] for node in traced if node["lane"] == "forward"]
    rounds = [g["label"] for g in graph["groups"] if g["lane"] == "forward" and "repeat" in g]
    assert rounds == ["cell ×5"]  # the first makes what all of them share


def test_what_all_versions_have_together_is_summed_up_nowhere():
    """Else a picture of two traces would tell the bytes that both of them keep, and the ops of both in each box."""
    state = GraphFold(models.MODELS["conv_net"]()).state()
    both = state["graphs"][state["history"]["graph"]]
    assert both["versions"]
    assert "crossings" not in both
    assert {(group["size"], group["ops"]) for group in both["groups"]} == {(0, 0)}
    assert not [group for group in both["groups"] if {"saved", "bytes"} & set(group)]
    assert "crossings" in state["graphs"][state["variants"][0]["graph"]]
