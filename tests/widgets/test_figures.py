from __future__ import annotations

import base64
import itertools
import random
import re
from xml.etree import ElementTree

import pytest

from limelight.graph.ir import Graph, Group
from limelight_widgets.figures.boxes import words
from limelight_widgets.figures.frames import draw
from limelight_widgets.figures.graph import graph_figure
from limelight_widgets.figures.layers import layered
from limelight_widgets.figures.static import Table, figure, text_table
from limelight_widgets.figures.tables import cache_figure, devices_figure, tape_figure
from limelight_widgets.figures.visible import visible
from limelight_widgets.folds import CacheFold, DevicesFold, GraphFold, TapeFold

ALLOWED = {"figure", "figcaption", "img", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "p", "div"}


def opened(*names):
    return lambda name, default: default or name in names


# --- what is visible


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


# --- layout


def overlaps(first, second):
    (x, y, width, height), (left, top, wide, high) = first, second
    apart = x + width <= left + 1e-6 or left + wide <= x + 1e-6 or y + height <= top + 1e-6 or top + high <= y + 1e-6
    return not apart


def random_graph(seed, count=40):
    rng = random.Random(seed)
    edges = [(a, b) for b in range(1, count) for a in rng.sample(range(b), min(b, rng.randint(0, 3)))]
    return [(rng.randint(20, 120), rng.choice([24, 38])) for _ in range(count)], edges


@pytest.mark.parametrize("seed", range(20))
def test_boxes_do_not_overlap_and_edges_point_down(seed):
    sizes, edges = random_graph(seed)
    layout = layered(sizes, edges)
    places = [(x - w / 2, y - h / 2, w, h) for (x, y), (w, h) in zip(layout.centres, sizes, strict=True)]
    assert not [pair for pair in itertools.combinations(places, 2) if overlaps(*pair)]
    assert all(layout.centres[a][1] < layout.centres[b][1] for a, b in edges)
    assert all(-1e-6 <= x and x + w <= layout.width + 1e-6 and y + h <= layout.height + 1e-6 for x, y, w, h in places)
    assert layered(sizes, edges) == layout


def test_bends_lead_from_the_source_to_the_target():
    layout = layered([(30, 20)] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert [len(bends) for bends in layout.bends] == [0, 0, 0, 4], "straight through each rank"
    heights = [y for _, y in layout.bends[3]]
    assert layout.centres[0][1] < heights[0] < heights[1] < layout.centres[3][1]


def test_a_chain_hangs_straight_below_its_inputs():
    sizes = [(60, 30), (140, 38), (60, 30), (90, 30), (44, 24)]
    layout = layered(sizes, [(0, 2), (1, 2), (2, 3), (3, 4)])
    (left, _), (right, _), *chain = layout.centres
    assert len({round(x, 6) for x, _ in chain}) == 1
    assert chain[0][0] == pytest.approx((left + right) / 2)


def test_loops_and_steps_back_are_drawn():
    layout = layered([(30, 20)] * 3, [(0, 1), (1, 2), (2, 0), (1, 1)])
    assert len({y for _, y in layout.centres}) == 3


def test_a_deep_chain_needs_no_recursion_and_linear_time():
    count = 30_000
    layout = layered([(30, 20)] * count, [(i, i + 1) for i in range(count - 1)])
    assert len(layout.centres) == count


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


# --- the forms


@pytest.fixture
def figures(network, staged, fake_tape):
    tape = fake_tape(40, 80)
    staged.add(network, reason="first call")
    staged.add(network, signature="x: f32[17,3]", reason="argument `x` f32[2,3] -> f32[17,3]", hits=3)
    devices = DevicesFold([("CPU:0", "/job:localhost/task:0/device:CPU:0", 31_360, 62_720)])
    return {
        "graph": graph_figure(GraphFold(staged).state(), "optimised"),
        "cache": cache_figure(CacheFold((staged,), only=True).state()),
        "tape": tape_figure(TapeFold(tape).state()),
        "devices": devices_figure(devices.state()),
    }


@pytest.mark.parametrize("name", ["graph", "cache", "tape", "devices"])
def test_every_form_is_there_and_small(figures, name):
    bundle = figures[name].bundle()
    assert set(bundle) == {"text/plain", "text/html", "image/svg+xml"}
    assert sum(len(form.encode()) for form in bundle.values()) < 200_000
    assert all(len(line) <= 80 for line in bundle["text/plain"].splitlines())


@pytest.mark.parametrize("name", ["graph", "cache", "tape", "devices"])
def test_html_holds_only_what_untrusted_notebooks_keep(figures, name):
    html = figures[name].html
    assert set(re.findall(r"<\s*([a-zA-Z]+)", html)) <= ALLOWED
    image = re.search(r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]+)"', html)
    assert base64.b64decode(image[1]).decode() == figures[name].svg
    assert image[2]


