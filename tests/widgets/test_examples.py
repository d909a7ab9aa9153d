"""Two languages, one picture: what Python makes of some graphs, kept for the JavaScript tests to compare with.

Layout, visibility and the words on boxes are written twice: a static figure needs no browser, a live view no kernel. So
that they cannot drift apart, the same cases are asserted here and in widgets/js/test.

After a change that is meant, `LIMELIGHT_WRITE_EXAMPLES=1 pytest tests/widgets/test_examples.py` writes them anew.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from math import inf
from pathlib import Path

import numpy as np

from limelight.graph.ir import Graph, Group
from limelight_widgets import format as formats
from limelight_widgets.figures import graph_files, overlays
from limelight_widgets.figures.box_text import words
from limelight_widgets.figures.first_sight import first_sight
from limelight_widgets.figures.graph_search import matches
from limelight_widgets.figures.nested_layout import draw
from limelight_widgets.figures.opened_groups import opened_to
from limelight_widgets.figures.visible_boxes import visible
from limelight_widgets.folds.graph import GraphFold

FILES = (graph_files.dot, graph_files.model_explorer, graph_files.listing)
QUERIES = ("op:ex", "line:3 dtype:f32", "exp", "dev:cpu:1", "%3", "call f", "nowhere:1")
FILE = Path(__file__).parents[2] / "widgets" / "js" / "test" / "examples.json"


def example(name, graph, opened=()):
    state = GraphFold(graph).state()
    picture = visible(state, 0, lambda box, default: default or box in opened)
    drawing = draw(picture, {box.name: (60.0, 30.0) for box in picture.boxes})
    return {
        "name": name,
        "state": state,
        "open": list(opened),
        "boxes": [[box.name, box.kind, box.parent] for box in picture.boxes],
        "words": [[text.title, text.detail, text.kind] for text in (words(state, box) for box in picture.boxes)],
        "frames": [[frame.name, frame.label, frame.parent] for frame in picture.frames],
        "again": sorted(list(edge) for edge in picture.again),
        "depths": [sorted(opened_to(state, 0, depth)) for depth in range(3)],
        "searches": {query: [matches(node, query) for node in state["graphs"][0]["nodes"]] for query in QUERIES},
        "files": {write.__name__: write(state | {"title": name}, "traced") for write in FILES},
        "edges": [[source, target, count] for (source, target), count in picture.edges.items()],
        "places": {
            thing: [place.x, place.y, place.width, place.height]
            for thing, place in (drawing.boxes | drawing.frames).items()
        },
    }


def recursive(make, fake_function):
    maker = make("f")
    callee = fake_function("f", None)
    callee.graph = maker.graph(maker.node("call", maker.input("x"), functions=(callee,)))
    return callee.graph


def branching(make, fake_function):
    branches = []
    for op in ("exp", "log"):
        maker = make(op)
        branches.append(fake_function(op, maker.graph(maker.node(op, maker.input("x")))))
    outer = make("f")
    x = outer.input("x")
    out = outer.node("cond", outer.input("condition"), outer.node("tanh", x), functions=branches)
    return outer.graph(out, x)


def looping(make, fake_function):
    """A loop that counts to three and doubles: what its body gives comes back to it."""
    cond, body = make("cond"), make("body")
    cond.input("y")
    met = cond.graph(cond.node("less", cond.input("n")))
    n, y = body.input("n"), body.input("y")
    step = body.graph(body.node("add", n), body.node("add", y, y))
    outer = make("f")
    functions = {"cond": fake_function("cond", met), "body": fake_function("body", step)}
    end = outer.node(
        "while_loop", outer.input("n"), outer.input("y"), functions=functions, params={"n_vars": 2}, outputs=2
    )
    return outer.graph(outer.node("exp", end), outer.nodes[0].outputs[1])


def layered_network(make):
    maker = make("deep")
    x = maker.input("x")
    for n in range(150):
        x = maker.node(
            "multiply",
            x,
            maker.nodes[n // 2].outputs[0] if n else x,
            line=n // 3,
            scope=f"block{n // 50}/half{n // 25}/",
        )
    return maker.graph(x)


def fused(make):
    """A fusion group in a scope, out of which one of its ops falls; another needs what is made in between."""
    maker = make("fused")
    x = maker.input("x")
    a = maker.node("multiply", x, x, scope="dense/")
    between = maker.node("sum", x, scope="dense/")
    b = maker.node("add", a, between, scope="dense/")
    c = maker.node("tanh", b)
    d = maker.node("exp", maker.node("sum", c))
    group = Group("elementwise", tuple(maker.nodes[k] for k in (0, 2, 3)))
    return Graph("fused", maker.inputs, maker.nodes, [d], input_names=["x"], groups=[group])


def described(make):
    """What is written on boxes besides names and types: a device, a constant's value, outputs of long types."""
    maker = make("described")
    x = maker.input("a_name_that_is_longer_than_the_box_it_stands_on")
    w = maker.input("w", (2000, 3000, 4000, 5000), captured=True)
    on_device = maker.node("tanh", x, device="CPU:1")
    two = maker.node("constant", params={"value": np.float32(2.0)})
    several = maker.node("split", maker.node("multiply", on_device, two), w, outputs=5, device="CPU:1")
    return maker.graph(several, x)


