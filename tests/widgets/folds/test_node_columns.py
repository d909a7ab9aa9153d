"""Nodes by columns: records are made when they are asked for, and are the same for everybody."""

from __future__ import annotations

import json

import pytest

import limelight as ll
from limelight_widgets.figures.graph import graph_figure
from limelight_widgets.folds.fold import shown
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.folds.node_columns import NodeColumns
from limelight_widgets.live import wire


@pytest.fixture
def long() -> ll.function:
    """A function whose graph is sent as columns, with constants, parameters, a call, and an op of two results."""
    weight = ll.Variable(ll.ones((2, 2)), name="weight")

    @ll.function
    def inner(x):
        return ll.sin(x) * 2.0

    @ll.function
    def program(x):
        for _ in range(wire.LONG // 2):
            x = ll.tanh(x * 1.0001)
        first, second = ll.split(ll.astype(x @ weight, "float64"), 2)
        return inner(first) + second

    program(ll.ones((2, 2)))
    return program


def test_what_is_sent_and_drawn_without_records_is_what_is_sent_and_drawn_with_them(long):
    state, lazy = GraphFold(long).state(), shown(GraphFold(long))
    assert json.loads(json.dumps(state["graphs"])) == wire.unpack(wire.pack(lazy))["graphs"]
    assert wire.unpack(wire.pack(state))["graphs"] == state["graphs"]
    assert graph_figure(lazy, "optimised").text == graph_figure(state, "optimised").text
    assert lazy["graphs"] == state["graphs"]


def test_few_records_are_made_for_what_is_seen_at_first(long):
    lazy = shown(GraphFold(long))
    wire.pack(lazy)
    assert not any(graph["nodes"].made() for graph in lazy["graphs"] if len(graph["nodes"]) >= wire.LONG)
    graph_figure(lazy, "optimised")
    runs = lazy["graphs"][lazy["variants"][1]["graph"]]["nodes"]
    assert 0 < len(runs.made()) < len(runs) / 2


def test_a_changed_record_is_seen_by_all_who_ask_later(long):
    lazy = shown(GraphFold(long))
    nodes = lazy["graphs"][0]["nodes"]
    nodes[3]["op"] = "another"
    nodes.note(3, "cost", [1.0])
    nodes.note(-1 + len(nodes), "cost", [2.0])
    sent = wire.unpack(wire.pack(lazy))["graphs"][0]["nodes"]
    assert (sent[3]["op"], sent[3]["cost"], sent[-1]["cost"]) == ("another", [1.0], [2.0])
    assert sent == nodes
    assert nodes[-1] is nodes[len(nodes) - 1]


def test_records_that_came_from_elsewhere_have_the_same_columns(long):
    graph = shown(GraphFold(long))["graphs"][0]
    own, other = graph["nodes"].columns, NodeColumns.of(json.loads(json.dumps(GraphFold(long).state()))["graphs"][0])
    for columns in (own, other):
        assert columns.rows() == [columns.row(k) for k in range(len(columns))]
    assert own.makers.tolist() == other.makers.tolist()
    assert own.group.tolist() == other.group.tolist()
    assert own.sources() == other.sources()
    assert own.noted("folded_into") == other.noted("folded_into")
    assert own.by_kind(lambda kind: kind["op"]) == other.by_kind(lambda kind: kind["op"])


def test_nodes_of_equal_lines_are_of_one_kind_whichever_call_of_a_module_made_them():
    layers = [ll.nn.Dense(2) for _ in range(12)]
    model = ll.nn.Sequential(*layers)
    x = ll.ones((2, 2))
    model(x)

    @ll.function
    def gradients(x):
        with ll.GradientTape() as tape:
            loss = ll.sum(model(x))
        return tape.gradient(loss, model.trainable_variables)

    gradients(x)
    columns = shown(GraphFold(gradients, "traced"))["graphs"][0]["nodes"].columns
    multiplied = set(columns.kind[columns.where(lambda kind: kind["op"] == "matmul")].tolist())
    lanes = {(str(columns.kinds[k]["stack"]), columns.kinds[k]["lane"]) for k in multiplied}
    assert len(multiplied) == len(lanes)
