"""Nothing of ll.nn goes without a case; and large arrays, which go another way."""

from __future__ import annotations

import math

import cases_networks
import numpy as np
import pytest
from cases import CASES

from limelight.core import native_package
from limelight.nn import functional
from limelight.ops.nn import _columns, batch_norm, standardise

ELSEWHERE = {
    "swish": "another name of silu",
    "global_avg_pool": "test_pooling.py, a mean",
    "global_max_pool": "test_pooling.py, a maximum",
    "pixel_shuffle": "nn/test_resizing.py, element by element",
    "resize": "nn/test_resizing.py, line by line",
}


@pytest.mark.parametrize("name", sorted(set(functional.__all__) - set(ELSEWHERE)))
def test_every_function_has_a_case(name):
    told = {word for case in cases_networks.CASES for word in case.note.split()} | {case.op for case in CASES}
    assert name in told, f"ll.nn.{name} has no case"


@pytest.fixture(params=["native", "NumPy"])
def pieces(request, monkeypatch):
    """Arrays of more than seven numbers go the way of large ones: through limelight-native, and without it."""
    monkeypatch.setattr(_columns, "PIECE", 7)
    monkeypatch.setattr(_columns, "SMALLEST", 7)
    if request.param == "NumPy":
        monkeypatch.setattr(_columns, "_native", lambda x: None)
    elif native_package.native_if_usable() is None:
        pytest.skip("limelight-native is not there")


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("axes", [(0, 1), (2,), (1, 2), (0, 1, 2), (1,), (0, 2)])
def test_standardise_piece_by_piece(axes):
    rng = np.random.default_rng(0)
    x, g = rng.uniform(-1, 1, (2, 2, 5, 9)).transpose(0, 1, 3, 2).astype(np.float32)
    wanted = standardise._kernel(np, x, axes, 0.1)
    for found, value in zip(standardise._kernel_numpy(np, x, axes, 0.1), wanted, strict=True):
        np.testing.assert_allclose(found, value, atol=1e-6)
        assert found.shape == value.shape
    given = (g, wanted[0], wanted[2], axes, 0.1)
    found = standardise._backward_numpy(np, *given)
    np.testing.assert_allclose(found, standardise._backward_kernel(np, *given), atol=1e-6)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(9, 4), (8, 1), (1, 9), (3, 5, 7, 3), (40, 40, 5), (0, 3)])
def test_batch_norm_piece_by_piece(shape, dtype):
    rng = np.random.default_rng(0)
    x, h = rng.normal([[5.0], [0.0]], 1, (2, math.prod(shape))).astype(dtype).reshape(2, *shape[::-1]).swapaxes(1, -1)
    scale, offset = rng.normal(size=(2, shape[-1])).astype(dtype)[:, ::-1]
    with np.errstate(all="ignore"):
        exact = batch_norm._kernel(np, *[z.astype(np.float64) for z in (x, scale, offset)], 0.1)
        found = batch_norm._kernel_numpy(np, x, scale, offset, 0.1)
        given = (h, x, *[z.astype(dtype) for z in exact[1:]], scale, 0.1)
        back = batch_norm._gradient_numpy(np, *given)
        exact_back = batch_norm._gradient_kernel(np, *[z.astype(np.float64) for z in given[:-1]], 0.1)
    for one, wanted in zip((*found, *back), (*exact, *exact_back), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=2e-3 if dtype is np.float32 else 1e-9)
        assert (one.shape, one.dtype) == (wanted.shape, dtype)