def trained(layers, repeated=0):
    """The described graph of a training step: layers, and equal blocks, their gradients, and an update."""
    groups, nodes = [], []

    def group(parent, kind, lane, path, **more):
        groups.append(
            {"parent": parent, "kind": kind, "lane": lane, "label": path, "path": path, "size": 0, "ops": 0} | more
        )
        return len(groups) - 1

    def node(op, lane, at, *given):
        nodes.append({"op": op, "kind": "op", "names": [f"%{len(nodes) + 2}"], "in": list(given), "out": ["f32[8,64]"]})
        nodes[-1] |= {"lane": lane} | ({"group": at} if at >= 0 else {})
        while at >= 0:
            groups[at]["size"] += 1
            groups[at]["ops"] += 1
            at = groups[at]["parent"]
        return len(nodes) + 1

    model = group(-1, "module", "forward", "model")
    value, made = 0, []
    for n in range(layers):
        at = group(model, "module", "forward", f"model.{n}", cls="Dense", at=[0, n + 3])
        value = node("tanh", "forward", at, node("matmul", "forward", at, value, 1))
        made.append(value)
    if repeated:
        many = group(model, "repeat", "forward", "", repeat={"count": repeated})
        groups[many]["label"] = f"blocks ×{repeated}"
        groups[many]["repeat"]["members"] = [group(many, "module", "forward", f"model.b{n}") for n in range(repeated)]
        for member in groups[many]["repeat"]["members"]:
            value = node("exp", "forward", member, value)
    value = node("mean", "loss", -1, value)
    loss, back = value, group(-1, "module", "backward", "model")
    value = node("negative", "backward", -1, value)
    for n in reversed(range(layers)):
        value = node("matmul", "backward", group(back, "module", "backward", f"model.{n}"), value, made[n])
    node("assign_variable", "update", group(-1, "optimiser", "update", "Adam", label="Adam: 1 variable"), value, 1)
    inputs = [
        {"name": "x", "spec": "f32[8,64]"},
        {"name": "model.w", "spec": "frozen var f32[64,64]", "captured": True},
    ]
    graph = {"name": "step", "inputs": inputs, "outputs": [loss], "nodes": nodes, "groups": groups, "open": []}
    source = {"label": "In[1]", "first": 1, "text": []}
    return {"variants": [{"key": "traced", "graph": 0}], "graphs": [graph], "sources": [source], "rules": {}}


def ungrouped(state):
    """The same without groups, so that all of it is seen: the code of somebody who uses no modules."""
    (graph,) = state["graphs"]
    nodes = [{key: value for key, value in node.items() if key != "group"} for node in graph["nodes"]]
    x, variable = graph["inputs"]
    return state | {"graphs": [graph | {"groups": [], "nodes": nodes, "inputs": [x, variable | {"folded": True}]}]}


def entangled(make):
    """Few ops, each of which reads many others: more edges than anybody can follow."""
    g = make("f")
    values = [g.input("x")]
    for k in range(30):
        values.append(g.node(f"op{k}", *values[-8:], scope="tangle"))
    return GraphFold(g.graph(values[-1])).state()


