"""Reductions that all cores share have the bits of NumPy's, over whichever axes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import limelight as ll
from limelight.core import cores
from limelight.executors import base
from limelight.executors.plan import shared_reductions

SHAPES = [
    (7, 5003),
    (4099, 6),
    (3, 5, 2000),
    (12, 30, 70),
    (2, 3, 4, 1000),
    (1, 40_000),
    (40_000,),
    (3, 0, 5000),
    (2, 3000, 4),
]
REDUCTIONS = {"sum": ll.sum, "max": ll.max, "min": ll.min, "prod": ll.prod, "any": ll.any, "all": ll.all}


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Three threads and small pieces; the result counts what was cut."""
    for module in (cores, shared_reductions):
        monkeypatch.setattr(module, "WORTH", 1)
        monkeypatch.setattr(module, "threads", lambda: 3)
    monkeypatch.setattr(shared_reductions, "PIECE", 1000)
    cut = []
    for_each = shared_reductions.for_each
    monkeypatch.setattr(shared_reductions, "for_each", lambda f, p, size: cut.append(len(p)) or for_each(f, p, size))
    return cut


def axes_of(shape):
    return [axes for n in range(1, len(shape) + 1) for axes in itertools.combinations(range(len(shape)), n)]


@pytest.mark.parametrize("executor", ["plan", "loops"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int8", "uint16", "int64", "bool"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bits_are_those_of_numpy(shape, dtype, executor, shared):
    x = (np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    axes, names = axes_of(shape), [name for name in REDUCTIONS if accepts(name, x)]
    f = ll.function(lambda x: [[REDUCTIONS[name](x, axis, axis[0] == 0) for axis in axes] for name in names])
    with base.chosen.override("plan"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_reductions, "threads", lambda: 1)
        wanted = ll.tree.map(lambda y: y.numpy(), ll.function(f.python_function)(ll.constant(x)))
        assert not shared
    with base.chosen.override(executor):
        found = ll.tree.map(lambda y: y.numpy(), f(ll.constant(x)))
    for one, other in zip(ll.tree.leaves(found), ll.tree.leaves(wanted), strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    assert executor == "loops" or x.shape[0] == 1 or x.ndim == 1 or not x.size or max(shared) > 1


def accepts(name, x):
    if x.dtype.kind in "bc" and name not in {"b": ("any", "all"), "c": ("sum", "prod")}[x.dtype.kind]:
        return False
    return x.size or name in ("sum", "prod", "any", "all")


def test_other_orders_of_memory_are_left_to_numpy(shared):
    x = np.asfortranarray(np.random.default_rng(1).normal(size=(300, 400)).astype(np.float32))
    with base.chosen.override("plan"):
        found = ll.function(lambda x: ll.sum(x, 1))(ll.constant(x))
    np.testing.assert_allclose(found.numpy(), x.sum(1), rtol=1e-5)
