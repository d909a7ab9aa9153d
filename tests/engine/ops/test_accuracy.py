"""Sums of short floats are made in longer ones; integers keep their dtype, or at least 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")

N = 2**12  # adding ones one by one stops at 2048 in float16 and at 256 in bfloat16


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_sums_of_short_floats(dtype, stage):
    x = ll.ones((N, 2), dtype=dtype)
    assert stage(lambda x: ll.sum(x, axis=0))(x).tolist() == [N, N]
    assert stage(ll.sum)(x).item() == 2 * N
    assert stage(lambda x: ll.mean(x, axis=0))(x).tolist() == [1, 1]
    assert stage(lambda x: x.T @ x)(x).tolist() == [[N, N], [N, N]]
    assert stage(lambda x: x.sum_to((1, 2)))(x).tolist() == [[N, N]]
    assert stage(lambda x: ll.logsumexp(x * 0, axis=0))(x)[0].item() == pytest.approx(np.log(N), rel=1e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_the_gradient_of_a_short_bias(dtype, stage):
    x, b = ll.ones((N, 2), dtype=dtype), ll.zeros((2,), dtype=dtype)

    def gradient(x, b):
        with ll.GradientTape() as tape:
            tape.watch(b)
            y = x + b
        return tape.gradient(y, b)

    assert stage(gradient)(x, b).tolist() == [N, N]


@pytest.mark.parametrize(
    ("given", "made"), [("int8", "int32"), ("int32", "int32"), ("int64", "int64"), ("uint16", "uint32")]
)
def test_sums_of_integers(given, made):
    x = ll.full((3, 100), 100, dtype=given)
    for total in (ll.sum(x, axis=1), ll.function(lambda x: ll.sum(x, axis=1))(x), ll.cumsum(x, axis=1)[:, -1]):
        assert total.dtype.name == made
        assert total.tolist() == [10000] * 3


def test_softmax_of_short_floats_adds_up_to_one():
    x = ll.constant(np.linspace(-2, 2, 300), "float16")
    assert ll.nn.softmax(x).astype("float32").sum().item() == pytest.approx(1, abs=2e-3)
