"""Normalisations and attention as layers: moving averages, masks, caches of nothing, and what they refuse."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import limelight as ll

RNG = np.random.default_rng(0)
BATCHES = [RNG.normal(2.0, 3.0, size=(4, 3, 2)).astype("float32") for _ in range(5)]


@pytest.mark.parametrize("staged", [False, True])
def test_batch_norm_keeps_moving_averages(staged):
    layer = ll.nn.BatchNorm(momentum=0.8)
    step = ll.function(lambda x: layer(x, training=True)) if staged else lambda x: layer(x, training=True)
    mean, variance = np.zeros(2), np.ones(2)
    for batch in BATCHES:
        y = step(ll.constant(batch)).numpy()
        now, spread = batch.mean((0, 1)), batch.var((0, 1))
        assert np.allclose(y, (batch - now) / np.sqrt(spread + 1e-5), atol=1e-4)
        mean, variance = 0.8 * mean + 0.2 * now, 0.8 * variance + 0.2 * spread
    assert np.allclose(layer.mean.numpy(), mean, rtol=1e-5)
    assert np.allclose(layer.variance.numpy(), variance, rtol=1e-5)
    x = BATCHES[0]
    assert np.allclose(layer(ll.constant(x)).numpy(), (x - mean) / np.sqrt(variance + 1e-5), atol=1e-4)
    assert [v.name for v in layer.trainable_variables] == ["scale", "offset"]
    assert [v.name for v in layer.variables] == ["scale", "offset", "mean", "variance"]


def test_averages_that_are_not_trainable_get_no_gradient_and_inference_changes_none():
    layer = ll.nn.BatchNorm()
    layer(ll.constant(BATCHES[0]), training=True)
    before = layer.mean.numpy().copy()
    with ll.GradientTape() as tape:
        y = ll.sum(layer(ll.constant(BATCHES[1])))
    assert tape.gradient(y, layer.mean) is None
    assert np.array_equal(layer.mean.numpy(), before)


def test_an_empty_batch_would_ruin_the_averages_and_is_refused():
    layer = ll.nn.BatchNorm()
    layer(ll.ones((2, 3)), training=True)
    with pytest.raises(ll.errors.ShapeError, match=r"BatchNorm\(\) needs a batch to train on"):
        layer(ll.ones((0, 3)), training=True)
    with pytest.raises(ll.errors.ShapeError, match="needs a batch to train on"):
        layer(ll.ones(3), training=True)
    assert np.isfinite(layer.mean.numpy()).all()


def test_short_floats_are_averaged_in_the_dtype_of_the_layer():
    layer = ll.nn.BatchNorm(momentum=0.0)
    x = ll.constant([[300.0], [-300.0], [900.0]], "float16")  # whose variance is beyond float16
    y = layer(x, training=True)
    assert y.dtype == ll.float16
    assert np.allclose(y.numpy().astype("float32").ravel(), [0.0, -1.2247, 1.2247], atol=2e-3)
    assert np.isclose(layer.variance.numpy().item(), 240000.0)


def test_scales_and_offsets_can_be_left_out():
    for make in (ll.nn.BatchNorm, ll.nn.LayerNorm, lambda **options: ll.nn.GroupNorm(2, **options)):
        layer = make(use_scale=False, use_offset=False)
        layer(ll.constant(BATCHES[0]))
        assert not layer.trainable_variables
    assert repr(ll.nn.GroupNorm(2, use_offset=False)) == "GroupNorm(2, use_offset=False)"


def test_groups_leave_the_known_sizes_known():
    layer = ll.nn.GroupNorm(2, use_scale=False, use_offset=False)
    staged = ll.function(layer, input_signature=[ll.TensorSpec((None, 3, 2))])
    assert np.allclose(staged(ll.constant(BATCHES[0])).numpy(), layer(ll.constant(BATCHES[0])).numpy(), atol=1e-6)
    assert staged.trace_cache[0].graph.outputs[0].spec.shape == (None, 3, 2)


def test_groups_must_divide_the_channels():
    with pytest.raises(ll.errors.ShapeError, match=r"GroupNorm\(2\): the 3 channels do not divide into 2 groups"):
        ll.nn.GroupNorm(2)(ll.ones((1, 3)))


# --- attention


def attention(layer, q, k, v, allowed):
    """The formula, head by head."""
    q, k, v = (
        np.einsum("btf,fu->btu", x, p.kernel.numpy()) for x, p in ((q, layer.query), (k, layer.key), (v, layer.value))
    )
    heads, results = layer.heads, []
    for i in range(heads):
        part = slice(i * q.shape[-1] // heads, (i + 1) * q.shape[-1] // heads)
        scores = np.einsum("bqd,bkd->bqk", q[..., part], k[..., part]) / np.sqrt(q.shape[-1] // heads)
        weights = np.exp(np.where(allowed, scores, -np.inf))
        results.append(weights / weights.sum(-1, keepdims=True) @ v[..., part])
    return np.concatenate(results, -1) @ layer.output.kernel.numpy()


Q = RNG.normal(size=(2, 3, 6)).astype("float32")
K = RNG.normal(size=(2, 5, 4)).astype("float32")
V = RNG.normal(size=(2, 5, 7)).astype("float32")


def test_attention_is_the_formula_head_by_head():
    layer = ll.nn.MultiHeadAttention(3, use_bias=False)
    y = layer(ll.constant(Q), ll.constant(K), ll.constant(V))
    assert np.allclose(y.numpy(), attention(layer, Q, K, V, True), atol=1e-5)
    layer = ll.nn.MultiHeadAttention(3, use_bias=False)
    y = layer(ll.constant(Q), ll.constant(K))
    assert np.allclose(y.numpy(), attention(layer, Q, K, K, True), atol=1e-5)
    layer = ll.nn.MultiHeadAttention(3, use_bias=False)
    layer(ll.constant(Q), ll.constant(K), ll.constant(V))
    mask = np.array([True, True, False, True, False])
    y = layer(ll.constant(Q), ll.constant(K), ll.constant(V), mask=ll.constant(mask))
    assert np.allclose(y.numpy(), attention(layer, Q, K, V, mask), atol=1e-5)


def test_attention_to_itself_causal_with_unknown_batch_and_length():
    layer = ll.nn.MultiHeadAttention(2, depth=4, use_bias=False)
    y = layer(ll.constant(Q), causal=True)
    assert np.allclose(y.numpy(), attention(layer, Q, Q, Q, np.tri(3, dtype=bool)), atol=1e-5)
    staged = ll.function(lambda x: layer(x, causal=True), input_signature=[ll.TensorSpec((None, None, 6))])
    for x in (Q, Q[:1, :2], np.concatenate([Q, Q], axis=1)):
        assert np.allclose(staged(ll.constant(x)).numpy(), layer(ll.constant(x), causal=True).numpy(), atol=1e-5)
    assert staged.trace_cache[0].graph.outputs[0].spec.shape == (None, None, 6)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ll.nn.MultiHeadAttention(4)(ll.ones((1, 2, 6))), "the 6 features do not divide into 4 heads"),
        (lambda: ll.nn.MultiHeadAttention(2)(ll.ones((2, 6))), r"\(batch, queries, features\), got f32\[2,6\]"),
        (lambda: ll.nn.MultiHeadAttention(2)(ll.ones((1, 2, 6)), ll.ones(6)), r"needs a key of shape \(batch, keys"),
        (lambda: ll.nn.MultiHeadAttention(0), "heads must be a positive int, got 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(call, said):
    with pytest.raises(ll.errors.LimelightError, match=said):
        call()


def test_a_tape_around_a_staged_layer_moves_the_averages_once():
    layer = ll.nn.BatchNorm(momentum=0.5, use_scale=False)
    staged = ll.function(lambda x: layer(x, training=True))
    x, seen = ll.constant([[1.0], [3.0]]), []
    for _ in range(3):
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = ll.sum(staged(x) ** 3)
        assert np.allclose(tape.gradient(y, layer.offset).numpy(), 6.0, atol=1e-3)
        seen.append(layer.mean.numpy().item())
    assert seen == [1.0, 1.5, 1.75]


def test_second_derivatives_pass_through_layers_eager_and_staged():
    model = ll.nn.Sequential(ll.nn.LSTM(4, return_sequences=True), ll.nn.LayerNorm(), ll.nn.MultiHeadAttention(2))
    staged = ll.function(model)
    x = ll.constant(RNG.normal(size=(2, 3, 5)).astype("float32"))
    found = []
    for call in (model, staged):
        with ll.GradientTape() as outer, ll.GradientTape() as inner:
            outer.watch(x)
            inner.watch(x)
            g = inner.gradient(ll.sum(call(x) ** 3), x)
            slope = ll.sum(g * g)
        found.append(outer.gradient(slope, x).numpy())
    assert found[0].any()
    assert np.allclose(*found, rtol=1e-3, atol=1e-4 * np.abs(found[0]).max())


def test_a_tape_keeps_of_batch_norm_what_its_gradient_needs_and_no_result() -> None:
    x, scale, offset = ll.ones((8, 5)), ll.ones(5), ll.ones(5)
    with ll.GradientTape() as tape:
        tape.watch([x, scale, offset])
        ll.nn.batch_norm_training(x, scale, offset)
    (entry,) = tape.entries
    assert (entry.op, entry.saved) == ("batch_norm_training", ("xs", "xs_shape", "out_1", "out_2", "epsilon"))
    assert entry.saved_bytes == 4 * (8 * 5 + 4 * 5)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_gradients_of_batch_norm_are_those_of_standard_scores(order) -> None:
    rng = np.random.default_rng(0)
    given = [ll.constant(rng.normal(size=shape)) for shape in ((4, 3, 5), (5,), (5,))]

    def whole(f, order):
        for _ in range(order - 1):
            f = functools.partial(lambda f, *z: sum(ll.sum(g * g) for g in ll.grad(f, argnums=(0, 1, 2))(*z)), f)
        return ll.grad(f, argnums=(0, 1, 2))(*given)

    def as_one(x, scale, offset):
        y, mean, variance = ll.nn.batch_norm_training(x, scale, offset)
        return ll.sum(y * y * x) + ll.sum(mean * variance)

    def composed(x, scale, offset):
        z, mean, variance = ll.nn.standardise(x, (0, 1), 1e-5)
        return ll.sum((z * scale + offset) ** 2 * x) + ll.sum(mean * variance)

    for one, wanted in zip(whole(as_one, order), whole(composed, order), strict=True):
        np.testing.assert_allclose(one.numpy(), wanted.numpy(), rtol=1e-7, atol=1e-8)
    one = ll.vectorize(ll.grad(as_one), in_axes=(0, 0, None))
    found = one(ll.stack([given[0]] * 2), ll.stack(given[1:]), given[2]).numpy()
    apart = [ll.grad(composed)(given[0], scale, given[2]).numpy() for scale in given[1:]]
    np.testing.assert_allclose(found, apart, rtol=1e-7, atol=1e-8)
