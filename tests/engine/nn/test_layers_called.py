"""How layers are made and called: settings by name, first calls that fail, `training`, sequences of layers."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll

FOUND = "sizes of the inputs are not given, the first call finds them"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: ll.nn.LayerNorm(3),
            r"^LayerNorm takes no positional arguments, only settings by name: epsilon, .*Got",
        ),
        (lambda: ll.nn.GroupNorm(2, 4), r"^GroupNorm takes 1 positional argument, groups; .*" + FOUND),
        (lambda: ll.nn.BatchNorm(8), r"^BatchNorm takes no positional .*momentum, .*Got BatchNorm\(8\): " + FOUND),
        (lambda: ll.nn.Conv(3, 16, 3), r"^Conv takes 2 positional arguments, filters and window; .*" + FOUND),
        (lambda: ll.nn.ConvTranspose(3, 16, 3), r"^ConvTranspose takes 2 positional"),
        (
            lambda: ll.nn.LSTM(8, 32),
            r"^LSTM takes 1 positional argument, units; by name also return_sequences, .*" + FOUND,
        ),
        (lambda: ll.nn.GRUCell(8, 32), r"^GRUCell takes 1 positional argument, units; by name also dtype"),
        (lambda: ll.nn.MultiHeadAttention(32, 4), r"^MultiHeadAttention takes 1 positional argument, heads; .*depth"),
        (lambda: ll.nn.Embedding(3, 4, 5), r"^Embedding takes 2 positional arguments, count and units"),
        (lambda: ll.nn.Dropout(0.5, True), r"^Dropout takes 1 positional argument, rate\. Got"),
        (lambda: ll.nn.MaxPool(2, 2, 1), r"^MaxPool takes 2 positional arguments, window and stride"),
        (lambda: ll.nn.Conv(8, 3, strides=2), r"^Conv has no setting 'strides'; did you mean 'stride'\? Conv takes"),
        (ll.nn.Dense, r"^Dense needs units; Dense takes"),
        (lambda: ll.nn.Dense(2, units=3), r"^Dense: units was given twice"),
    ],
)
def test_calls_that_do_not_fit_a_layer_say_what_it_takes(make, said):
    with pytest.raises(ll.errors.CallError, match=said) as caught:
        make()
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ll.nn.Dense(3, 4), "Dense: activation must be a function .*sizes of inputs are not given"),
        (lambda: ll.nn.Dense(2, use_bias=3), "Dense: use_bias must be True or False, got 3"),
        (lambda: ll.nn.LSTM(2, return_sequences=32), "LSTM: return_sequences must be True or False, got 32"),
        (lambda: ll.nn.GroupNorm(2, use_scale=None), "GroupNorm: use_scale must be True or False, got None"),
        (lambda: ll.nn.Conv(2, 3, stride=0), "Conv: stride must be a positive int, got 0"),
        (lambda: ll.nn.Conv(2, "33"), "Conv: window must be a positive int, or one for each spatial axis; got '33'"),
        (lambda: ll.nn.AvgPool(2.5), "AvgPool: window must be a positive int, got 2.5"),
        (lambda: ll.nn.LayerNorm(epsilon=-1.0), "LayerNorm: epsilon must be a number of at least 0, got -1.0"),
        (lambda: ll.nn.Dropout("0.5"), "Dropout: rate must be a number of at least 0, got '0.5'"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(make, said):
    with pytest.raises(ll.errors.ArgumentError, match=said):
        make()


def test_a_layer_of_ones_own_gets_the_same_words_for_its_own_constructor():
    class Scaled(ll.nn.Dense):
        def __init__(self, units, *, by=1.0):
            super().__init__(units, extent=by)

    with pytest.raises(ll.errors.CallError, match=r"^Scaled has no setting 'bye'; did you mean 'by'\?"):
        Scaled(2, bye=1.0)
    with pytest.raises(ll.errors.CallError, match=r"^Dense has no setting 'extent'"):
        Scaled(2)


def test_an_error_within_a_constructor_stays_what_it_is():
    class Wrong(ll.nn.Layer):
        def __init__(self, units):
            self.units = units + "1"

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        Wrong(1)
    assert not isinstance(caught.value, ll.errors.LimelightError)


def test_an_array_is_no_activation():
    with pytest.raises(ll.errors.ArgumentError, match="activation must be a function"):
        ll.nn.Dense(3, activation=np.ones(2))


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "sigmoid", "softmax"])
def test_activations_may_be_named(name):
    function = getattr(ll.nn, name, None) or getattr(ll, name)
    x = ll.constant([[1.0, -2.0, 3.0]])
    layer = ll.nn.Dense(3, activation=name, kernel_initializer="orthogonal")
    assert (layer(x) == function(x @ layer.kernel + layer.bias)).numpy().all()
    assert repr(layer).startswith(f"Dense(3, activation={name}")


FIRST = {
    "Dense": (lambda: ll.nn.Dense(2), (4, 3), (4, 8)),
    "Conv": (lambda: ll.nn.Conv(2, 3, padding="valid"), (1, 2, 2, 3), (1, 4, 4, 8)),
    "LSTM": (lambda: ll.nn.LSTM(2), (1, 4, 3), (1, 4, 8)),
    "GRUCell": (lambda: ll.nn.GRUCell(2), (4, 3), (4, 8)),
    "BatchNorm": (ll.nn.BatchNorm, (4, 3), (4, 8)),
    "GroupNorm": (lambda: ll.nn.GroupNorm(1), (4, 3), (4, 8)),
    "MultiHeadAttention": (lambda: ll.nn.MultiHeadAttention(1), (1, 4, 3), (1, 4, 8)),
    "Sequential": (lambda: ll.nn.Sequential(ll.nn.Dense(2), ll.nn.LSTM(4)), (4, 3), None),
    "a sequence in a sequence": (lambda: ll.nn.Sequential(ll.nn.Sequential(ll.nn.LayerNorm())), (4, 3), (4, 8)),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("name", FIRST)
def test_a_first_call_that_fails_leaves_the_layer_unbuilt(name, staged):
    make, wrong, right = FIRST[name]
    layer = make()
    call = ll.function(layer) if staged else layer
    with pytest.raises(ll.errors.LimelightError):
        call(ll.ones(wrong, dtype="int32" if right else "float32"))
    assert layer.variables == []
    if right:
        layer(ll.ones(right))
        assert layer.variables


def test_a_later_call_that_fails_keeps_the_weights():
    layer = ll.nn.Sequential(ll.nn.Dense(2))
    layer(ll.ones((4, 3)))
    kernel = layer.layers[0].kernel
    for wrong in (ll.ones((4, 8)), ll.ones((4, 3), dtype="int32")):
        with pytest.raises(ll.errors.LimelightError):
            layer(wrong)
    assert layer.layers[0].kernel is kernel


TRAINED = {
    "LSTM": (lambda: ll.nn.LSTM(4), (2, 3, 5)),
    "GRUCell": (lambda: ll.nn.GRUCell(4), (2, 5)),
    "Dense": (lambda: ll.nn.Dense(4), (2, 5)),
    "Flatten": (ll.nn.Flatten, (2, 5)),
    "MaxPool": (lambda: ll.nn.MaxPool((1,)), (2, 3, 5)),
    "LayerNorm": (ll.nn.LayerNorm, (2, 5)),
    "Conv": (lambda: ll.nn.Conv(4, (1,)), (2, 3, 5)),
    "MultiHeadAttention": (lambda: ll.nn.MultiHeadAttention(1), (2, 3, 5)),
}


@pytest.mark.parametrize("name", TRAINED)
def test_every_layer_may_be_told_that_it_is_trained(name):
    make, shape = TRAINED[name]
    layer, x = make(), ll.ones(shape)
    assert (layer(x, training=True) == layer(x, training=False)).numpy().all()
    with pytest.raises(TypeError, match="unexpected keyword"):
        layer(x, trainig=True)


def test_embedding_may_be_told_that_it_is_trained():
    assert ll.nn.Embedding(3, 2)(ll.constant([1]), training=True).shape == (1, 2)


def test_a_sequence_is_one_of_python():
    layers = [ll.nn.Dense(2), ll.tanh, ll.nn.Dropout(0.5)]
    model = ll.nn.Sequential(layers)
    assert len(model) == 3
    assert list(model) == layers
    assert model[0] is layers[0]
    assert model[-1] is layers[2]
    first = model[:2]
    assert isinstance(first, ll.nn.Sequential)
    assert (first(ll.ones((1, 3))) == model(ll.ones((1, 3)))).numpy().all()
    assert bool(ll.nn.Sequential())
    with pytest.raises(IndexError, match="there is no layer 3; it has 3"):
        model[3]
    with pytest.raises(ll.errors.ArgumentError, match="layers are numbered, got 'x'"):
        model["x"]


def test_padding_may_be_written_in_capitals():
    x = ll.ones((1, 5, 5, 2))
    assert ll.nn.Conv(3, 3, padding="SAME")(x).shape == (1, 5, 5, 3)
    assert ll.nn.Conv(3, 3, padding="Valid")(x).shape == (1, 3, 3, 3)
    assert ll.nn.max_pool(x, 2, padding="VALID").shape == (1, 2, 2, 2)
    assert ll.function(ll.nn.AvgPool(2, padding="SAME"))(x).shape == (1, 3, 3, 2)


def test_an_index_below_zero_is_no_row_of_a_table():
    layer = ll.nn.Embedding(5, 2)
    for call in (layer, ll.function(layer)):
        with pytest.raises(
            ll.errors.OutOfBoundsError, match=r"index -1 is below 0; the table has rows 0 to 4 \(size 5\)"
        ):
            call(ll.constant([0, -1]))
        with pytest.raises(ll.errors.OutOfBoundsError, match=r"there is no row 5; the table has rows 0 to 4"):
            call(ll.constant([0, 5]))
    assert layer(ll.constant([[]], dtype="int32")).shape == (1, 0, 2)
    assert ll.one_hot(ll.constant([3, -1]), 3).tolist() == [[0.0] * 3] * 2


def test_layers_that_know_their_model_are_restored_too():
    layer = ll.nn.Dense(2)
    model = ll.nn.Sequential(layer, ll.nn.LSTM(3))
    layer.model = model
    with pytest.raises(ll.errors.ShapeError):
        model(ll.ones((4, 3)))
    assert model.variables == []
    assert layer.model is model
    assert model(ll.ones((4, 5, 7))).shape == (4, 3)


class OwnCall(ll.nn.Sequential):
    def __call__(self, x, training=True):
        return super().__call__(x, training=training)


class Doubled(ll.nn.Dense):
    def __call__(self, x):
        return super().__call__(x) * 2


class Proxy:
    """Stands before a module, which answers for all that it does not do itself."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.__dict__["inner"], name)

    def __call__(self, x, more):
        return self.inner(x) + more


def test_staged_callables_keep_the_parameters_of_their_own_call():
    x = ll.ones((1000,))
    layer = OwnCall([ll.nn.Dropout(0.5)])
    assert 300 < (ll.function(layer)(x) == 0).numpy().sum() < 700
    assert ll.function(layer)(x, training=False).tolist() == x.tolist()
    doubled, proxy = Doubled(2), Proxy(ll.nn.Dense(2))
    for call, args in [(doubled, (ll.ones((1, 3)),)), (proxy, (ll.ones((1, 3)), 1.0))]:
        assert ll.function(call)(*args)[0].tolist() == pytest.approx(call(*args)[0].tolist())


def test_modules_and_branches_take_and_return_any_python_data_eagerly():
    class Reads(ll.Module):
        def call(self, tree):
            return tree["v"]

    tree = {"v": 1, "kids": []}
    tree["kids"].append({"parent": tree})
    assert Reads()(tree) == 1
    rows = [ll.ones(2)]
    rows.append(rows)
    assert ll.cond(True, lambda: rows, lambda: rows) is rows
