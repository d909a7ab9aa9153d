"""Nothing of ll.nn goes without a case; and large arrays, which go another way."""

from __future__ import annotations

import cases_networks
import numpy as np
import pytest
from cases import CASES

from limelight.nn import functional
from limelight.ops.nn import standardise

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


@pytest.mark.parametrize("axes", [(0, 1), (2,), (1, 2), (0, 1, 2), (1,), (0, 2)])
def test_standardise_piece_by_piece(axes, monkeypatch):
    monkeypatch.setattr(standardise, "PIECE", 7)
    rng = np.random.default_rng(0)
    x, g = rng.uniform(-1, 1, (2, 2, 5, 9)).transpose(0, 1, 3, 2).astype(np.float32)
    wanted = standardise._kernel(np, x, axes, 0.1)
    for found, value in zip(standardise._kernel_numpy(np, x, axes, 0.1), wanted, strict=True):
        np.testing.assert_allclose(found, value, atol=1e-6)
        assert found.shape == value.shape
    given = (g, wanted[0], wanted[2], axes, 0.1)
    found = standardise._backward_numpy(np, *given)
    np.testing.assert_allclose(found, standardise._backward_kernel(np, *given), atol=1e-6)
