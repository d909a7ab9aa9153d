"""The ways of edges: past other boxes, out of the side of a box that faces the way and into the side that does."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from limelight_widgets.figures.nested_layout import Manner, draw
from limelight_widgets.figures.visible_boxes import Box, Picture

WIDTH, HEIGHT = 60.0, 30.0


def a_step(seed: int) -> Picture:
    """A network with skip connections, each of its boxes with a gradient, and an update."""
    rng = random.Random(seed)
    layers = rng.randint(6, 12)
    skips = {tuple(sorted(rng.sample(range(layers), 2))) for _ in range(4)}
    ways = sorted(skips | {(i, i + 1) for i in range(layers - 1)})
    picture = Picture()
    picture.boxes = [Box(f"a{i}", "node", 0, i, "", lane="forward", path=f"net.{i}") for i in range(layers)]
    picture.boxes += [
        Box(f"d{i}", "node", 0, layers + i, "", lane="backward", path=f"net.{i}") for i in reversed(range(layers))
    ]
    picture.boxes.append(Box("update", "node", 0, 2 * layers, "", lane="update"))
    picture.edges = {(f"a{i}", f"a{k}"): 1 for i, k in ways} | {(f"d{k}", f"d{i}"): 1 for i, k in ways}
    return picture


def on_the_way(points, across):
    """Points of the curve that is drawn through `points`, and all of its straight parts."""
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = ((x + to_x) / 2, (y + to_y) / 2)
        controls = [(middle[0], y), (middle[0], to_y)] if across else [(x, middle[1]), (to_x, middle[1])]
        straight = x == to_x or y == to_y
        for step in range(1, 20):
            t = step / 20
            parts = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3]
            corners = [(x, y), *controls, (to_x, to_y)]
            curved = tuple(sum(part * corner[i] for part, corner in zip(parts, corners, strict=True)) for i in (0, 1))
            yield (x + t * (to_x - x), y + t * (to_y - y)) if straight else curved


def crossed(drawing, across):
    """The edges that pass through a box, be it one of their own, and that box."""
    return [
        (edge, name)
        for edge, points in drawing.edges.items()
        if edge not in drawing.bridges
        for name, box in drawing.boxes.items()
        if any(
            box.x + 1 < x < box.x + box.width - 1 and box.y + 1 < y < box.y + box.height - 1
            for x, y in on_the_way(points, across)
        )
    ]


@pytest.mark.parametrize("lanes", [True, False], ids=["in lanes", "without"])
@pytest.mark.parametrize("across", [True, False], ids=["rows", "columns"])
def test_no_edge_passes_through_a_box_where_the_picture_goes_on_in_another_band(across, lanes):
    for seed in range(8):
        picture = a_step(seed)
        sizes = {box.name: (WIDTH, HEIGHT) for box in picture.boxes}
        whole = draw(picture, sizes, Manner(across=across, lanes=lanes))
        length = whole.width if across else whole.height
        drawing = draw(picture, sizes, Manner(across=across, lanes=lanes, limit=length / 2.5))
        assert (drawing.width if across else drawing.height) < 0.8 * length, "it goes on in another band"
        assert crossed(drawing, across) == []


def straight_parts(points):
    """Each straight part of a way: whether it is upright, where it stands, and from where to where it goes."""
    for (x, y), (to_x, to_y) in pairwise(points):
        if x == to_x and y != to_y:
            yield True, x, *sorted((y, to_y))
        elif y == to_y and x != to_x:
            yield False, y, *sorted((x, to_x))


@pytest.mark.parametrize("across", [True, False], ids=["rows", "columns"])
def test_what_turns_round_in_the_forward_pass_runs_apart_from_what_does_in_the_backward_pass(across):
    for seed in range(8):
        picture = a_step(seed)
        sizes = {box.name: (WIDTH, HEIGHT) for box in picture.boxes}
        whole = draw(picture, sizes, Manner(across=across, lanes=True))
        limit = (whole.width if across else whole.height) / 2.5
        drawing = draw(picture, sizes, Manner(across=across, lanes=True, limit=limit))
        ways = [
            {part for edge, points in drawing.edges.items() if edge[0][0] == lane for part in straight_parts(points)}
            for lane in "ad"
        ]
        together = [
            (one, other)
            for one in ways[0]
            for other in ways[1]
            if one[0] == other[0] and abs(one[1] - other[1]) < 3 and min(one[3], other[3]) - max(one[2], other[2]) > 1
        ]
        assert together == []


@pytest.mark.parametrize("across", [True, False], ids=["rows", "columns"])
def test_what_turns_round_to_another_band_runs_apart_from_what_comes_from_another_box(across):
    for seed in range(8):
        picture = a_step(seed)
        sizes = {box.name: (WIDTH, HEIGHT) for box in picture.boxes}
        whole = draw(picture, sizes, Manner(across=across))
        drawing = draw(picture, sizes, Manner(across=across, limit=(whole.width if across else whole.height) / 2.5))
        parts = [(edge[0], part) for edge, points in drawing.edges.items() for part in straight_parts(points)]
        together = [
            (one, other)
            for (source, one), (another, other) in combinations(parts, 2)
            if source != another
            and one[0] == other[0]
            and abs(one[1] - other[1]) < 0.5
            and min(one[3], other[3]) - max(one[2], other[2]) > 10  # shorter ones lead into the same box
        ]
        assert together == []
