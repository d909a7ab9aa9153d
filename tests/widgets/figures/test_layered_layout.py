"""Drawings in layers."""

from __future__ import annotations

import itertools
import random
from math import inf

import pytest

from limelight_widgets.figures.layered_layout import Ranked, layered, ranks_of

ROUNDED = 1 + 1e-9  # sums of floats differ by their order


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


@pytest.mark.parametrize("seed", range(20))
def test_a_layout_that_is_larger_than_it_may_be_is_none_and_any_other_is_the_same(seed):
    sizes, edges = random_graph(seed)
    limit = (inf, 900.0, 300.0)[seed % 3]
    layout = layered(sizes, edges, [3], [0], limit)
    room = (layout.width * ROUNDED, layout.height * ROUNDED)
    assert layered(sizes, edges, [3], [0], limit, room) == layout
    for less in (0.9, 0.5, 0.1):
        assert layered(sizes, edges, [3], [0], limit, (room[0] * less, room[1])) is None
        assert layered(sizes, edges, [3], [0], limit, (room[0], room[1] * less)) is None
    width, height = Ranked(sizes, edges, ranks_of(len(sizes), edges), [3], [0]).least(limit)
    assert 0.2 * layout.width < width <= layout.width + 1e-9  # known before anything has a place
    assert height == pytest.approx(layout.height)


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


@pytest.mark.slow  # draws thousands of boxes
def test_a_deep_chain_needs_no_recursion_and_linear_time():
    count = 30_000
    layout = layered([(30, 20)] * count, [(i, i + 1) for i in range(count - 1)])
    assert len(layout.centres) == count
