"""The lanes of a training step."""

from __future__ import annotations

import sys
from pathlib import Path

from limelight_widgets.figures.first_sight import first_sight
from limelight_widgets.folds.graph import GraphFold

sys.path.insert(0, str(Path(__file__).parents[1]))
import models  # in the folder above


def inside(strip, box):
    return (
        strip.x <= box.x
        and box.x + box.width <= strip.x + strip.width
        and (strip.y <= box.y and box.y + box.height <= strip.y + strip.height)
    )


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
