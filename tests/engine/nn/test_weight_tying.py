"""Weights that users set on layers: those given before the first call stay, and nothing is set in vain."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight.errors import ArgumentError, ShapeError


class Tied(ll.Module):
    def __init__(self):
        self.a, self.b = ll.nn.Dense(4), ll.nn.Dense(4)
        self.a.build(4)
        self.b.kernel = self.a.kernel

    def call(self, x):
        return self.b(self.a(x))


@pytest.mark.parametrize("way", [lambda f: f, ll.function], ids=["eagerly", "staged"])
def test_a_variable_that_an_unbuilt_layer_was_given_is_its_weight(way):
    model, x = Tied(), ll.ones((2, 4))
    with ll.GradientTape() as tape:
        loss = ll.sum(way(model.call)(x))
    assert model.b.kernel is model.a.kernel
    assert [name for name, _ in model.named_variables()] == ["a/kernel", "a/bias", "b/bias"]
    assert len(tape.gradient(loss, model)) == 3


def test_a_layer_that_was_given_a_weight_has_the_others_to_make():
    model = Tied()
    with pytest.raises(ArgumentError, match="has no weights yet"):
        _ = model.parameter_count
    assert "no weights yet" in str(model.summary())
    model(ll.ones((2, 4)))
    assert model.parameter_count == 4 * 4 + 2 * 4


def test_a_variable_of_another_shape_is_refused_and_the_transpose_explained():
    table, head = ll.nn.Embedding(10, 4).table, ll.nn.Dense(10)
    head.kernel = table
    with pytest.raises(ShapeError, match=r"'kernel' of shape \(10, 4\).*needs \(4, 10\).*x @ embedding\.table\.T"):
        head(ll.ones((1, 4)))
    assert head.kernel is table
    head.kernel = ll.Variable(ll.ones((2, 4)))
    with pytest.raises(ShapeError, match=r"needs \(4, 10\) of float32 \("):
        head(ll.ones((1, 4)))


def test_the_method_that_makes_weights_cannot_be_set():
    head, embedding = ll.nn.Dense(10), ll.nn.Embedding(10, 4)
    for value in (embedding.weight, embedding.table, None):
        with pytest.raises(AttributeError, match=r"variables are kernel and bias: write \.kernel = variable"):
            head.weight = value
    with pytest.raises(AttributeError, match=r"write \.table = variable"):
        embedding.weight = head.kernel


def test_the_unmade_weight_of_another_layer_is_no_weight():
    a, b = ll.nn.Dense(4), ll.nn.Dense(4)
    with pytest.raises(AttributeError, match=r"Dense\.kernel is None, and would be set to None.*build the layer"):
        b.kernel = a.kernel
    b.build(4)
    b.bias = None
    assert b(ll.zeros((1, 4))).shape == (1, 4)


def test_layers_of_users_may_have_weights_by_any_name_and_none():
    class Own(ll.nn.Layer):
        def __init__(self):
            self.cache = None
            self.cache = None

        def build(self, features):
            self.weight = ll.Variable(ll.ones((features,)))

        def call(self, x):
            return self.ready(x) * self.weight

    assert Own()(ll.ones((2, 3))).shape == (2, 3)


def test_settings_that_are_none_may_be_set_to_none_before_the_first_call():
    layer = ll.nn.Dense(2)
    layer.activation = None
    assert layer(ll.ones((1, 3))).shape == (1, 2)
