"""The words on boxes of groups."""

from __future__ import annotations

from dataclasses import replace

import limelight as ll
from limelight_widgets.figures.box_text import words, words_in
from limelight_widgets.figures.nested_layout import Manner
from limelight_widgets.figures.visible_boxes import Box, Picture, visible
from limelight_widgets.folds.graph import GraphFold


class Coder(ll.Module):
    """Layers, a variable of its own, and a constant."""

    def __init__(self) -> None:
        self.encode, self.decode = ll.nn.Dense(8, activation="relu"), ll.nn.Dense(3)
        self.codebook = ll.Variable(ll.ones((8,)), name="codebook")

    def call(self, x):
        return self.decode(self.encode(x) * self.codebook + ll.constant([0.5] * 8))


def test_a_group_tells_the_variables_of_all_that_is_in_it_and_an_optimiser_its_rules():
    model, optimiser = Coder(), ll.optim.Momentum(0.1, 0.9)
    x = ll.ones((2, 3))
    model(x)

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            loss = ll.mean((model(x) - x) ** 2)
        variables = model.trainable_variables
        optimiser.apply(tape.gradient(loss, variables), variables)
        return loss

    state = GraphFold(step.get_concrete_function(x).graph).state()
    picture = visible(state, 0, lambda _name, _default: False, folded=True)
    said = {(box.lane, word.title): word.tags for box in picture.boxes
            for word in [words(state, box, picture.tags.get(box.name, ()))]}  # fmt: skip
    assert said["forward", "model"] == "▣ 5 variables"
    assert said["backward", "model"] == ""
    assert ("update", "Momentum: 5 variables, one rule") in said


def test_a_gradient_says_that_it_is_one_where_no_lane_does():
    box = Box("n1", "node", 0, 0, "", lane="backward")
    state = {
        "sources": [],
        "graphs": [{"nodes": [{"op": "matmul", "kind": "op", "out": ["f32[2,3]"], "names": ["%1"]}]}],
    }
    picture = Picture([box])
    assert words_in(state, picture, Manner())["n1"].title == "∇ matmul"
    assert words_in(state, picture, Manner(lanes=True))["n1"].title == "matmul"
    terse = words_in(state, picture, Manner(terse=True))["n1"]
    assert (terse.title, terse.detail, terse.size()[1]) == ("∇ matmul", "", 24.0)


def test_a_closed_gradient_that_no_line_leads_to_tells_what_is_kept_for_it():
    boxes = [
        Box("g0", "group", 0, 0, "", lane="forward", path="net.first"),
        Box("n2", "node", 0, 2, "", lane="loss"),
        Box("g1", "group", 0, 1, "", lane="backward", path="net"),
    ]
    groups = [
        {"label": "net.first", "kind": "module", "size": 2, "cls": "Dense"},
        {"label": "net", "kind": "module", "size": 9},
    ]
    nodes = [{"op": "exp", "kind": "op", "out": ["f32[3]"], "names": ["%1"]}] * 3
    state = {"sources": [], "graphs": [{"nodes": nodes, "groups": groups}]}
    picture = Picture(boxes, bytes={("g0", "g1"): 4000, ("n2", "g1"): 500, ("g0", "n2"): 70})
    for manner in (Manner(lanes=True), Manner()):
        assert words_in(state, picture, manner)["g1"].detail == "9 ops · 4.5 kB kept"
    beside = replace(picture, boxes=[replace(boxes[0], path="net"), *boxes[1:]])
    assert words_in(state, beside, Manner(lanes=True))["g1"].detail == "9 ops"
    assert words_in(state, beside, Manner())["g1"].detail == "9 ops · 4.5 kB kept"


def test_what_has_no_room_is_the_number_of_ops_not_the_line():
    group = {
        "kind": "module",
        "label": "moe",
        "cls": "MixtureOfExperts",
        "ops": 64,
        "size": 64,
        "at": [0, 20],
        "parent": -1,
    }
    state = {"sources": [], "graphs": [{"groups": [group]}]}
    assert words(state, Box("g0", "group", 0, 0, "")).detail == "MixtureOfExperts · line 20"


def test_the_name_of_the_only_variable_is_told_however_long_it_is():
    group = {"kind": "scope", "label": "s", "ops": 2, "size": 2, "parent": -1}
    state = {"sources": [], "graphs": [{"groups": [group]}]}
    tag = "the_positional_embedding_of_the_decoder f32[3]"
    assert words(state, Box("g0", "group", 0, 0, ""), [tag]).tags == "▣ the_positional_embedding_…"


def test_a_repeat_of_modules_tells_their_class():
    group = {
        "kind": "repeat",
        "label": "blocks.0–3 ×4",
        "cls": "Block",
        "ops": 20,
        "size": 20,
        "at": [0, 3],
        "parent": -1,
    }
    state = {"sources": [], "graphs": [{"groups": [group]}]}
    assert words(state, Box("g0", "group", 0, 0, "", lane="forward")).detail == "Block · line 3"
    assert words(state, Box("g0", "group", 0, 0, "", lane="backward")).detail == "20 ops"


def test_the_state_of_random_numbers_is_not_taken_for_a_model_that_is_a_generator():
    given = [
        {"name": "generator", "spec": "generator", "captured": True},
        {"name": "generator", "spec": "f32[2]", "captured": True},
    ]
    state = {"sources": [], "graphs": [{"inputs": given, "nodes": [], "groups": []}]}
    assert [words(state, Box(f"i{k}", "input", 0, k, "")).detail for k in (0, 1)] == ["random state", "captured f32[2]"]