def sighted(name, state):
    """What is seen of a graph at first, in four rooms, the first of which is as small as a pane of the dashboard."""
    rooms = []
    for room in ((230.0, 130.0), (420.0, 900.0), (820.0, 516.0), (1800.0, 900.0)):
        sight = first_sight(state, 0, room)
        manner = {key: value for key, value in asdict(sight.manner).items() if value not in (False, inf)}
        places = sight.drawing.boxes | sight.drawing.frames
        rooms.append({
            "room": room,
            "open": sorted(sight.open or ()),
            "dissolved": sorted(sight.dissolved),
            "folded": sight.folded,
            "manner": manner,
            "scale": sight.scale,
            "words": [[one.title, one.detail, one.tags] for one in sight.words.values()],
            "places": {thing: [p.x, p.y, p.width, p.height] for thing, p in places.items()},
            "strips": [[one.lane, one.title, one.x, one.y, one.width, one.height] for one in sight.drawing.strips],
            "bytes": sum(sight.picture.bytes.values()),
        })  # fmt: skip
    return {"name": name, "state": state, "rooms": rooms}


NUMBERS = {
    "bytes": [0, 1, 40, 999, 1000, 1250, 2250, 31_360, 100_500, 99_940, 99_960, 999_400, 999_600, 15**15, 3 * 10**18],
    "seconds": [None, 0.0, 4.2e-06, 0.0009994, 0.0009996, 0.0381, 0.9994, 0.9996, 1.25, 12.0, 3600.5],
    "counted": [[1, "entry", "entries"], [0, "entry", "entries"], [1200, "op"], [1, "op"], [1_234_567, "byte"]],
    "arrows": ["axis 0: 16 -> 5", "rank 0 -> 1: f32[2]", "(2, 3) -> (2, 4)", "def f(x) -> int:", "x -> y -> z", "a->b"],
    "shortened": [["a long name", 7], ["a long name", 11], ["a long name", 10], ["name", 1], ["name", 0], ["ab cd", 4]],
}


def overlaid(state):
    """What overlays tell on the boxes of a step of which some ops were measured."""
    graph = state["graphs"][0]
    for k, node in enumerate(graph["nodes"][:-2]):
        node["cost"] = [k * 1e-5, k % 3, 0, None if k == 4 else "inf" if k == 9 else k / 7, 8 * k]
    graph["nodes"][0]["device"] = "GPU:0"
    boxes = first_sight(state, 0, (820.0, 516.0)).picture.boxes
    said = {
        kind: {"boxes": {name: list(one) for name, one in overlays.told(state, boxes, kind).items()},
               "legend": overlays.legend(state | {"title": "f"}, 0, kind)}
        for kind in overlays.OVERLAYS
    }  # fmt: skip
    return {"state": state | {"title": "f"}, "boxes": [asdict(box) for box in boxes], "said": said}


def formatted():
    """Numbers with the words for them."""
    counted, shortened = NUMBERS["counted"], NUMBERS["shortened"]
    return {
        "bytes": [[number, formats.bytes_text(number)] for number in NUMBERS["bytes"]],
        "seconds": [[number, formats.seconds_text(number)] for number in NUMBERS["seconds"]],
        "counted": [[given, formats.counted(*given)] for given in counted],
        "arrows": [[text, formats.joined_arrows(text)] for text in NUMBERS["arrows"]],
        "shortened": [[given, formats.shortened(*given)] for given in shortened],
    }


def test_javascript_is_compared_with_what_python_does_now(make, fake_function, network):
    graphs = [
        example("network", network),
        example("described", described(make)),
        example("open call", network, ["n4"]),
        example("branches", branching(make, fake_function), ["n1"]),
        example("loop", looping(make, fake_function), ["n0"]),
        example("recursion", recursive(make, fake_function), ["n0"]),
        example("fused", fused(make)),
        example("scopes", layered_network(make), ["g0", "g1", "g3", "g4"]),
    ]
    sights = [
        sighted("five layers", trained(5)),
        sighted("many layers", trained(30)),
        sighted("repeated", trained(2, repeated=12)),
        sighted("scopes", graphs[-1]["state"]),
        sighted("entangled", entangled(make)),
        sighted("few ops", ungrouped(trained(2))),
    ]
    found = {"graphs": graphs, "sights": sights, "overlays": overlaid(trained(3)), "format": formatted()}
    if os.environ.get("LIMELIGHT_WRITE_EXAMPLES"):
        FILE.write_text(
            json.dumps(found, ensure_ascii=False, indent=None, separators=(",", ":")) + "\n", encoding="utf-8"
        )
    assert json.loads(FILE.read_text(encoding="utf-8")) == json.loads(json.dumps(found))
