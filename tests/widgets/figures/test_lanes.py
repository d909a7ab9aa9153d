"""The lanes of a training step."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from limelight_widgets.figures.first_sight import first_sight
from limelight_widgets.figures.lanes import in_lanes, lanes_of, saved
from limelight_widgets.figures.nested_layout import Manner, draw
from limelight_widgets.figures.visible_boxes import Box, Frame, Picture
from limelight_widgets.folds.graph import GraphFold

sys.path.insert(0, str(Path(__file__).parents[1]))
import models  # in the folder above

ROUNDED = 1 + 1e-9  # sums of floats differ by their order


def inside(strip, box):
    return (
        strip.x <= box.x
        and box.x + box.width <= strip.x + strip.width
        and (strip.y <= box.y and box.y + box.height <= strip.y + strip.height)
    )


def test_the_update_stands_in_the_last_of_several_bands():
    sizes = [(60.0, 30.0)] * 8  # a chain of six, and an update of two
    edges = [(k, k + 1) for k in range(7)]
    lanes, updates = [0, 0, 0, 0, 0, 0, 2, 2], [False] * 6 + [True] * 2
    layout = in_lanes(sizes, edges, lanes, [-1] * 8, updates, [False] * 8, 200.0, across=False)
    strips = {lane: [strip for strip in layout.strips if strip.lane == lane] for lane in ("forward", "update")}
    assert len(strips["forward"]) > 1
    assert len(strips["update"]) == 1
    assert strips["update"][0].x > max(strip.x for strip in strips["forward"])


def test_an_update_in_the_lane_of_the_gradient_stands_in_the_last_of_several_bands():
    edges = [(k, k + 1) for k in range(8)]  # a chain of six, the gradient of the last, and an update of two
    lanes, updates = [0] * 6 + [1] * 3, [False] * 7 + [True] * 2
    partners = [-1] * 6 + [5, -1, -1]
    layout = in_lanes([(60.0, 30.0)] * 9, edges, lanes, partners, updates, [False] * 9, 200.0, across=False)
    bands = [strip.x for strip in layout.strips if strip.lane == "forward"]
    assert len(bands) > 1
    assert all(x > bands[-1] for x, _ in layout.centres[6:])


def test_an_update_in_the_lane_of_the_gradient_makes_it_no_longer():
    def height(lanes):
        edges = [(k, k + 1) for k in range(len(lanes) - 1)]
        updates, count = [k > 3 for k in range(len(lanes))], len(lanes)
        layout = in_lanes(
            [(60.0, 30.0)] * count, edges, lanes, [-1] * count, updates, [False] * count, 1e9, across=False
        )
        return layout.height

    assert height([0, 0, 1, 1, 1, 1]) == height([0, 0, 1, 1])


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("limit", [200.0, 1e9])
def test_lanes_that_are_larger_than_they_may_be_are_none_and_any_others_the_same(across, limit):
    edges = [(k, k + 1) for k in range(8)] + [(0, 4), (1, 7), (2, 8)]
    lanes, partners = [0, 0, 0, 0, 1, 1, 1, 2, 2], [-1, -1, -1, -1, 2, 1, 0, -1, -1]
    updates, losses = [lane == 2 for lane in lanes], [k == 3 for k in range(9)]
    given = [(60.0 + 5 * k, 30.0) for k in range(9)], edges, lanes, partners, updates, losses, limit
    layout = in_lanes(*given, across=across)
    room = (layout.width * ROUNDED, layout.height * ROUNDED)
    assert in_lanes(*given, room, across=across) == layout
    assert in_lanes(*given, (room[0] * 0.95, room[1]), across=across) is None
    assert in_lanes(*given, (room[0], room[1] * 0.95), across=across) is None


def test_the_loss_is_a_lane_between_forward_and_backward():
    state = GraphFold(models.conv_net()).state()
    sight = first_sight(state, state["variants"][1]["graph"], (860.0, 640.0))
    drawing, lanes = sight.drawing, {"forward": [], "loss": [], "backward": [], "update": []}
    for strip in drawing.strips:
        lanes[strip.lane].append(strip)
    assert all(lanes.values())
    placed = 0
    for box in sight.picture.boxes:
        lane = box.lane if not box.parent else ""
        if lane:
            placed += lane == "loss"
            assert any(inside(strip, drawing.boxes[box.name]) for strip in lanes[lane]), box
    assert placed >= 1
    for loss in lanes["loss"]:
        assert not any(inside(loss, drawing.boxes[box.name]) for box in sight.picture.boxes if box.lane == "forward")


def test_what_is_kept_of_a_box_is_each_value_once_though_several_gradients_read_it():
    for name in ("u_net", "gan"):  # whose results go into two layers each
        function = models.MODELS[name]()
        fold = GraphFold(function)
        fold.describe_all()
        state = fold.state()
        graph = state["variants"][1]["graph"]
        picture = first_sight(state, graph, (840.0, 460.0)).picture
        told = saved(picture, lanes_of(picture))
        groups = state["graphs"][graph]["groups"]
        of_groups = [(int(box[1:]), nbytes) for box, _, nbytes in told if box.startswith("g")]
        assert of_groups
        assert [nbytes for _, nbytes in of_groups] == [groups[index]["saved"] for index, _ in of_groups]


def test_nothing_lies_on_the_name_of_the_loss():
    sizes, edges = [(60.0, 30.0)] * 4, [(k, k + 1) for k in range(3)]
    for across in (False, True):
        layout = in_lanes(
            sizes, edges, [0, 0, 0, 1], [-1] * 4, [False] * 4, [False, False, True, False], 1e9, across=across
        )
        (strip,) = (strip for strip in layout.strips if strip.lane == "loss")
        first, before = (layout.centres[box][1] for box in (2, 1))
        assert before + 15 <= strip.y
        assert first - 15 - strip.y >= (14 if across else 17), "type of 11 pixels, on a line 13 below the edge"


def test_edges_that_lead_over_to_another_lane_take_no_room_beside_the_boxes_of_their_frames():
    lanes = ("forward", "backward")
    boxes = [Box(f"{lane}{k}", "node", 0, k, f"{lane} frame", lane=lane) for lane in lanes for k in range(30)]
    frames = [Frame(f"{lane} frame", lane, "", lane=lane) for lane in lanes]
    steps = [(f"forward{k - 1}", f"forward{k}") for k in range(1, 30)]
    steps += [(f"backward{k}", f"backward{k - 1}") for k in range(1, 30)]
    steps += [(f"forward{k}", f"backward{k}") for k in range(30)]
    picture = Picture(boxes, frames, dict.fromkeys(steps, 1))
    drawing = draw(picture, {box.name: (60.0, 30.0) for box in boxes}, Manner(lanes=True))
    assert all(drawing.frames[frame.name].width < 200 for frame in frames)


def test_the_name_of_a_lane_has_room_above_narrow_boxes():
    edges, lanes = [(0, 1), (1, 2), (2, 3)], [0, 0, 1, 1]
    drawn = in_lanes([(40.0, 30.0)] * 4, edges, lanes, [-1] * 4, [False] * 3 + [True], [False] * 4, 1e9, across=False)
    (backward,) = (strip for strip in drawn.strips if strip.lane == "backward")
    assert backward.title == "backward, update"
    assert backward.width >= 8 + len(backward.title) * 11 * 0.602, "type of 11 pixels, which begins at 8"
