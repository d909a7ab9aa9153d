"""`ll.fori_loop`: a scan where both bounds are known, a while loop where not."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight.errors import ArgumentError, ControlFlowError


def powers(lower, upper):
    return lambda x: ll.fori_loop(lower, upper, lambda i, s: {"p": s["p"] * x + i}, {"p": x})["p"]


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "staged"])
@pytest.mark.parametrize(("lower", "upper"), [(0, 3), (2, 4), (3, 3), (4, 2), (-2, 1)])
def test_it_is_pythons_loop(lower, upper, staged):
    def wanted(x):
        s = x
        for i in range(lower, upper):
            s = s * x + float(i)
        return s

    x = ll.constant(2.0, ll.float64)
    for bounds in ((lower, upper), (ll.constant(lower), upper), (lower, ll.constant(upper))):

        def f(x, bounds=bounds):
            return ll.fori_loop(*bounds, lambda i, s: {"p": s["p"] * x + ll.astype(i, x.dtype)}, {"p": x})["p"]

        run = ll.function(f) if staged else f
        assert run(x).item() == wanted(2.0)
        assert ll.grad(run)(x).item() == ll.grad(wanted)(x).item()


def test_known_bounds_make_a_scan():
    ops = {
        name: [node.op.name for node in ll.function(f).get_concrete_function(ll.constant(0)).graph.nodes]
        for name, f in {
            "known": lambda s: ll.fori_loop(0, 3, lambda i, s: s + i, s),
            "not": lambda n: ll.fori_loop(0, n, lambda i, s: s + i, n),
        }.items()
    }
    assert "scan" in ops["known"]
    assert "while" in str(ops["not"])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ArgumentError, match=r"fori_loop: upper must be an int or an integer scalar, got f32\[\]"):
        ll.fori_loop(0, 2.5, lambda i, s: s, ll.ones(()))
    with pytest.raises(ControlFlowError):
        ll.fori_loop(0, 2, lambda i, s: ll.stack([s, s]), ll.ones(()))
    with pytest.raises(ArgumentError, match="body"):
        ll.fori_loop(0, 2, None, ll.ones(()))
