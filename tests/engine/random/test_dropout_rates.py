"""A rate of dropout that is a tensor: the draws are those of the number, and its gradient is that of the scale."""

import pytest

import limelight as ll
from limelight.errors import ArgumentError, DTypeError

x = ll.constant([1.0, 2.0, 3.0, 4.0, 5.0], dtype="float64")


def kept(rate):
    ll.random.seed(3)
    return ll.nn.dropout(x, rate)


@pytest.mark.parametrize("run", [lambda f: f, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize("make", [ll.constant, ll.Variable])
def test_the_scale_has_a_gradient(make, run):
    rate = make(0.25)
    with ll.GradientTape() as tape:
        tape.watch(rate)
        drawn = run(kept)(rate)
    assert drawn.numpy() == pytest.approx(kept(0.25).numpy())
    assert tape.gradient(drawn, rate).item() == pytest.approx(ll.sum(drawn).item() / 0.75)
    assert ll.jvp(kept, (ll.constant(0.25),), (ll.constant(1.0),))[1].numpy() == pytest.approx(drawn.numpy() / 0.75)


def test_each_example_may_have_its_own():
    rows = ll.vectorize(ll.nn.dropout, in_axes=(None, 0))(ll.ones(400), ll.constant([0.0, 0.5, 0.9]))
    assert [sorted(set(row)) for row in rows.numpy().round(2).tolist()] == [[1.0], [0.0, 2.0], [0.0, 10.0]]


def test_a_layer_takes_a_variable_also_when_it_is_staged():
    layer = ll.nn.Dropout(ll.Variable(0.5))
    drawn = ll.function(lambda x: layer(x, training=True))(ll.ones(100))
    assert set(drawn.tolist()) == {0.0, 2.0}


def test_what_is_no_rate():
    with pytest.raises(ArgumentError, match=r"dropout: the rate must be at least 0 and less than 1, got 1.0"):
        ll.nn.dropout(x, ll.constant(1.0))
    with pytest.raises(DTypeError, match=r"one number as the rate; got f64\[5\] and f32\[1\]"):
        ll.nn.dropout(x, ll.constant([0.5]))
    with pytest.raises(DTypeError, match=r"needs a floating operand, .* got i32\[1\]"):
        ll.nn.dropout(ll.constant([1]), ll.constant(0.5))
