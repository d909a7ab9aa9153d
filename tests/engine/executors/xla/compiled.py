"""What tests of the executor `xla` share."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import limelight as ll

HAS_JAX = importlib.util.find_spec("jax") is not None
jax_only = pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed: pip install 'limelight[xla]'")

X = np.linspace(-1.0, 1.3, 15, dtype="float32").reshape(5, 3)
ROWS = ll.TensorSpec((None, 3))


def both_ways(f: Callable[..., Any], variables: Sequence[ll.Variable], *arrays: Any) -> Sequence[Any]:
    """The results of `f` staged for the plan and compiled, which must agree, as must what variables hold afterwards."""
    first = [v.numpy() for v in variables]
    found = []
    for executor in ("plan", "xla"):
        for v, x in zip(variables, first, strict=True):
            v.assign(x)
        with ll.config.executor(executor):
            staged = ll.function(f)
            results = [staged(*map(ll.constant, arrays)) for _ in range(2)]
        assert staged.trace_cache[0].tier == executor, staged.trace_cache[0].tier_reason
        found.append((results, [v.read_value() for v in variables]))
    plan, compiled = found
    for x, y in zip(ll.tree.leaves(plan), ll.tree.leaves(compiled), strict=True):
        assert x.spec == y.spec
        np.testing.assert_allclose(y.numpy(), x.numpy(), rtol=2e-5, atol=1e-6)
    for v, x in zip(variables, first, strict=True):
        v.assign(x)
    return [result.numpy() if hasattr(result, "numpy") else result for result in compiled[0]]


def reason(f: Any, words: str) -> bool:
    """Whether the entry of a function says these words, a pattern, of why it is not compiled."""
    said = f.trace_cache[0].tier_reason
    assert re.search(words, said), said
    return True
