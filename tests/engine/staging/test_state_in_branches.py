"""Weights that are made while a branch is traced: they are drawn whether or not a run takes it, and that is said."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import limelight as ll

X = ll.ones((2, 3))


def by_cond(net: Any, taken: bool) -> Any:
    return ll.function(lambda x: ll.cond((ll.sum(x) > 0.0) == taken, lambda: net(x), lambda: x[:, :2]))


def by_switch(net: Any, taken: bool) -> Any:
    return ll.function(lambda x: ll.switch(ll.astype(ll.sum(x), ll.int32) // 6, [lambda: x[:, :2], lambda: net(x)]))


def by_if(net: Any, taken: bool) -> Any:
    @ll.function(autograph=True)
    def f(x: Any) -> Any:
        y = x[:, :2]
        if (ll.sum(x) > 0.0) == taken:
            y = net(x)
        return y

    return f


@pytest.mark.parametrize("staged", [by_cond, by_switch, by_if])
def test_a_draw_in_a_branch_is_told_of(staged: Any) -> None:
    with pytest.warns(UserWarning, match="drawn while a branch is traced"):
        staged(ll.nn.Dense(2), True)(X)
    for net in (ll.nn.Dense(2, kernel_initializer="ones"), ll.nn.Dense(2)):
        if net.kernel_initializer.__name__ != "ones":
            net(X)  # as the warning says
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            staged(net, False)(X)


def test_a_draw_in_a_loop_is_not() -> None:
    net = ll.nn.Dense(2)
    f = ll.function(lambda x: ll.scan(lambda c, i: (c + net(x), i), ll.zeros((2, 2)), ll.arange(2))[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(X)
