"""Functions of ll.nn: choices at the edges, reductions, precision, and what does not fit. Values: cases_networks.py."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import limelight as ll
from limelight.nn import functional


def slope(function, x):
    """The gradient of the sum of function(x)."""
    x = ll.constant(x, "float64")
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = function(x).sum()
    return tape.gradient(y, x).tolist()


# --- activations


@pytest.mark.parametrize(
    ("function", "x", "wanted"),
    [
        (ll.nn.relu6, [-1.0, 0.0, 3.0, 6.0, 7.0], [0.0, 0.0, 1.0, 1.0, 0.0]),
        (ll.nn.leaky_relu, [-1.0, 0.0, 1.0], [0.01, 0.01, 1.0]),
        (ll.nn.elu, [0.0, 1000.0, -1000.0], [1.0, 1.0, 0.0]),
        (ll.nn.celu, [0.0, 1000.0, -1000.0], [1.0, 1.0, 0.0]),
        (ll.nn.hard_tanh, [-2.0, -1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 1.0, 0.0]),
        (ll.nn.softsign, [0.0], [1.0]),
        (ll.nn.mish, [-1000.0, 1000.0], [0.0, 1.0]),
        (ll.nn.silu, [-1000.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
        (ll.nn.gelu, [-1000.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
        (ll.nn.log_sigmoid, [-1000.0, 1000.0], [1.0, 0.0]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_gradients_at_kinks_and_far_out(function, x, wanted):
    np.testing.assert_allclose(slope(function, x), wanted, atol=1e-12)


INF = float("inf")
GATES = [ll.nn.silu, ll.nn.gelu, functools.partial(ll.nn.gelu, approximate=True), ll.nn.mish, ll.nn.hard_silu]
SQUASHING = [ll.nn.softsign, ll.nn.hard_sigmoid, ll.nn.hard_tanh, ll.nn.relu6, ll.erf, ll.ndtr, ll.tanh, ll.sigmoid]
OF_ONE_SIDE = [ll.nn.softplus, ll.nn.elu, ll.nn.celu, ll.nn.relu]


def derivative(f):
    return ll.grad(lambda x: ll.sum(f(x)))


def by_forward_mode(f, x):
    with ll.ForwardAccumulator(x, ll.ones_like(x)) as accumulator:
        y = f(x)
    slopes = accumulator.jvp(y)
    return ll.zeros_like(x) if slopes is None else slopes


WAYS = {
    "eager": lambda f, x: derivative(f)(x),
    "staged": lambda f, x: ll.function(derivative(f))(x),
    "forward": by_forward_mode,
    "vectorized": lambda f, x: ll.vectorize(ll.grad(f))(x),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_slopes_at_infinity_are_the_limits(way, dtype):
    largest = ll.finfo(dtype).max
    x = ll.constant([-INF, -largest, -300.0, 300.0, largest, INF], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        for f in GATES + SQUASHING + OF_ONE_SIDE:
            right = 0.0 if f in SQUASHING else 1.0
            np.testing.assert_allclose(WAYS[way](f, x).astype(ll.float64).tolist(), [0, 0, 0, *[right] * 3], atol=1e-4)
            second = WAYS[way](derivative(f), x).astype(ll.float64).tolist()
            np.testing.assert_allclose(second, [0.0] * 6, atol=1e-4, err_msg=str(f))


@pytest.mark.parametrize("f", GATES, ids=lambda f: getattr(f, "__name__", "gelu by tanh"))
def test_values_at_infinity_are_the_limits(f):
    assert f(ll.constant([-INF, INF])).tolist() == [0.0, INF]
    assert np.isnan(f(ll.constant(float("nan"))).item())
    assert np.isnan(slope(f, [float("nan")])).all()


def test_a_slope_of_prelu_that_does_not_matter_is_zero():
    slopes = ll.constant([0.5, 0.5])
    assert ll.grad(lambda s: ll.sum(ll.nn.prelu(ll.constant([INF, -2.0]), s)))(slopes).tolist() == [0.0, -2.0]


def test_gelu_by_tanh_is_close():
    x = ll.linspace(-5.0, 5.0, 101)
    assert (ll.nn.gelu(x) - ll.nn.gelu(x, approximate=True)).numpy().__abs__().max() < 5e-4


@pytest.mark.parametrize("name", functional.activations.__all__)
def test_activations_refuse_integers_under_their_own_name(name):
    given = (ll.constant([1, 2]),) * (2 if name == "prelu" else 1)
    called = "silu" if name == "swish" else name
    with pytest.raises(ll.errors.DTypeError, match=rf"^{called} needs floating operands, got int32; write ll\.astype"):
        getattr(ll.nn, name)(*given)


def test_glu_needs_an_even_size():
    with pytest.raises(ll.errors.ShapeError, match=r"glu: axis 1 of f32\[2,3\] must have an even size"):
        ll.nn.glu(ll.ones((2, 3)))


# --- losses

PAIRED = ["mean_squared_error", "mean_absolute_error", "huber", "log_cosh", "hinge", "kl_divergence"]


@pytest.mark.parametrize("name", PAIRED)
def test_losses_do_not_broadcast_by_mistake(name):
    """(n, 1) against (n,) would give n² differences, and no error."""
    loss = getattr(ll.nn, name)
    with pytest.raises(
        ll.errors.ShapeError, match=f"^{name}: .* must have the same shape.* have 2 and 1 axes"
    ) as eager:
        loss(ll.ones((4, 1)), ll.ones(4))
    with pytest.raises(ll.errors.ShapeError) as staged:
        ll.function(loss)(ll.ones((4, 1)), ll.ones(4))
    assert eager.value.bare == staged.value.bare
    with pytest.raises(ll.errors.ShapeError, match="axis 1 has sizes 2 and 3"):
        loss(ll.ones((4, 2)), ll.ones((4, 3)))


def test_reductions():
    x, t = ll.constant([1.0, 2.0, 4.0]), ll.constant([1.0, 1.0, 1.0])
    assert ll.nn.mean_squared_error(x, t, "none").tolist() == [0.0, 1.0, 9.0]
    assert ll.nn.mean_squared_error(x, t, "sum").item() == 10.0
    assert ll.nn.huber(x, t, reduction="mean").item() == 1.0
    logits, labels = ll.zeros((2, 4)), ll.constant([0, 3])
    assert ll.nn.softmax_cross_entropy(logits, labels, reduction="sum").item() == pytest.approx(2 * np.log(4))
    with pytest.raises(ll.errors.ArgumentError, match="reduction must be one of 'none', 'mean', 'sum'; got 'avg'"):
        ll.nn.nll(ll.zeros((2, 4)), labels, reduction="avg")


def test_labels_that_do_not_fit_are_named_by_the_loss():
    cases = [
        (
            ll.ones((2, 3)),
            r"labels f32\[2,3\] .* must have the shape of the logits f32\[2,4\]: axis 1 has size 3, not 4",
        ),
        (ll.ones(2), "it has 1 axes, not 2"),
        (ll.constant([1, 2, 3]), r"labels of shape \(2,\), got i32\[3\]"),
        (ll.constant([1, 4]), "labels must be from 0 to 3"),
    ]
    for labels, words in cases:
        with pytest.raises((ll.errors.ShapeError, ll.errors.ArgumentError), match=f"^softmax_cross_entropy: .*{words}"):
            ll.nn.softmax_cross_entropy(ll.ones((2, 4)), labels)
    with pytest.raises(ll.errors.ShapeError, match=r"^nll: .*labels of shape \(2,\), got i32\[3\]"):
        ll.nn.nll(ll.ones((2, 4)), ll.constant([1, 2, 3]))
    with pytest.raises(ll.errors.DTypeError, match=r"^nll: labels must be class numbers"):
        ll.nn.nll(ll.ones((2, 4)), ll.ones(2))


def test_label_smoothing_of_numbers_and_of_probabilities_is_the_same():
    logits = ll.random.normal((5, 4))
    numbers = ll.constant([0, 3, 1, 2, 2])
    probabilities = ll.constant(np.eye(4, dtype=np.float32)[numbers.numpy()])
    by_number = ll.nn.softmax_cross_entropy(logits, numbers, label_smoothing=0.2)
    by_probability = ll.nn.softmax_cross_entropy(logits, probabilities, label_smoothing=0.2)
    mixed = ll.nn.softmax_cross_entropy(logits, 0.8 * probabilities + 0.05)
    np.testing.assert_allclose(by_number.numpy(), by_probability.numpy(), rtol=1e-5)
    np.testing.assert_allclose(by_number.numpy(), mixed.numpy(), rtol=1e-5)


def test_losses_at_the_edges():
    assert ll.nn.kl_divergence(ll.constant([0.0, -np.inf]), ll.constant([1.0, 0.0])).item() == 0.0
    assert slope(lambda x: ll.nn.kl_divergence(x, ll.constant([1.0, 0.0], "float64")), [0.0, -1.0]) == [-1.0, 0.0]
    impossible = ll.constant([0.0, -np.inf], "float64")
    assert slope(lambda t: ll.nn.kl_divergence(impossible, t), [1.0, 0.0]) == [1.0, 0.0]
    assert ll.nn.log_cosh(ll.constant([1000.0]), ll.constant([0.0])).item() == pytest.approx(1000 - np.log(2))
    assert ll.nn.cosine_similarity(ll.zeros(3), ll.ones(3)).item() == 0.0
    assert np.isfinite(slope(lambda x: ll.nn.cosine_similarity(x, ll.ones(3, dtype="float64")), [0.0] * 3)).all()


# --- normalisations


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_normalised_in_float32(dtype):
    """Squares of 1000 do not fit into float16, and its sums lose what bfloat16 has."""
    x = ll.constant(np.array([[1000.0, 1001.0, 1004.0, 1008.0]]), "float32").astype(dtype)
    wanted = ll.nn.layer_norm(x.astype("float32")).astype(dtype)
    assert ll.nn.layer_norm(x).dtype == dtype
    assert ll.nn.layer_norm(x).tolist() == wanted.tolist()
    assert np.isfinite(ll.nn.rms_norm(x).astype("float32").numpy()).all()
    y, mean, variance = ll.nn.batch_norm_training(x.reshape((4, 1)))
    assert (y.dtype, mean.dtype, variance.dtype) == (dtype, ll.float32, ll.float32)
    mean, variance = ll.constant(1000.0), ll.constant(10.0)
    assert ll.nn.batch_norm(x, mean, variance).dtype == dtype


def test_group_norm_of_unknown_batch_and_space():
    F = ll.function(lambda x: ll.nn.group_norm(x, 2), input_signature=[ll.TensorSpec((None, None, None, 4))])
    for shape in ((2, 3, 5, 4), (1, 2, 2, 4)):
        x = ll.random.normal(shape)
        np.testing.assert_allclose(F(x).numpy(), ll.nn.group_norm(x, 2).numpy(), atol=1e-5)
    assert F.trace_count == 1


def test_normalisations_say_what_does_not_fit():
    x = ll.ones((2, 3))
    with pytest.raises(ll.errors.ShapeError, match=r"^layer_norm: f32\[5,2,3\] does not broadcast to f32\[2,3\]"):
        ll.nn.layer_norm(x, ll.ones((5, 2, 3)))
    with pytest.raises(ll.errors.ShapeError, match=r"^batch_norm: .*axis -1 has sizes 3 and 4"):
        ll.nn.batch_norm(x, ll.ones(4), ll.ones(3))
    with pytest.raises(ll.errors.ShapeError, match=r"^group_norm: .* a multiple of the 2 groups"):
        ll.nn.group_norm(x, 2)
    with pytest.raises(ll.errors.ArgumentError, match=r"^layer_norm: axis 2 is out of range"):
        ll.nn.layer_norm(x, axis=2)


# --- attention


def test_a_query_that_may_see_nothing_gets_zeros_and_no_nan():
    q, k, v = ll.random.normal((2, 3)), ll.random.normal((4, 3)), ll.random.normal((4, 2))
    mask = ll.constant([[False] * 4, [True] * 4])
    with ll.GradientTape() as tape:
        tape.watch([q, k, v])
        out = ll.nn.dot_product_attention(q, k, v, mask=mask)
    assert out[0].tolist() == [0.0, 0.0]
    for g in tape.gradient(out, [q, k, v]):
        assert np.isfinite(g.numpy()).all()


def test_causal_attention_counts_from_the_end():
    v = ll.constant([[1.0], [2.0], [4.0]])
    one = ll.nn.dot_product_attention(ll.zeros((3, 2)), ll.zeros((3, 2)), v, causal=True)
    assert one[:, 0].tolist() == pytest.approx([1.0, 1.5, 7 / 3])
    last = ll.nn.dot_product_attention(ll.zeros((1, 2)), ll.zeros((3, 2)), v, causal=True)
    assert last.item() == pytest.approx(7 / 3)


def test_masks_are_boolean_and_biases_are_added():
    q, k, v = ll.random.normal((2, 3)), ll.random.normal((4, 3)), ll.random.normal((4, 2))
    allowed = ll.constant([True, False, True, False])
    added = ll.where(allowed, 0.0, -np.inf)
    by_choice = ll.nn.dot_product_attention(q, k, v, mask=allowed)
    np.testing.assert_allclose(by_choice.numpy(), ll.nn.dot_product_attention(q, k, v, bias=added).numpy(), rtol=1e-5)
    for numbers in ([1, 0, 1, 0], [1.0, 0.0, 1.0, 0.0]):
        with pytest.raises(ll.errors.DTypeError, match=r"a mask is boolean.* write mask=mask != 0; .* as bias="):
            ll.nn.dot_product_attention(q, k, v, mask=ll.constant(numbers))
    with pytest.raises(ll.errors.DTypeError, match="floating"):
        ll.nn.dot_product_attention(q, k, v, bias=allowed)


@pytest.mark.parametrize("name", ["mask", "bias"])
def test_batches_are_not_taken_for_heads(name):
    layer, x = ll.nn.MultiHeadAttention(2), ll.random.normal((2, 3, 4))
    each = np.array([np.tri(3), np.ones((3, 3))])  # as many examples as heads
    given = ll.constant(each > 0 if name == "mask" else np.where(each > 0, 0.0, -1e9), None)
    of_examples = layer(x, **{name: given[:, None]})
    for i in range(2):
        alone = layer(x[i : i + 1], **{name: given[i : i + 1]})  # of one example there is no doubt
        np.testing.assert_allclose(of_examples[i].numpy(), alone[0].numpy(), rtol=1e-5)
    assert not ll.allclose(of_examples, layer(x, **{name: given[None]})).item()
    with pytest.raises(ll.errors.ShapeError, match=rf"{name}={name}\[:, None\], .* {name}={name}\[None\]"):
        layer(x, **{name: given})
    with pytest.raises(ll.errors.ShapeError, match=rf"for \(batch, keys\) write {name}={name}\[:, None, None\]"):
        layer(x, ll.random.normal((2, 5, 4)), **{name: ll.ones((2, 5)) > 0 if name == "mask" else ll.ones((2, 5))})


def test_attention_of_unknown_lengths():
    F = ll.function(
        lambda q, k, v: ll.nn.dot_product_attention(q, k, v, causal=True),
        input_signature=[ll.TensorSpec((None, 2, None, 3))] * 3,
    )
    for length in (4, 6):
        x = ll.random.normal((3, 2, length, 3))
        wanted = ll.nn.dot_product_attention(x, x, x, causal=True)
        np.testing.assert_allclose(F(x, x, x).numpy(), wanted.numpy(), atol=1e-5)
    assert F.trace_count == 1


def test_attention_says_what_does_not_fit():
    name = "^dot_product_attention"
    x = ll.ones((2, 3))
    with pytest.raises(ll.errors.ShapeError, match=rf"{name}: axis -1 of q and k .* got f32\[2,3\] and f32\[2,4\]"):
        ll.nn.dot_product_attention(x, ll.ones((2, 4)), x)
    with pytest.raises(ll.errors.ShapeError, match=f"{name}: axis -2 of k and v"):
        ll.nn.dot_product_attention(x, x, ll.ones((3, 3)))
    with pytest.raises(ll.errors.ShapeError, match=f"{name}: q must be"):
        ll.nn.dot_product_attention(ll.ones(3), x, x)
    with pytest.raises(ll.errors.ShapeError, match=rf"{name} \(scores and mask\): "):
        ll.nn.dot_product_attention(x, x, x, mask=ll.constant([True, False, True]))


# --- steps in time


def test_cells_say_what_does_not_fit():
    x, h = ll.ones((2, 3)), ll.zeros((2, 4))
    with pytest.raises(ll.errors.ShapeError, match=r"^lstm_cell: weights must be \(features, 4 \* units\)"):
        ll.nn.lstm_cell(x, h, h, ll.ones((3, 12)), ll.ones((4, 12)))
    with pytest.raises(ll.errors.ShapeError, match=r"^gru_cell: the last axis of x must have size 5"):
        ll.nn.gru_cell(x, h, ll.ones((5, 12)), ll.ones((4, 12)))
    with pytest.raises(ll.errors.ShapeError, match=r"^lstm_cell: the last axis of h must have size 4"):
        ll.nn.lstm_cell(x, ll.ones((2, 5)), h, ll.ones((3, 16)), ll.ones((4, 16)))
