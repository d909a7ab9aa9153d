"""Static pictures and live views show the same of the same graph, from the same JSON: whatever is open in them."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.programs import AUTOENCODER, CONVOLUTIONAL, IMPORTS, UNROLLED
from limelight_widgets.figures.first_sight import first_sight
from limelight_widgets.figures.visible_boxes import visible
from limelight_widgets.folds.graph import GraphFold

SOURCES = Path(__file__).parents[2] / "widgets" / "js" / "src" / "graph"
NODE = shutil.which("node")
ROOMS = ((860.0, 640.0), (560.0, 400.0), (300.0, 500.0))
SHARES = (0.0, 0.2, 0.6, 1.0)
CALLING = """
@ll.function
def inner(x, y):
    return ll.tanh(x) * 0.5 + y, 2.0
@ll.function
def calling(x):
    a, b = inner(x, 1.0)
    c, d = inner(a, x)
    e = ll.cond(ll.sum(c) > 0.0, lambda: c * 2.0, lambda: ll.exp(a) + d)
    f = ll.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, inner(v * 0.5, 3.0)[0]), (0, e))
    with ll.name_scope("out"):
        return ll.sum(f[1]) * 2.0 + b
calling(ll.ones((3,)));
"""
PROGRAMS = {"calling": CALLING, "convolutional": CONVOLUTIONAL, "unrolled": UNROLLED, "autoencoder": AUTOENCODER}
LIVE = """
import { readFileSync } from "node:fs";
const [sources] = process.argv.slice(1);
const { visible } = await import(`${sources}/visible-boxes.js`);
const { firstSight } = await import(`${sources}/first-sight.js`);
const { state, shown, seen } = JSON.parse(readFileSync(0, "utf8"));
const told = ({ boxes, frames, edges }) => ({
  boxes: boxes.map(b => [b.name, b.kind, b.parent, b.lane ?? "", b.path ?? "", b.more ?? 0, b.tags ?? []]),
  frames: frames.map(f => [f.name, f.label, f.parent]),
  edges: [...edges.values()].map(e => [e.source, e.target, e.count, e.bytes ?? 0, Boolean(e.again)]),
});
console.log(JSON.stringify({
  shown: shown.map(({ graph, open, dissolved, folded }) =>
    told(visible(state.graphs, graph, name => open.includes(name), folded, new Set(dissolved)))),
  seen: seen.map(([graph, width, height]) =>
    firstSight(state, graph, { width, height }).picture.boxes.map(b => b.name)),
}));
"""


def names(state, graph, path="", chain=()):
    """All groups and calls that can be opened, at each of their places."""
    described = state["graphs"][graph]
    yield from (f"{path}g{k}" for k in range(len(described["groups"])))
    for index, node in enumerate(described["nodes"]):
        for k, (callee, _) in enumerate(node.get("calls", ())):
            if callee not in (*chain, graph):
                yield f"{path}n{index}"
                yield from names(state, callee, f"{path}n{index}.{k}/", (*chain, graph))


def told(picture, folded):
    return {
        "boxes": [
            [b.name, b.kind, b.parent, b.lane, b.path, b.more, [*picture.tags.get(b.name, ())]] for b in picture.boxes
        ],
        "frames": [[f.name, f.label, f.parent] for f in picture.frames],
        "edges": [
            [*edge, count, picture.bytes.get(edge, 0) if folded else 0, edge in picture.again]
            for edge, count in picture.edges.items()
        ],
    }  # fmt: skip


@pytest.mark.slow  # starts Node
@pytest.mark.skipif(NODE is None, reason="no Node.js here (`node` is not on the path)")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_is_shown_from_the_same_state(name):
    namespace: dict = {}
    exec(IMPORTS + PROGRAMS[name], namespace)
    state = json.loads(json.dumps(GraphFold(namespace[name]).state()))
    chance = random.Random(5)
    shown = []
    for graph in (variant["graph"] for variant in state["variants"]):
        for share, folded in ((share, folded) for share in SHARES for folded in (False, True)):
            opened = [one for one in names(state, graph) if chance.random() < max(share, 0.5 if "/" in one else 0)]
            dissolved = [one for one in opened if one.startswith("g") and chance.random() < 0.2]
            shown.append({"graph": graph, "open": opened, "dissolved": dissolved, "folded": folded})
    pictures = [
        visible(state, one["graph"], lambda box, _, one=one: box in one["open"], folded=one["folded"],
                dissolved=frozenset(one["dissolved"])) for one in shown
    ]  # fmt: skip
    seen = [[variant["graph"], *room] for variant in state["variants"] for room in ROOMS]
    live = subprocess.run(
        [NODE, "--input-type=module", "-e", LIVE, SOURCES.as_uri()],
        input=json.dumps({"state": state, "shown": shown, "seen": seen}), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(live.stdout)
    for case, picture, other in zip(shown, pictures, found["shown"], strict=True):
        assert told(picture, case["folded"]) == other, case
    for (graph, *room), boxes in zip(seen, found["seen"], strict=True):
        assert [box.name for box in first_sight(state, graph, tuple(room)).picture.boxes] == boxes
