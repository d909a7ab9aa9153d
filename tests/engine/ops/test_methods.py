"""Methods that people expect of a tensor, and those that are nobody's business."""

from __future__ import annotations

import pytest

import limelight as ll

X = ll.constant([[3.0, -1.25], [0.5, 2.75]])

METHODS = {
    "std": ((), {"axis": 1, "correction": 1}),
    "var": ((0,), {"keepdims": True}),
    "clip": ((0.0, 1.0), {}),
    "round": ((), {}),
    "abs": ((), {}),
    "cumsum": ((1,), {}),
    "sort": ((), {"axis": 0, "descending": True}),
}


@pytest.mark.parametrize("name", METHODS)
def test_the_method_is_the_function(name):
    args, options = METHODS[name]
    wanted = getattr(ll, name)(X, *args, **options)
    for x in (X, ll.Variable(X)):
        assert (getattr(x, name)(*args, **options) == wanted).numpy().all()
    assert (ll.function(lambda x: getattr(x, name)(*args, **options))(X) == wanted).numpy().all()


def test_what_only_gradients_need_is_private():
    assert not hasattr(X, "gamma_tail")