@pytest.mark.parametrize("name", ["graph", "cache", "tape", "devices"])
def test_pictures_are_well_formed_described_and_bring_their_backdrop(figures, name):
    root = ElementTree.fromstring(figures[name].svg)
    kinds = [child.tag.rpartition("}")[2] for child in root]
    assert kinds[:3] == ["title", "desc", "rect"]
    assert not {"script", "style", "foreignObject", "image"} & {e.tag.rpartition("}")[2] for e in root.iter()}


def test_the_graph_as_text(figures):
    assert figures["graph"].text.splitlines() == [
        "Graph of step: optimised, trace #2 of 2, 5 ops, 3 inputs, 1 output",
        "",
        "value  op         of              gives     line",
        "─────  ─────────  ──────────────  ────────  ─────────",
        "%3     matmul     x, w            f32[2,3]  cell.py:5",
        "%4     tanh       %3              f32[2,3]  cell.py:6",
        "%5     constant   2.0             f32[2,3]",
        "%6     multiply   %4, %5          f32[2,3]  cell.py:7",
        "%7     call loss  %6, y           f32[2,3]  cell.py:8",
        "       in loss:",
        "%2     subtract   logits, labels  f32[2,3]  cell.py:2",
        "%3     multiply   %2, %2          f32[2,3]  cell.py:3",
        "%4     mean       %3              f32[2,3]  cell.py:3",
    ]


def test_the_cache_as_text_names_the_reason(figures):
    assert "2 traces, 3 hits" in figures["cache"].text
    assert "first call" in figures["cache"].text


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


def test_a_requested_device_is_written_on_the_box(make):
    step = make("step")
    step.node("tanh", step.input("x"), device="CPU:1")
    state = GraphFold(step.graph(*step.nodes[-1].outputs)).state()
    (node,) = [box for box in visible(state, 0).boxes if box.kind == "node"]
    assert words(state, node).detail == "f32[2,3] · CPU:1"


def test_a_large_graph_stays_small(make):
    maker = make("big")
    x = maker.input("x")
    for n in range(10_000):
        x = maker.node("multiply", x, x, line=n % 900 + 1, scope=f"block{n // 500}/layer{n // 50}/")
    shown = graph_figure(GraphFold(maker.graph(x)).state(), "traced")
    assert sum(len(form.encode()) for form in shown.bundle().values()) < 200_000
    assert "and 9,800 more ops" in shown.html


def test_a_table_that_is_too_large_says_that_it_was_cut():
    rows = [[str(n), "x" * 150, "y" * 150, "z" * 150] for n in range(2_000)]
    shown = figure("Rows", "many", None, Table(("n", "a", "b", "c"), rows))
    assert sum(len(form.encode()) for form in shown.bundle().values()) < 200_000
    assert re.search(r"the first \d+ rows; more would not fit here", shown.html)


def test_empty_views_say_what_to_do_in_every_form(staged):
    shown = graph_figure(GraphFold(staged).state(), "optimised")
    for form in (shown.text, shown.html, shown.svg):
        assert "has not been traced yet" in form


def test_wide_columns_give_way():
    table = Table(("a", "b"), [["x" * 200, "12"]], numbers=frozenset({"b"}))
    assert max(map(len, text_table(table).splitlines())) == 80
    assert text_table(table).splitlines()[-1].endswith("…  12")


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
