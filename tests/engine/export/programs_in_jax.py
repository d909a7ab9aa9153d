"""What tests of StableHLO share: a program is run by JAX, beside the function that it was made of."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import stablehlo_table

HAS_JAX = all(importlib.util.find_spec(name) for name in ("jax", "flatbuffers"))
jax_only = pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed: pip install 'limelight[xla]'")


def run_back(path, *arrays):
    import jax  # where it is installed
    from jax import export

    with jax.enable_x64(True):
        return export.deserialize(bytearray(Path(path).read_bytes())).call(*arrays)


def same(f, path, *arrays):
    results = run_back(path, *arrays)
    for mine, theirs in zip(stablehlo_table.flat(results), stablehlo_table.flat(f(*arrays)), strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(np.asarray(mine), theirs.numpy(), rtol=2e-5, atol=1e-6)
