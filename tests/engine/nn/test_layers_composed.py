"""`Lambda`, `Reshape`, `LeakyReLU`, and sequences that grow."""

from __future__ import annotations

import pytest

import limelight as ll


def test_lambda_is_its_function_also_of_several_inputs_and_of_training():
    assert ll.nn.Lambda(lambda x: 2 * x)(ll.constant(3.0)).item() == 6.0
    assert ll.nn.Lambda(ll.add)(ll.constant(3.0), ll.constant(4.0)).item() == 7.0
    noisy = ll.nn.Sequential(ll.nn.Lambda(lambda x, training=False: -x if training else x))
    assert noisy(ll.constant(1.0), training=True).item() == -1.0
    assert noisy(ll.constant(1.0)).item() == 1.0
    assert ll.nn.Lambda(ll.tanh)(ll.constant(0.0), training=True).item() == 0.0
    assert repr(ll.nn.Lambda(ll.nn.relu)) == "Lambda(relu)"
    with pytest.raises(ll.errors.ArgumentError, match="Lambda: function must be a function, got 3"):
        ll.nn.Lambda(3)


def test_the_function_of_a_lambda_is_converted_with_the_code_around_it():
    def positive(x):
        if ll.sum(x) < 0:
            x = -x
        return x

    model = ll.nn.Sequential(ll.nn.Lambda(positive))
    assert ll.function(model, autograph=True)(ll.constant([-3.0, 1.0])).tolist() == [3.0, -1.0]


@pytest.mark.parametrize(
    ("shape", "given", "result"),
    [
        ((4, 3), (5, 12), (5, 4, 3)),
        ((-1, 3), (5, 2, 6), (5, 4, 3)),
        ((12,), (0, 3, 4), (0, 12)),
        (-1, (2, 3, 4), (2, 12)),
        ((), (5, 1), (5,)),
    ],
)
def test_reshape_keeps_examples_apart(shape, given, result):
    layer = ll.nn.Reshape(shape)
    assert layer(ll.ones(given)).shape == result
    staged = ll.function(layer, input_signature=[ll.TensorSpec((None, *given[1:]))])
    assert staged(ll.ones(given)).shape == result
    assert staged.trace_cache[0].graph.outputs[0].spec.shape == (None, *result[1:])


def test_reshape_refuses_what_would_mix_examples():
    with pytest.raises(ll.errors.ShapeError, match=r"Reshape\(\(4, 3\)\): an example of f32\[4,6\] has 6 elements"):
        ll.nn.Reshape((4, 3))(ll.ones((4, 6)))
    with pytest.raises(ll.errors.ShapeError, match="all sizes but the first known"):
        ll.function(ll.nn.Reshape((4,)), input_signature=[ll.TensorSpec((2, None))])(ll.ones((2, 4)))
    for wrong in ("44", (2.0,), (-1, -1), (0, 2), (-2,), True):
        with pytest.raises(ll.errors.ArgumentError, match="Reshape: "):
            ll.nn.Reshape(wrong)


def test_leaky_relu_has_its_slope():
    x = ll.constant([-2.0, 3.0])
    assert ll.nn.LeakyReLU(0.25)(x).tolist() == [-0.5, 3.0]
    assert repr(ll.nn.LeakyReLU()) == "LeakyReLU()"
    with pytest.raises(ll.errors.ArgumentError, match="slope must be a number of at least 0"):
        ll.nn.LeakyReLU("a")


def test_a_sequence_built_by_adding_is_the_one_built_at_once():
    layers = [ll.nn.Reshape((8, 8, 1)), ll.nn.Conv(4, 3), ll.nn.LeakyReLU(0.1), ll.nn.MaxPool(2), ll.nn.Dropout(0.5)]
    layers += [ll.nn.Flatten(), ll.nn.Lambda(lambda x: x * 2), ll.nn.Dense(3)]
    model = ll.nn.Sequential()
    for layer in layers:
        model.add(layer)
    assert model.layers == tuple(layers)
    x = ll.ones((2, 64))
    assert model(x, training=True).shape == (2, 3)
    assert (model(x) == ll.nn.Sequential(layers)(x)).numpy().all()
    assert next(path for path, _ in model.named_variables()) == "layers/1/kernel"
    model.add(ll.nn.Dense(1))
    assert model(x).shape == (2, 1)
    with pytest.raises(ll.errors.ArgumentError, match="takes layers and functions, got int"):
        model.add(3)


def test_a_sequence_that_was_traced_takes_no_more_layers():
    model = ll.nn.Sequential(ll.nn.Dense(2))
    staged = ll.function(model)
    staged(ll.ones((1, 3)))
    with pytest.raises(ll.errors.ArgumentError, match=r"has traced this model.*Sequential\(\*model, layer\)"):
        model.add(ll.nn.Dense(1))
    longer = ll.nn.Sequential(*model, ll.nn.Dense(1))
    assert longer(ll.ones((1, 3))).shape == (1, 1)
    assert longer.layers[0] is model.layers[0]


def test_a_sequence_called_eagerly_first_and_traced_later_takes_none_either():
    model = ll.nn.Sequential(ll.nn.Dense(2))
    with ll.GradientTape():
        model(ll.ones((1, 3)))
    model.add(ll.tanh)
    ll.function(model)(ll.ones((1, 3)))
    with pytest.raises(ll.errors.ArgumentError, match="has traced"):
        model.add(ll.tanh)
