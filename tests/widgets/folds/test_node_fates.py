"""What became of each node of a traced graph, followed through the passes."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight_widgets.folds.node_fates import fates, group_numbers, group_texts


def followed(fn, *args):
    function = ll.function(fn)
    function(*args)
    entry = function.trace_cache[0]
    optimised = entry.function.optimised
    return entry.graph, optimised.graph, fates(entry.graph, optimised.graph, optimised.records)


def words(graph, found, op):
    return [found[node].words for node in graph.nodes if node.op.name == op]


def test_every_node_has_a_fate_and_ends_in_the_optimised_graph():
    def program(x):
        a = ll.exp(x) + 1.0
        ll.tanh(x)
        b = ll.exp(x) * ll.negative(ll.negative(x))
        return (a - b) ** 3, ll.constant(2.0) * ll.constant(3.0)

    traced, optimised, found = followed(program, ll.ones((3,)))
    assert set(found) == set(traced.nodes)
    there = set(optimised.nodes)
    assert all(one in there for fate in found.values() for one in fate.after)
    assert {one for fate in found.values() for one in fate.after} == there, "each node that runs stands for some other"
    assert words(traced, found, "tanh") == ["pruned: nothing uses it"]
    assert words(traced, found, "exp")[1].startswith("shared with line ")
    assert "simplified by -(-x)" in words(traced, found, "negative")[1]
    power = next(node for node in traced.nodes if node.op.name == "pow")
    assert [node.op.name for node in found[power].after] == ["pow"]
    assert words(traced, found, "multiply")[-1] == "folded into a constant"


def test_groups_are_numbered_from_one():
    traced, optimised, found = followed(lambda x: ll.tanh(x * 2.0 + 1.0).sum(), ll.ones((3,)))
    assert set(group_numbers(optimised).values()) == {1}
    assert group_texts(optimised) == ["group 1: multiply, add, tanh in one go"]
    assert words(traced, found, "tanh") == ["kept; fused into group 1"]
    assert words(traced, found, "sum") == ["kept"]


def test_what_is_kept_is_kept():
    traced, optimised, found = followed(lambda x: x @ x, ll.ones((2, 2)))
    (node,) = traced.nodes
    assert found[node].steps == ()
    assert found[node].words == "kept"
    assert found[node].after == tuple(optimised.nodes)


@pytest.mark.parametrize("size", [20_001])
def test_huge_graphs_are_not_followed(size, monkeypatch):
    class Many:
        nodes = range(size)

    assert fates(Many(), Many(), ()) == {}
