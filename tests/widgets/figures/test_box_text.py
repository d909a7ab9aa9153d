"""The words on boxes of groups."""

from __future__ import annotations

import limelight as ll
from limelight_widgets.figures.box_text import words
from limelight_widgets.figures.visible_boxes import visible
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
