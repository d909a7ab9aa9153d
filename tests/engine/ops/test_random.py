"""Random numbers: one seeded stream, drawn when ops run; dropout; gradients by reparameterisation."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, DTypeError

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")


def test_equal_seeds_give_equal_streams():
    ll.random.seed(5)
    first = [
        ll.random.normal((3,)).tolist(),
        ll.random.uniform((2,)).tolist(),
        ll.random.integers(9, shape=(4,)).tolist(),
    ]
    ll.random.seed(5)
    again = [
        ll.random.normal((3,)).tolist(),
        ll.random.uniform((2,)).tolist(),
        ll.random.integers(9, shape=(4,)).tolist(),
    ]
    assert first == again
    ll.random.seed(6)
    assert first[0] != ll.random.normal((3,)).tolist()


def test_a_staged_function_draws_anew_on_every_call():
    F = ll.function(lambda: (ll.random.normal((3,)), ll.random.normal((3,))))
    a, b = F()
    c, _ = F()
    assert F.trace_count == 1
    assert len({tuple(x.tolist()) for x in (a, b, c)}) == 3


def test_a_staged_function_takes_from_the_same_stream_and_heeds_a_later_seed():
    F = ll.function(lambda: ll.random.uniform((2,)) + ll.random.normal((2,)))
    F()
    ll.random.seed(8)
    staged = F().tolist()
    ll.random.seed(8)
    assert staged == (ll.random.uniform((2,)) + ll.random.normal((2,))).tolist()


def test_a_draw_whose_result_nobody_uses_still_advances_the_stream():
    def twice():
        ll.random.uniform((2,))
        return ll.random.uniform((2,))

    ll.random.seed(9)
    eager = twice().tolist()
    ll.random.seed(9)
    assert ll.function(twice)().tolist() == eager


def test_draws_of_unknown_size():
    F = ll.function(lambda x: ll.random.normal(ll.shape_of(x)) * x, input_signature=[ll.TensorSpec((None, 2))])
    assert F(ll.ones((3, 2))).shape == (3, 2)
    assert F(ll.ones((5, 2))).shape == (5, 2)
    G = ll.function(ll.random.permutation, input_signature=[ll.TensorSpec((None,), "int32")])
    assert sorted(G(ll.arange(6)).tolist()) == list(range(6))


def test_normal_and_uniform_take_gradients_to_their_parameters():
    mean, spread = ll.constant([1.0, 2.0]), ll.constant(3.0)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch([mean, spread])
        z = ll.random.normal((4, 2), mean, spread)
        u = ll.random.uniform((4, 2), mean, spread)
    assert tape.gradient(z, mean).tolist() == [4.0, 4.0]
    np.testing.assert_allclose(tape.gradient(z, spread).item(), ((z - mean) / spread).sum().item(), rtol=1e-5)
    share = (u - mean) / (spread - mean)
    np.testing.assert_allclose(tape.gradient(u, mean).numpy(), (1 - share).sum(0).numpy(), rtol=1e-5)


def test_moments_with_parameters():
    ll.random.seed(1)
    z = ll.random.normal((5000,), 3.0, 2.0).numpy()
    assert abs(z.mean() - 3) < 0.1
    assert abs(z.std() - 2) < 0.1
    u = ll.random.uniform((5000,), -2.0, 6.0).numpy()
    assert u.min() >= -2
    assert u.max() <= 6
    assert abs(u.mean() - 2) < 0.15
    assert ll.random.bernoulli(0.25, (5000,)).astype("float32").mean().item() == pytest.approx(0.25, abs=0.03)
    assert ll.random.bernoulli(ll.constant([0.0, 1.0])).tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_uniform_numbers_in_short_dtypes_stay_below_one(dtype):
    assert ll.random.uniform((20000,), dtype=dtype).max().item() < 1


def test_a_permutation_of_a_tensor_keeps_its_slices():
    x = ll.constant([[1, 2], [3, 4], [5, 6]])
    found = ll.random.permutation(x)
    assert sorted(found.tolist()) == x.tolist()
    assert ll.random.permutation(0).shape == (0,)


def test_integers_reach_the_ends_of_their_dtype():
    found = ll.random.integers(-128, 128, (4000,), dtype="int8")
    assert found.dtype == ll.int8
    assert found.min().item() == -128
    assert found.max().item() == 127
    with pytest.raises(ArgumentError, match="more than uint8 can hold"):
        ll.random.integers(0, 257, dtype="uint8")
    with pytest.raises(DTypeError, match="integers"):
        ll.random.normal((2,), dtype="int32")


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_dropout_drops_scales_and_pulls_back_through_the_same_mask(stage):
    ll.random.seed(2)
    x = ll.constant(np.linspace(1, 2, 1000, dtype=np.float32))

    def both(x):
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = ll.nn.dropout(x, 0.25)
        return y, tape.gradient(y, x)

    y, g = stage(both)(x)
    kept = y.numpy() != 0
    assert kept.mean() == pytest.approx(0.75, abs=0.05)
    np.testing.assert_allclose(y.numpy()[kept], x.numpy()[kept] / 0.75, rtol=1e-6)
    np.testing.assert_allclose(g.numpy(), np.where(kept, 1 / 0.75, 0), rtol=1e-6)


def test_dropout_around_a_staged_function_uses_one_mask():
    x = ll.ones((1000,))
    F = ll.function(lambda x: ll.nn.dropout(x, 0.5))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = F(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())


def test_threads_share_the_stream_without_damage():
    drawn = []

    def draw():
        drawn.extend(float(ll.random.uniform().item()) for _ in range(200))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) > 790
