"""Learning-rate schedules and gradient clipping."""

from __future__ import annotations

import math

import numpy as np
import pytest

import limelight as ll
from limelight.optim import schedules

T = np.arange(13)
VALUES = {
    "constant": (schedules.Constant(0.3), np.full(13, 0.3)),
    "step": (schedules.Step(1.0, every=4, factor=0.5), 0.5 ** (T // 4)),
    "exponential": (schedules.Exponential(2.0, factor=0.9, every=3), 2.0 * 0.9 ** (T / 3)),
    "polynomial": (
        schedules.Polynomial(1.0, steps=8, power=2.0, final=0.2),
        0.2 + 0.8 * (1 - np.minimum(T / 8, 1)) ** 2,
    ),
    "cosine": (schedules.Cosine(1.0, steps=10), 0.5 * (1 + np.cos(np.pi * np.minimum(T / 10, 1)))),
    "cosine with warmup": (
        schedules.Cosine(1.0, steps=10, warmup=4, final=0.1),
        [(t + 1) / 4 if t < 4 else 0.1 + 0.45 * (1 + math.cos(math.pi * min((t - 4) / 6, 1))) for t in T],
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_schedules_have_the_values_of_their_formulas_eager_and_staged(name):
    schedule, expected = VALUES[name]
    eager = [schedule(ll.constant(t, "float64")).item() for t in T]
    staged = ll.function(schedule)
    assert np.allclose(eager, expected, atol=1e-12)
    assert [staged(ll.constant(t, "float64")).item() for t in T] == eager
    assert len(staged.trace_cache) == 1


def test_schedules_refuse_settings_that_mean_nothing():
    for make in (
        lambda: schedules.Cosine(1.0, steps=5, warmup=5),
        lambda: schedules.Step(1.0, every=0),
        lambda: schedules.Polynomial(1.0, steps=0),
        lambda: schedules.Exponential(1.0, factor=-1.0),
        lambda: schedules.Exponential(1.0, 50, 0.9),  # the order of Keras
    ):
        with pytest.raises(ll.errors.ArgumentError, match="must be"):
            make()


GRADIENTS = [[3.0, -4.0], [[0.5, 0.0]], [12.0]]


def clipped(function, limit):
    tensors = [ll.constant(g) for g in GRADIENTS]
    eager = function([*tensors, None], limit)
    staged = ll.function(lambda *gs: function(gs, limit))(*tensors)
    assert eager[-1] is None
    assert all(np.allclose(a.numpy(), b.numpy()) for a, b in zip(staged, eager[:-1], strict=True))
    return [g.numpy() for g in eager[:-1]]


def test_clip_by_value():
    for g, given in zip(clipped(ll.optim.clip_by_value, 3.5), GRADIENTS, strict=True):
        assert np.array_equal(g, np.clip(given, -3.5, 3.5))


def test_clip_by_norm_treats_each_gradient_alone():
    first, second, third = clipped(ll.optim.clip_by_norm, 2.0)
    assert np.allclose(first, [1.2, -1.6])
    assert np.allclose(second, [[0.5, 0.0]])
    assert np.allclose(third, [2.0])


def test_clip_by_global_norm_keeps_the_direction():
    norm = math.sqrt(25 + 0.25 + 144)
    for g, given in zip(clipped(ll.optim.clip_by_global_norm, 1.0), GRADIENTS, strict=True):
        assert np.allclose(g, np.array(given) / norm)
    for g, given in zip(clipped(ll.optim.clip_by_global_norm, 100.0), GRADIENTS, strict=True):
        assert np.array_equal(g, given)


def test_norms_of_short_floats_are_summed_in_float32():
    g = ll.constant([300.0, 400.0], "float16")  # the square of either is beyond float16
    assert ll.optim.global_norm([g]).item() == 500.0
    (small,) = ll.optim.clip_by_global_norm([g], 5.0)
    assert small.dtype == ll.float16
    assert np.allclose(small.numpy(), [3.0, 4.0], rtol=1e-3)


def test_zero_gradients_stay_zero_and_nan_shows():
    assert ll.optim.clip_by_norm([ll.zeros(2)], 1.0)[0].tolist() == [0.0, 0.0]
    assert np.isnan(ll.optim.clip_by_global_norm([ll.constant([1.0, math.nan])], 1.0)[0].numpy()).all()


def test_limits_must_be_positive_and_some_gradient_there():
    for clip in (ll.optim.clip_by_value, ll.optim.clip_by_norm, ll.optim.clip_by_global_norm):
        with pytest.raises(ll.errors.ArgumentError, match=f"{clip.__name__}: limit must be above 0, got 0"):
            clip([ll.ones(2)], 0.0)
    with pytest.raises(ll.errors.ArgumentError, match="why_none"):
        ll.optim.global_norm([None])


CLIPS = [ll.optim.clip_by_value, ll.optim.clip_by_norm, ll.optim.clip_by_global_norm]


@pytest.mark.parametrize("clip", CLIPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("limit", [0.5, 2.0, 100.0, math.inf])
def test_a_limit_may_be_a_tensor_and_infinite_staged_and_not(clip, limit):
    g = [ll.constant([3.0, 4.0]), ll.zeros(2)]
    wanted = [x.tolist() for x in clip(g, limit)]
    if math.isinf(limit):
        assert wanted == [[3.0, 4.0], [0.0, 0.0]]
    staged = ll.function(lambda limit: clip(g, limit))
    for found in (clip(g, ll.constant(limit)), staged(ll.constant(limit)), clip(g, ll.Variable(limit))):
        assert [x.tolist() for x in found] == wanted


def test_the_clipping_of_zeros_has_a_gradient():
    def clipped_length(x):
        return ll.sum(ll.optim.clip_by_global_norm([x], 2.5)[0])

    assert ll.grad(clipped_length)(ll.zeros(2)).tolist() == [1.0, 1.0]
    assert ll.grad(clipped_length)(ll.constant([3.0, 4.0])).numpy() == pytest.approx([0.08, -0.06], abs=1e-6)


def test_a_limit_is_one_number():
    with pytest.raises(ll.errors.ArgumentError, match=r"limit must be a number or a floating scalar, got f32\[2\]"):
        ll.optim.clip_by_norm([ll.ones(2)], ll.ones(2))


@pytest.mark.parametrize("clip", [ll.optim.clip_by_value, ll.optim.clip_by_norm, ll.optim.clip_by_global_norm])
def test_the_ops_of_a_clipping_are_one_group_of_a_graph(clip):
    step = ll.function(lambda x, y: clip([x, y], 1.0))
    step(ll.ones((2,)), ll.ones((3,)))
    assert {node.scope for node in step.trace_cache[0].graph.nodes if str(node.op) != "constant"} == {
        f"{clip.__name__}/"
    }
