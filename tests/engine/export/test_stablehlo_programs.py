"""Programs in StableHLO whose shapes and positions are not known beforehand, and gradients of branches."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from programs_in_jax import jax_only, same

import limelight as ll

X = np.linspace(-1.0, 1.0, 15, dtype="float32").reshape(5, 3)
spec = ll.TensorSpec
rows = spec((None, 3))


def of_either_sign(x):
    """Its branches save other tensors for the gradient."""
    return ll.cond(x.sum() > 0, lambda: ll.sum(x[:2] ** 3), lambda: ll.exp(x).sum() + x[0, 0])


def of_three(x):
    branches = [lambda: ll.sum(x[:2] ** 3), lambda: x.sum() * 2.0, lambda: ll.sum(ll.sin(x))]
    return ll.switch(ll.astype(x[0, 0] > 0, "int32") * 2, branches)


@jax_only
@pytest.mark.parametrize("f", [of_either_sign, of_three, lambda x: (ll.grad(of_either_sign)(x) ** 2).sum()])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gradients_of_branches_that_save_different_things(f, sign, tmp_path):
    x = np.float32(sign) * abs(X)
    same(ll.grad(f), ll.export.stablehlo(ll.grad(f), tmp_path / "f", ll.constant(x)), x)


def powers(x):
    return ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x[i] + x[-i]), (ll.constant(0), ll.ones(3)))[1]


def doubled_rows(x):
    return ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.at[i].add(x[i])), (ll.constant(0), x))[1]


def of_rows(x):
    return ll.scan(lambda c, i: (c * x[i], c), x[0], ll.arange(3))[0].sum()


@jax_only
@pytest.mark.parametrize(("f", "n"), [(powers, 5), (powers, None), (doubled_rows, None), (ll.grad(of_rows), 5)])
def test_positions_that_are_tensors(f, n, tmp_path):
    same(f, ll.export.stablehlo(f, tmp_path / "f", spec((n, 3))), X)


def loss(x):
    return ((ll.tanh(x) - x.mean(0)) ** 2).mean()


UNKNOWN = [
    ll.value_and_grad(loss),
    ll.grad(lambda x: ll.nn.log_softmax(x)[0].sum() + ll.concat([x, x]).reshape((-1,)).std()),
    lambda x: (ll.std(x, axis=0), ll.var(x, correction=1)),
    lambda x: ll.zeros(ll.shape_of(x)[::-1]) + ll.sum(x) / ll.astype(ll.shape_of(x)[0] * 2, "float32"),
    lambda x: ll.cond(x[0, 0] > 0, lambda: ll.shape_of(x), lambda: ll.shape_of(x) * 2),
]


@jax_only
@pytest.mark.parametrize("f", UNKNOWN)
def test_shapes_of_unknown_sizes_and_gradients_through_them(f, tmp_path):
    path = ll.export.stablehlo(f, tmp_path / "f", rows)
    same(f, path, X)
    same(f, path, X[:2])
