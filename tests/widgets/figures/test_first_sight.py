"""What a graph shows at first where there is little room."""

from __future__ import annotations

import random

import pytest

import limelight as ll
from limelight import nn
from limelight_widgets.figures import first_sight as of_first_sight
from limelight_widgets.figures.first_sight import first_sight
from limelight_widgets.figures.layered_layout import Ranked
from limelight_widgets.folds.graph import GraphFold

TITLE = 12  # pixels of a title's type at scale 1
FOLLOWED = 150  # edges of a picture, at most


class Deep(nn.Module):
    """Unlike layers in a row."""

    def __init__(self):
        self.embed, self.mix, self.head = nn.Dense(8), nn.Dense(8, activation="tanh"), nn.Dense(3)
        self.norm, self.out = nn.LayerNorm(), nn.Dense(2)

    def call(self, x):
        return self.out(ll.sin(self.head(self.norm(ll.exp(self.mix(ll.cos(self.embed(x))))))))


def trained(penalties=0):
    """What is described of a training step; with penalties its loss has a longer gradient than its model."""
    deep, adam, x = Deep(), ll.optim.Adam(1e-3), ll.ones((2, 4))
    deep(x)

    @ll.function
    def step(x, y):
        with ll.GradientTape() as tape:
            scores = deep(x)
            loss = ll.mean(nn.softmax_cross_entropy(scores, y))
            for k in range(1, penalties + 1):
                loss = loss + ll.mean(ll.sin(scores * float(k)) * ll.exp(scores / float(k)))
        adam.apply(tape.gradient(loss, deep.trainable_variables), deep.trainable_variables)
        return loss

    step(x, ll.zeros((2,), dtype="int32"))
    return GraphFold(step).state()


class Attending(nn.Module):
    """Three layers of one form, whose names say what each is for."""

    def __init__(self):
        self.query, self.key, self.value = nn.Dense(8), nn.Dense(8), nn.Dense(8)
        self.out = nn.Dense(2)

    def call(self, x):
        query, key, value = self.query(x), self.key(x), self.value(x)
        return self.out(nn.softmax(query @ ll.transpose(key)) @ value)


@pytest.fixture(scope="module")
def state():
    return trained()


def seen(state, room):
    sight = first_sight(state, 1, room)
    labels = [state["graphs"][1]["groups"][box.index]["label"] for box in sight.picture.boxes if box.kind == "group"]
    return sight, labels


def test_the_model_opens_where_its_gradient_has_no_room(state):
    sight, labels = seen(state, (840.0, 460.0))
    assert sight.scale == 1
    assert {"embed", "mix", "norm", "out"} <= set(labels)
    assert "deep" in labels  # its gradient


def test_titles_can_be_read_where_nothing_else_has_room(state):
    sight, _ = seen(state, (448.0, 222.0))
    assert sight.manner.terse
    assert sight.scale * TITLE >= 11  # pixels
    assert {word.detail for word in sight.words.values()} == {""}
    wide, _ = seen(state, (1400.0, 700.0))
    assert not wide.manner.terse


def test_titles_of_layers_say_more_than_shapes_of_what_is_around_them(state):
    sight, labels = seen(state, (600.0, 360.0))
    assert sight.manner.terse
    assert sight.scale == 1
    assert {"embed", "mix", "norm", "head", "out"} <= set(labels)


def test_gradients_of_what_has_no_frame_have_none_beside_a_larger_gradient():
    sight, labels = seen(trained(penalties=9), (1400.0, 900.0))
    assert "deep" not in {*labels, *[frame.label for frame in sight.picture.frames]}
    assert labels.count("embed") == 2  # the layer and its gradient


def test_gradients_of_what_has_no_frame_have_none(state):
    sight, _ = seen(state, (1400.0, 900.0))
    assert "deep" not in [frame.label for frame in sight.picture.frames]
    lanes = {box.lane for box in sight.picture.boxes if box.path and box.kind == "group"}
    assert lanes >= {"forward", "backward"}


def test_few_members_of_a_repeat_that_have_names_are_all_shown_where_they_have_room():
    net, x = Attending(), ll.ones((4, 8))
    net(x)
    step = ll.function(lambda x: net(x * 1.0) + 1.0)
    step(x)
    described = GraphFold(step).state()
    sight, labels = seen(described, (840.0, 460.0))
    assert sight.scale == 1
    assert not any("×" in label for label in labels)
    framed = [frame.label for frame in sight.picture.frames]
    assert {"query", "key", "value"} <= {*labels, *framed}  # not the two ops of each alone
    told = " ".join(word.tags for word in sight.words.values())
    assert all(f"{name}.kernel" in told for name in ("query", "key", "value"))
    _, labels = seen(described, (448.0, 222.0))
    assert "query, key, value ×3" in labels


