"""What of a graph is visible, with groups and calls open or closed."""

from __future__ import annotations

from limelight_widgets.figures.visible_boxes import visible
from limelight_widgets.folds.graph import GraphFold


def opened(*names):
    return lambda name, default: default or name in names


def test_calls_are_closed_and_scopes_open(network):
    picture = visible(GraphFold(network).state(), 0)
    assert [box.name for box in picture.boxes] == ["i0", "i1", "i2", "n0", "n1", "n3", "n4", "o0"]
    assert [(frame.name, frame.label) for frame in picture.frames] == [("g0", "dense")]
    assert [box.parent for box in picture.boxes] == ["", "", "", "g0", "g0", "", "", ""]
    assert set(picture.edges) == {
        ("i0", "n0"), ("i2", "n0"), ("n0", "n1"), ("n1", "n3"), ("n3", "n4"), ("i1", "n4"), ("n4", "o0"),
    }  # fmt: skip


def test_a_closed_group_stands_for_its_nodes(network):
    picture = visible(GraphFold(network).state(), 0, lambda name, default: False)
    assert [box.name for box in picture.boxes] == ["i0", "i1", "i2", "g0", "n3", "n4", "o0"]
    assert picture.edges["i0", "g0"] == 1
    assert ("g0", "n3") in picture.edges


def test_an_open_call_shows_its_function_with_edges_through_it(network):
    picture = visible(GraphFold(network).state(), 0, opened("n4"))
    assert [frame.label for frame in picture.frames] == ["dense", "call loss"]
    assert picture.edges["n3", "n4.0/i0"] == 1
    assert picture.edges["i1", "n4.0/i1"] == 1
    assert picture.edges["n4.0/n0", "n4.0/n1"] == 2
    assert ("n4.0/n2", "o0") in picture.edges
    assert not [edge for edge in picture.edges if "n4" in edge]


def test_branches_are_frames_inside_the_call_and_the_condition_stands_before_them(make, fake_function):
    branches = []
    for op in ("exp", "log"):
        maker = make(op)
        branches.append(fake_function(op, maker.graph(maker.node(op, maker.input("x")))))
    outer = make("f")
    out = outer.node("cond", outer.input("condition"), outer.input("x"), functions=branches)
    picture = visible(GraphFold(outer.graph(out)).state(), 0, opened("n0"))
    assert [(frame.name, frame.parent) for frame in picture.frames] == [("n0", ""), ("n0.0", "n0"), ("n0.1", "n0")]
    assert set(picture.edges) == {
        ("i0", "n0.d0"), ("i1", "n0.0/i0"), ("i1", "n0.1/i0"), ("n0.0/i0", "n0.0/n0"), ("n0.1/i0", "n0.1/n0"),
        ("n0.0/n0", "o0"), ("n0.1/n0", "o0"),
    }  # fmt: skip


def test_recursion_is_opened_once(make, fake_function):
    maker = make("f")
    callee = fake_function("f", None)
    callee.graph = maker.graph(maker.node("call", maker.input("x"), functions=(callee,)))
    picture = visible(GraphFold(callee.graph).state(), 0, lambda name, default: True)
    assert [box.name for box in picture.boxes] == ["i0", "n0", "o0"]


def test_a_value_passed_straight_through_a_call_keeps_its_edge(make, fake_function):
    inner = make("same")
    x = inner.input("x")
    callee = fake_function("same", inner.graph(x))
    outer = make("f")
    out = outer.node("call", outer.input("x"), functions=(callee,))
    picture = visible(GraphFold(outer.graph(out)).state(), 0, opened("n0"))
    assert set(picture.edges) == {("i0", "n0.0/i0"), ("n0.0/i0", "o0")}


def test_a_constant_that_is_written_on_its_readers_ties_none_of_them_to_another(make):
    maker = make("f")
    x, two = maker.input("x"), maker.node("constant", params={"value": 2.0})
    product, total = maker.node("multiply", x, two), maker.node("add", x, two)
    picture = visible(GraphFold(maker.graph(product, total)).state(), 0, folded=True)
    assert set(picture.edges) == {("i0", "n1"), ("i0", "n2")}
