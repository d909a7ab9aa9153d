"""What optimisers refuse to be told."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll


@pytest.mark.parametrize(
    ("name", "meant"),
    [("lr", "learning_rate"), ("learning_rte", "learning_rate"), ("eps", "epsilon"), ("beta_1", "beta1")],
)
def test_settings_that_would_do_nothing_are_refused(name, meant):
    optimizer = ll.optim.Adam(0.1)
    with pytest.raises(
        ll.errors.ArgumentError, match=f"Adam has no setting '{name}', .*did you mean '{meant}'.*It has"
    ):
        setattr(optimizer, name, 0.5)
    assert not hasattr(optimizer, name)


def test_other_attributes_and_settings_of_ones_own_are_free():
    class Mine(ll.optim.Adam):
        def __init__(self, rate, eps=0.5):
            super().__init__(rate)
            self.rate, self.eps = rate, eps
            self.history = []

    mine = Mine(0.1)
    mine.note, mine.learning_rate, mine.beta1 = "first", 0.5, 0.8
    assert mine.learning_rate.numpy() == 0.5
    assert (mine.eps, mine.note, mine.beta1) == (0.5, "first", 0.8)


def test_a_rate_in_quotes_is_no_number():
    for value in ("0.1", [0.1]):
        with pytest.raises(ll.errors.ArgumentError, match="learning_rate: the rate must be a number, got"):
            ll.optim.Adam(value)


@pytest.mark.parametrize("value", ["a", 1, None, 0.9])
def test_a_flag_is_true_or_false(value):
    with pytest.raises(ll.errors.ArgumentError, match="Momentum: nesterov must be True or False, got"):
        ll.optim.Momentum(nesterov=value)


@pytest.mark.parametrize("value", [True, np.array([0.1, 0.2]), ll.constant([0.1]), "0.1", None])
def test_a_number_is_one_number(value):
    for make in (ll.optim.SGD, lambda v: ll.optim.Adam(beta1=v), lambda v: ll.optim.Adam(epsilon=v)):
        with pytest.raises(ll.errors.ArgumentError, match="must be a number, got"):
            make(value)


@pytest.mark.parametrize(
    ("optimizer", "name", "instead"),
    [
        (ll.optim.Adam(0.1), "weight_decay", "AdamW"),
        (ll.optim.SGD(0.1), "weight_decay", "AdamW"),
        (ll.optim.SGD(0.1), "momentum", "Momentum"),
    ],
)
def test_a_setting_of_another_optimiser_is_refused_as_its_constructor_does(optimizer, name, instead):
    with pytest.raises(ll.errors.ArgumentError, match=rf"has no setting '{name}'.*write ll\.optim\.{instead}"):
        setattr(optimizer, name, 0.5)
    assert not hasattr(optimizer, name)
