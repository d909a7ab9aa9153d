"""Reductions in CuPy over leading axes, which run in two stages: the same results, in few pieces of work."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretended_gpu import pretended_gpus

import limelight as ll
from limelight.ops import _gpu_reductions
from limelight.ops._gpu_reductions import _parts

REAL = {name: getattr(_gpu_reductions, name) for name in ("RESULTS", "FEWEST")}


@pytest.fixture(scope="module")
def cupy(no_gpu):
    if no_gpu is None:
        pytest.skip("a real GPU is here, and its kernels would be taken for those of the pretended one")
    with pretended_gpus() as module, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_gpu_reductions, "RESULTS", 64)
        patch.setattr(_gpu_reductions, "FEWEST", 2)
        _parts.cache_clear()
        yield module
        _parts.cache_clear()


NAMES = ["sum", "prod", "max", "min", "any", "all", "mean", "count_nonzero", "var"]


@settings(max_examples=40)
@given(
    st.sampled_from(NAMES),
    st.lists(st.integers(0, 8), min_size=1, max_size=4),
    st.data(),
    st.sampled_from(["float32", "float16", "int32", "bool", "complex64"]),
)
def test_results(cupy, name, shape, data, dtype):
    kinds = {"max": "fi", "min": "fi", "var": "f", "mean": "fc", "prod": "fic", "sum": "fic"}
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1), max_size=len(shape)))
    keepdims = data.draw(st.booleans())
    values = np.random.default_rng(0).integers(-2, 3, shape) * (0.5 if dtype[0] in "fc" else 1)
    x = values.astype(dtype)
    if x.dtype.kind not in kinds.get(name, "fibc") or (name in ("max", "min") and 0 in shape):
        return
    axis = tuple(sorted(axes))
    wanted = getattr(ll, name)(ll.constant(x), axis, keepdims)
    found = getattr(ll, name)(ll.constant(x).to("GPU:0"), axis, keepdims)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-3, atol=1e-3)


def test_long_ones_have_two_stages_and_others_one(cupy):
    def launched(x, axis):
        cupy._hardware.counts.pop("launches", None)
        before = [s.clock[s.key] for s in cupy._hardware._streams.values() if s.device_id == 0]
        ll.sum(x, axis)
        after = [s.clock[s.key] for s in cupy._hardware._streams.values() if s.device_id == 0]
        return sum(after) - sum(before)

    x = ll.ones((8, 12, 4)).to("GPU:0")
    views = launched(ll.ones((2, 2)).to("GPU:0"), 0)
    assert launched(x, (0, 1)) > launched(x, 2) == launched(x, None) == launched(x.mT, (0, 1)) == views


@pytest.mark.parametrize(("name", "value"), [("sum", 1000.0), ("prod", 4.0)])
def test_short_floats_do_not_overflow_between_the_stages(cupy, name, value):
    """Halves whose totals are beyond 65504, but not both together."""
    x = np.full((256, 2), value, "float16")
    x[128:] = -value if name == "sum" else 1 / value
    x = ll.constant(x if name == "sum" else x[96:160])
    np.testing.assert_array_equal(getattr(ll, name)(x.to("GPU:0"), 0).numpy(), getattr(ll, name)(x, 0).numpy())


def test_parts(monkeypatch):
    for name, value in REAL.items():
        monkeypatch.setattr(_gpu_reductions, name, value)
    _parts.cache_clear()
    assert _parts(32 * 112 * 112, 64) == 1024
    assert _parts(1568, 2048) == 1  # too few rows a part
    assert _parts(1_000_003, 64) == 1  # a prime number
    rows = 64 * 1000
    assert rows % _parts(rows, 10) == 0
    assert 64 <= _parts(rows, 10) <= 1000
    _parts.cache_clear()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 3)])
@pytest.mark.parametrize("axis", [None, -1, (0,)])
def test_logsumexp_of_none(cupy, shape, axis):
    x = ll.zeros(shape)
    np.testing.assert_array_equal(ll.logsumexp(x.to("GPU:0"), axis).numpy(), ll.logsumexp(x, axis).numpy())
