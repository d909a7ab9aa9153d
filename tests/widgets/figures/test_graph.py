"""The static forms of a graph."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from limelight_widgets.figures.box_text import words
from limelight_widgets.figures.graph import _dotted, graph_figure
from limelight_widgets.figures.layered_layout import Strip
from limelight_widgets.figures.nested_layout import Rectangle
from limelight_widgets.figures.op_listing import MOST_ROWS, listing
from limelight_widgets.figures.visible_boxes import visible
from limelight_widgets.folds.graph import GraphFold

ALLOWED = {"figure", "figcaption", "img", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "p", "div"}


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\u202eabc\x00\x07", "n" * 10_000]
)
def test_names_are_data(make, name):
    maker = make(name)
    x = maker.input(name)
    graph = maker.graph(
        maker.node(name, x, scope=f"{name}/", line=1), maker.node("exp", x, scope=f"{name}/", params={name: name})
    )
    shown = graph_figure(GraphFold(graph).state(), "traced")
    assert set(re.findall(r"<\s*([a-zA-Z]+)", shown.html)) <= ALLOWED
    assert "<script" not in shown.svg
    ElementTree.fromstring(shown.svg)
    assert sum(len(form.encode()) for form in shown.bundle().values()) < 200_000


def test_a_listing_that_is_full_lists_no_op_of_what_is_called(make, fake_function):
    inner, outer = make("inner"), make("outer")
    given = inner.input("x")
    function = fake_function("inner", inner.graph(inner.node("exp", inner.node("exp", given))))
    value = outer.input("x")
    for _ in range(MOST_ROWS + 5):
        value = outer.node("tanh", value)
    rows = listing(
        GraphFold(outer.graph(outer.node("call", value, functions=(function,)))).state(), {"graph": 0, "key": ""}
    )
    assert [row[1] for row in rows.rows] == ["tanh"] * MOST_ROWS + ["in inner:"]
    assert (rows.hidden, rows.unit) == (8, "op")


def test_a_requested_device_is_written_on_the_box(make):
    step = make("step")
    step.node("tanh", step.input("x"), device="CPU:1")
    state = GraphFold(step.graph(*step.nodes[-1].outputs)).state()
    (node,) = [box for box in visible(state, 0).boxes if box.kind == "node"]
    assert words(state, node).detail == "f32[2,3] · CPU:1"


@pytest.mark.slow  # draws thousands of boxes
def test_a_large_graph_stays_small(make):
    maker = make("big")
    x = maker.input("x")
    for n in range(10_000):
        x = maker.node("multiply", x, x, line=n % 900 + 1, scope=f"block{n // 500}/layer{n // 50}/")
    shown = graph_figure(GraphFold(maker.graph(x)).state(), "traced")
    assert sum(len(form.encode()) for form in shown.bundle().values()) < 200_000
    assert "… 9,800 more ops" in shown.html


@pytest.mark.parametrize("left", [10.0, 300.0])
def test_what_is_kept_is_written_between_the_lanes_and_hides_no_name(left):
    forward, backward = Strip("forward", "forward", 0, 0, 400, 100), Strip("backward", "backward", 0, 110, 400, 60)
    layer, gradient = Rectangle(left, 70, 60, 28), Rectangle(left, 133, 60, 28)
    drawn = ElementTree.fromstring(f"<g>{_dotted(layer, gradient, 463_000, [forward, backward])}</g>")
    ground = next(element for element in drawn if element.tag == "rect")
    top, bottom = float(ground.get("y")), float(ground.get("y")) + float(ground.get("height"))
    assert top > layer.y + layer.height - 2
    assert bottom < backward.y + 4  # its name stands below
