"""Drawings with frames."""

from __future__ import annotations

import itertools

from limelight.graph.ir import Graph, Group
from limelight_widgets.figures.nested_layout import draw
from limelight_widgets.figures.visible_boxes import visible
from limelight_widgets.folds.graph import GraphFold


def opened(*names):
    return lambda name, default: default or name in names


def overlaps(first, second):
    (x, y, width, height), (left, top, wide, high) = first, second
    apart = x + width <= left + 1e-6 or left + wide <= x + 1e-6 or y + height <= top + 1e-6 or top + high <= y + 1e-6
    return not apart


def test_what_is_in_a_frame_lies_inside_it(network):
    picture = visible(GraphFold(network).state(), 0, opened("n4"))
    drawing = draw(picture, {box.name: (60.0, 30.0) for box in picture.boxes})
    everything = drawing.boxes | drawing.frames
    for thing in (*picture.boxes, *picture.frames):
        if thing.parent:
            inner, outer = everything[thing.name], everything[thing.parent]
            assert outer.x < inner.x
            assert inner.x + inner.width < outer.x + outer.width
            assert outer.y < inner.y
            assert inner.y + inner.height < outer.y + outer.height
    places = [(r.x, r.y, r.width, r.height) for r in drawing.boxes.values()]
    assert not [pair for pair in itertools.combinations(places, 2) if overlaps(*pair)]
    assert set(drawing.edges) == set(picture.edges)


def test_edges_into_a_frame_go_round_the_boxes_before_their_ends(make):
    """Ops a, b and c stand in a frame; x leads to a and b, and both c and a to an op below it."""
    maker = make()
    x = maker.input("x")
    a = maker.node("tanh", x, scope="in/")
    b = maker.node("add", a, x, scope="in/")
    c = maker.node("exp", b, scope="in/")
    state = GraphFold(maker.graph(maker.node("add", c, a))).state()
    picture = visible(state, 0, opened("g0"))
    drawing = draw(picture, {box.name: (60.0, 30.0) for box in picture.boxes})
    for ends, points in drawing.edges.items():
        for name, box in drawing.boxes.items():
            inside = [p for p in points if box.x < p[0] < box.x + box.width and box.y < p[1] < box.y + box.height]
            assert not inside, (ends, name)
    into, out = drawing.edges["i0", "n1"], drawing.edges["n0", "n3"]
    assert [y for _, y in into[1:3]] == [drawing.boxes["n0"].y, drawing.boxes["n0"].y + 30]
    assert {box for box in ("n1", "n2") for x, y in out if y == drawing.boxes[box].y} == {"n1", "n2"}


def test_a_fusion_group_stands_below_what_it_needs(make):
    maker = make("f")
    x = maker.input("x")
    a = maker.node("multiply", x, x)
    between = maker.node("sum", x)
    graph = maker.graph(maker.node("add", a, between))
    fused = Graph(
        "f", graph.inputs, graph.nodes, graph.outputs, groups=[Group("elementwise", (a.node, graph.nodes[2]))]
    )
    picture = visible(GraphFold(fused).state(), 0)
    drawing = draw(picture, {box.name: (60.0, 30.0) for box in picture.boxes})
    assert drawing.boxes["n1"].y + drawing.boxes["n1"].height < drawing.frames["f1"].y
