"""What the user calls captured tensors, parts of a result, and the members of a repeat."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight import nn
from limelight_widgets.folds.graph import GraphFold

matrix = ll.constant([[1.0, 0.5], [0.0, 1.0]])


def described(function):
    fold = GraphFold(function)
    fold.describe_all()
    return fold.state()["graphs"]


def names(function):
    return [given["name"] for given in described(function)[0]["inputs"]]


def test_captured_tensors_bear_the_names_of_the_variables_that_hold_them():
    offset = ll.constant([1.0, 2.0])

    @ll.function
    def step(x):
        return x @ matrix + offset

    step(ll.ones((3, 2)))
    assert sorted(names(step)) == ["matrix", "offset", "x"]


def test_a_method_calls_them_by_its_attributes():
    class Filter:
        def __init__(self):
            self.gain = ll.constant([1.0, 2.0])
            self.run = ll.function(self.once)

        def once(self, x):
            return x * self.gain

    smooth = Filter()
    smooth.run(ll.ones((3, 2)))
    assert names(smooth.run) == ["x", "gain"]


def test_a_body_calls_them_as_the_graph_around_it_does():
    @ll.function
    def total(xs):
        return ll.scan(lambda s, x: (s + ll.sum(x @ matrix), s), 0.0, xs)

    total(ll.ones((3, 2, 2)))
    graphs = described(total)
    assert [any(given["name"] == "matrix" for given in graph["inputs"]) for graph in graphs] == [True] * len(graphs)


def test_parts_of_a_result_are_called_by_their_keys():
    @ll.function
    def metrics(x):
        return {"loss": ll.sum(x), "parts": (ll.max(x), ll.min(x))}

    pair = ll.function(lambda x: (ll.sum(x), ll.max(x)))
    one = ll.function(ll.tanh)
    for function in (metrics, pair, one):
        function(ll.ones((3,)))
    assert described(metrics)[0]["output_names"] == ["loss", "parts[0]", "parts[1]"]
    assert "output_names" not in described(pair)[0]
    assert "output_names" not in described(one)[0]


KEYS = ['a"]b', "it's", """'] and \"]""", "back\\slash", "é", "']", "a b", "it's \\'"]


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_as_the_user_gave_them(key):
    f = ll.function(lambda x: {key: (x * 2.0, x + 1.0)})
    f(ll.ones((3,)))
    assert described(f)[0]["output_names"] == [f"{key}[0]", f"{key}[1]"]


def test_keys_stay_on_one_line():
    f = ll.function(lambda x: {"a\nb": x * 2.0})
    f(ll.ones((3,)))
    assert described(f)[0]["output_names"] == [r"a\nb"]


class Coder(nn.Module):
    """Three heads of one form, and a loop that goes down and one that comes back up."""

    def __init__(self):
        self.down = [nn.Dense(width, activation="relu") for width in (8, 8, 8)]
        self.bottom = nn.Dense(8, activation="relu")
        self.up = [nn.Dense(width) for width in (8, 8, 8)]
        self.merge = [nn.Dense(width, activation="relu") for width in (8, 8, 8)]
        self.age, self.height, self.weight = nn.Dense(1), nn.Dense(1), nn.Dense(1)

    def call(self, x):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
            x = ll.sin(x)
        x = self.bottom(x)
        for up, merge, skip in zip(self.up, self.merge, reversed(kept), strict=True):
            x = merge(ll.concat([up(x), skip], axis=-1))
        return self.age(x), self.height(x), self.weight(x)


def test_repeats_bear_the_names_of_all_their_members():
    coder = Coder()
    coder(ll.ones((2, 8)))
    step = ll.function(lambda x: coder(x * 1.0))
    step(ll.ones((2, 8)))
    groups = described(step)[0]["groups"]
    told = {group["title"]: (group["repeat"]["count"], group.get("cls")) for group in groups if "repeat" in group}
    assert told == {
        "down.0–2": (3, "Dense"),
        "up.0–2 + merge.0–2": (3, "Dense"),
        "age, height, weight": (3, "Dense"),
    }


def test_gradients_of_a_repeat_are_one_though_they_differ():
    """The last round of a loop has no later one whose gradient it adds to its own."""
    coder, adam, x = Coder(), ll.optim.Adam(1e-3), ll.ones((2, 8))
    coder(x)

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            loss = ll.sum(ll.stack(coder(x)) ** 2)
        adam.apply(tape.gradient(loss, coder.trainable_variables), coder.trainable_variables)
        return loss

    step(x)
    for graph in described(step):
        told = {
            group["title"]: group["repeat"]
            for group in graph["groups"]
            if group["lane"] == "backward" and "repeat" in group
        }
        assert {title: one["count"] for title, one in told.items()} == dict.fromkeys(
            ["down.0–2", "merge.0–2 + up.0–2", "weight, height, age"], 3
        )
        parents = [group["parent"] for group in graph["groups"]]
        assert all(parents[member] == k for k, group in enumerate(graph["groups"])
                   for member in group.get("repeat", {}).get("members", ()))  # fmt: skip