def test_where_each_op_has_a_box_no_box_is_cut_off():
    """Lanes leave out what goes from one to another, which only groups make up for, by the bytes that they keep."""

    @ll.function
    def step(w, x, y):
        loss, grad = ll.value_and_grad(lambda w: ll.mean((x @ w - y) ** 2))(w)
        return w - 0.1 * grad, loss

    step(ll.zeros((2, 1)), ll.ones((4, 2)), ll.ones((4, 1)))
    view = ll.widgets.graph(step)
    sight, _ = seen(view.state(), (860.0, 640.0))
    assert not sight.folded
    assert any(box.lane == "backward" for box in sight.picture.boxes)
    assert view.static().svg.count("<polygon") == len(sight.picture.edges)
    assert {"∇ matrix_transpose", "matmul"} <= {word.title for word in sight.words.values()}


def test_variables_are_told_on_the_ops_that_read_them_where_each_op_has_a_box_too():
    net, x = nn.Sequential(nn.Dense(8, activation="tanh"), nn.Dense(3)), ll.ones((2, 4))
    net(x)
    step = ll.function(lambda x: ll.mean(net(x)))
    step(x)
    sight, _ = seen(ll.widgets.graph(step).state(), (900.0, 900.0))
    assert not sight.folded
    assert [box.name for box in sight.picture.boxes if box.kind == "input"] == ["i0"]
    tags = [word.tags for word in sight.words.values() if word.tags]
    assert tags == [f"▣ layers.{layer}.{part}" for layer in (0, 1) for part in ("kernel", "bias")]


def test_what_nobody_can_follow_is_not_laid_out(monkeypatch):
    """To lay out many edges among few boxes takes longer than all else that is done for a picture."""
    lots = random.Random(7)
    picks = [(lots.choice([ll.add, ll.multiply, ll.maximum]), lots.random(), lots.randint(1, 2)) for _ in range(900)]

    @ll.function
    def tangle(x, y):
        values = [x, y]
        for op, far, near in picks:
            values.append(op(values[int(len(values) * far)], values[-near]))
        return values[-1]

    tangle(ll.ones((2,)), ll.ones((2,)))
    state = GraphFold(tangle).state()
    drawn = []
    draw = of_first_sight.draw_within

    def tell(picture, *given):
        drawn.append(picture)
        return draw(picture, *given)

    monkeypatch.setattr(of_first_sight, "draw_within", tell)
    sight = first_sight(state, 0, (860.0, 640.0))
    assert drawn
    assert max(len(picture.edges) for picture in drawn) <= FOLLOWED
    assert sight.scale == 1


def test_what_has_no_room_is_mostly_known_before_it_is_laid_out(state, monkeypatch):
    ordered, refused = [], []
    draw, order = of_first_sight.draw_within, Ranked.order

    def tell(picture, *given):
        before = len(ordered)
        drawing = draw(picture, *given)
        if drawing is None:
            refused.append((len(picture.boxes), sum(ordered[before:])))
        return drawing

    monkeypatch.setattr(of_first_sight, "draw_within", tell)
    monkeypatch.setattr(Ranked, "order", lambda self: ordered.append(self.boxes) or order(self))
    for room in ((840.0, 460.0), (448.0, 222.0), (600.0, 360.0)):
        first_sight(state, 1, room)
    assert len(refused) > 10
    boxes, placed = (sum(column) for column in zip(*refused, strict=True))
    assert placed < boxes / 3


def test_of_the_rounds_of_a_descent_that_is_differentiated_one_is_drawn():
    w, adam = ll.Variable(ll.ones((2, 3))), ll.optim.Adam(1e-3)

    def error(w, x):
        return ll.mean(ll.tanh(x @ w) ** 2)

    @ll.function
    def step(x):
        total = 0.0
        with ll.GradientTape() as outer:
            for i in range(4):
                u = w.read_value()
                with ll.GradientTape() as inner:
                    inner.watch(u)
                    loss = error(u, x[i])
                g = inner.gradient(loss, u)
                total = total + error(u - 0.1 * g, x[i])
        adam.apply(outer.gradient(total, [w]), [w])
        return total

    step(ll.ones((4, 5, 2)))
    state = GraphFold(step).state()
    for room in ((840.0, 460.0), (1090.0, 520.0), (1400.0, 900.0)):
        _, labels = seen(state, room)
        assert "error + ∇ g + error ×4" in labels
        assert not [label for label in labels if " of " in label]
