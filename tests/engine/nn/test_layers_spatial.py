"""Convolutions, pools and Flatten as layers: shapes of their weights, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll


@pytest.mark.parametrize(
    ("layer", "shape", "kernel", "result"),
    [
        (lambda: ll.nn.Conv(8, (3,)), (2, 9, 4), (3, 4, 8), (2, 9, 8)),
        (lambda: ll.nn.Conv(8, 3), (2, 9, 9, 4), (3, 3, 4, 8), (2, 9, 9, 8)),
        (lambda: ll.nn.Conv(8, (2, 3), padding="valid"), (2, 9, 9, 4), (2, 3, 4, 8), (2, 8, 7, 8)),
        (lambda: ll.nn.Conv(8, 3, groups=4, stride=2), (2, 9, 9, 4), (3, 3, 1, 8), (2, 5, 5, 8)),
        (lambda: ll.nn.Conv(8, (2, 2, 2), dilation=3, padding=1), (2, 5, 5, 5, 4), (2, 2, 2, 4, 8), (2, 4, 4, 4, 8)),
        (lambda: ll.nn.ConvTranspose(8, (3,)), (2, 9, 4), (3, 8, 4), (2, 9, 8)),
        (lambda: ll.nn.ConvTranspose(8, 3, stride=2, groups=2), (2, 9, 9, 4), (3, 3, 4, 4), (2, 18, 18, 8)),
    ],
)
def test_kernels_and_results_have_the_shapes_that_the_docstrings_say(layer, shape, kernel, result):
    layer = layer()
    assert layer(ll.ones(shape)).shape == result
    assert layer.kernel.shape == kernel
    assert layer.bias.shape == (result[-1],)


def test_a_layer_computes_what_the_function_does():
    rng = np.random.default_rng(0)
    x = ll.constant(rng.normal(size=(2, 5, 5, 3)).astype("float32"))
    layer = ll.nn.Conv(4, 3, stride=2, bias_initializer="ones")
    assert np.allclose(layer(x).numpy(), ll.nn.conv(x, layer.kernel, stride=2).numpy() + 1.0)
    layer = ll.nn.ConvTranspose(4, 3, stride=2, use_bias=False, activation=ll.nn.relu)
    assert np.allclose(layer(x).numpy(), ll.nn.relu(ll.nn.conv_transpose(x, layer.kernel, stride=2)).numpy())


def test_a_transposes_kernel_is_scaled_by_its_inputs():
    ll.random.seed(0)
    layer = ll.nn.ConvTranspose(2, 3, kernel_initializer="he_normal")
    layer(ll.ones((1, 4, 4, 300)))
    assert np.isclose(layer.kernel.numpy().var(), 2 / (9 * 300), rtol=0.1)


def test_a_transposes_kernel_in_groups_is_scaled_by_the_inputs_of_a_group():
    ll.random.seed(0)
    layer = ll.nn.ConvTranspose(100, 3, groups=10, kernel_initializer="lecun_normal")
    layer(ll.ones((1, 4, 4, 300)))
    assert layer.kernel.shape == (3, 3, 10, 300)
    assert np.isclose(layer.kernel.numpy().var(), 1 / (9 * 30), rtol=0.1)


def test_a_transposes_initializer_is_asked_for_the_kernel_itself():
    asked = []

    def counted(shape, dtype):
        asked.append(shape)
        return ll.reshape(ll.arange(np.prod(shape).item()), shape).astype(dtype)

    layer = ll.nn.ConvTranspose(2, (1,), kernel_initializer=counted)
    layer(ll.ones((1, 4, 3)))
    assert asked == [(1, 2, 3)]
    assert layer.kernel.numpy()[0].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(("layer", "function"), [(ll.nn.MaxPool, ll.nn.max_pool), (ll.nn.AvgPool, ll.nn.avg_pool)])
def test_pools_hand_their_settings_on(layer, function):
    x = ll.constant(np.random.default_rng(0).normal(size=(2, 5, 5, 3)).astype("float32"))
    for settings in [(3,), (3, 1), ((2, 3), (1, 2), "same"), (2, 2, 1)]:
        named = dict(zip(("window", "stride", "padding"), settings, strict=False))
        assert np.array_equal(layer(**named)(x).numpy(), function(x, *settings).numpy())
    assert repr(layer(3, 1, padding="same")) == f"{layer.__name__}(3, stride=1, padding='same')"


SPATIAL = {
    "Conv": lambda window: ll.nn.Conv(2, window),
    "ConvTranspose": lambda window: ll.nn.ConvTranspose(2, window),
    "MaxPool": ll.nn.MaxPool,
    "AvgPool": ll.nn.AvgPool,
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("kind", SPATIAL)
def test_a_window_that_is_one_number_is_for_two_axes(kind, staged):
    """Images without a channel axis would otherwise be lines with as many channels as columns."""
    layer = SPATIAL[kind](3)
    call = ll.function(layer) if staged else layer
    with pytest.raises(
        ll.errors.ShapeError, match=r"needs .*\(batch, height, width, channels\), got f32\[4,28,28\]"
    ) as caught:
        call(ll.ones((4, 28, 28)))
    for words in ("for two spatial axes", "write the window (3,)", "x.expand_dims(-1)", "x.expand_dims(0)"):
        assert words in str(caught.value)
    with pytest.raises(ll.errors.ShapeError, match=r"For three write the window \(3, 3, 3\)"):
        layer(ll.ones((1, 4, 4, 4, 3)))
    assert layer.variables == []
    assert layer(ll.ones((1, 6, 6, 2))).ndim == 4
    assert SPATIAL[kind]((3,))(ll.ones((1, 6, 2))).ndim == 3
    assert SPATIAL[kind]((3, 3, 3))(ll.ones((1, 3, 3, 3, 2))).ndim == 5


@pytest.mark.parametrize("kind", SPATIAL)
@pytest.mark.parametrize("setting", [{"stride": (1,)}, {"padding": "sme"}, {"padding": (1, 1, 1)}, {"padding": -1}])
def test_settings_for_other_axes_are_refused_when_the_layer_is_made(kind, setting):
    make = getattr(ll.nn, kind)
    with pytest.raises(ll.errors.ArgumentError, match=f"{next(iter(setting))} must be .*2 spatial axes"):
        make(*((2, 3) if "Conv" in kind else (3,)), **setting)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ll.nn.Conv(2, 3)(ll.ones((4, 3))), r"Conv\(2, 3\) needs .* \(batch, height, width, channels\), got"),
        (lambda: ll.nn.Conv(2, (3,))(ll.ones((1, 4, 4, 3))), r"Conv\(2, \(3,\)\) needs .* \(batch, length, chan"),
        (lambda: ll.nn.Conv(2, (1, 1, 1, 1)), "the window must have one to three sizes"),
        (lambda: ll.nn.Conv(3, 2, groups=2), "3 filters do not divide into 2 groups"),
        (lambda: ll.nn.Conv(4, (2,), groups=2)(ll.ones((1, 4, 3))), "the 3 channels do not divide into 2 groups"),
        (lambda: ll.nn.ConvTranspose(4, (2,), groups=2)(ll.ones((1, 4, 3))), "the 3 channels do not divide into 2"),
        (lambda: ll.nn.MaxPool((5,))(ll.ones((1, 4, 3))), "max_pool: a window of 5"),
        (lambda: ll.nn.Flatten()(1.0), r"Flatten needs an input \(batch, \.\.\.\)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(call, said):
    with pytest.raises(ll.errors.LimelightError, match=said):
        call()


def test_flatten_keeps_an_empty_batch_and_an_unknown_one():
    flatten = ll.nn.Flatten()
    assert flatten(ll.ones((0, 2, 3))).shape == (0, 6)
    staged = ll.function(flatten, input_signature=[ll.TensorSpec((None, 2, 3))])
    assert staged(ll.ones((4, 2, 3))).shape == (4, 6)
    assert staged.trace_cache[0].graph.outputs[0].spec.shape == (None, 6)
    with pytest.raises(ll.errors.ShapeError, match="all sizes but the first known"):
        ll.function(flatten, input_signature=[ll.TensorSpec((4, None, 3))])(ll.ones((4, 2, 3)))
