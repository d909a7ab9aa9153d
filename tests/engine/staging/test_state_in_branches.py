"""Weights that are made while a branch is traced: they are there whether or not a run takes it, and that is said."""

from __future__ import annotations

import warnings
from collections.abc import Callable
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


def by_and(net: Any, taken: bool) -> Any:
    return ll.function(lambda x: (ll.sum(x) > 0.0) == taken and ll.any(net(x) > 0.0), autograph=True)


BRANCHES = [by_cond, by_switch, by_if, by_and]


@pytest.mark.parametrize("staged", BRANCHES)
def test_weights_made_in_a_branch_are_told_of(staged: Any) -> None:
    with pytest.warns(UserWarning, match="is made while a branch is traced.*the random numbers that follow are others"):
        staged(ll.nn.Dense(2), True)(X)
    with pytest.warns(UserWarning, match=r"is made while a branch is traced.*first runs\. For the same in both"):
        staged(ll.nn.Dense(2, kernel_initializer="ones"), True)(X)
    net = ll.nn.Dense(2)
    net(X)  # as the warning says
    says_nothing(staged(net, False), X)


def says_nothing(f: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return f(*args)


def positive(x: Any) -> Any:
    return ll.sum(x) > 0.0


def nested(net: Any, x: Any) -> Any:
    return ll.cond(ll.max(x) > 5.0, lambda: net(x) * 2.0, lambda: net(x) * 3.0)


IN_ALL: dict[str, Callable[[Any, Any], Any]] = {
    "cond": lambda net, x: ll.cond(positive(x), lambda: net(x), lambda: -net(x)),
    "switch": lambda net, x: ll.switch(ll.astype(ll.sum(x), ll.int32) - 6, [lambda: net(x), lambda: -net(x)]),
    "nested": lambda net, x: ll.cond(positive(x), lambda: nested(net, x), lambda: -net(x)),
    "twice": lambda net, x: ll.cond(positive(x), lambda: net(x) + nested(net, x), lambda: -net(x)),
    "staged within": lambda net, x: ll.cond(positive(x), lambda: ll.function(net)(x), lambda: -net(x)),
    "loop within": lambda net, x: ll.cond(
        positive(x), lambda: ll.scan(lambda c, i: (c + net(x), i), ll.zeros((2, 2)), ll.arange(2))[0], lambda: -net(x)
    ),
}


@pytest.mark.parametrize("branches", IN_ALL.values(), ids=IN_ALL)
def test_what_each_branch_uses_is_as_in_eager_code(branches: Any) -> None:
    found = {}
    for run in (lambda f: f, ll.function):
        ll.random.seed(3)
        net = ll.nn.Sequential(ll.nn.Dense(4), ll.nn.BatchNorm(), ll.nn.Dense(2))
        y = says_nothing(run(lambda x, net=net: branches(net, x)), X)
        found[run is ll.function] = [*ll.reshape(y, -1).tolist(), ll.random.normal(()).item()]
    assert found[True] == pytest.approx(found[False], rel=1e-5)


IN_SOME: dict[str, Callable[[Any, Any], Any]] = {
    "a branch within": lambda net, x: ll.cond(
        positive(x), lambda: net(x), lambda: ll.cond(ll.max(x) > 5.0, lambda: net(x), lambda: x[:, :2])
    ),
    "one of three": lambda net, x: ll.switch(
        ll.astype(ll.sum(x), ll.int32) - 6, [lambda: net(x), lambda: x[:, :2], lambda: -net(x)]
    ),
    "other draws first": lambda net, x: ll.cond(positive(x), lambda: net(x), lambda: ll.random.normal((2, 2)) + net(x)),
    "another order": lambda net, x: ll.cond(
        positive(x),
        lambda: net[0](x)[:, :2] + net[1](x),
        lambda: net[1](x) + net[0](x)[:, :2],
    ),
}


@pytest.mark.parametrize("branches", IN_SOME.values(), ids=IN_SOME)
def test_what_only_some_branches_use_is_told_of(branches: Any) -> None:
    net = ll.nn.Sequential(ll.nn.Dense(3), ll.nn.Dense(2))
    with pytest.warns(UserWarning, match="is made while a branch is traced"):
        ll.function(lambda x: branches(net, x))(X)


def test_a_variable_of_ones_own_is_told_of() -> None:
    class Counting(ll.Module):
        count = None

        def __call__(self, x: Any) -> Any:
            if self.count is None:
                self.count = ll.Variable(0.0)
            return x + self.count

    counting = Counting()
    with pytest.warns(UserWarning, match="a variable is made while a branch is traced.*outside of the branch"):
        ll.function(lambda x: ll.cond(positive(x), lambda: counting(x), lambda: x))(X)


def test_a_draw_in_a_loop_is_not() -> None:
    net = ll.nn.Dense(2)
    f = ll.function(lambda x: ll.scan(lambda c, i: (c + net(x), i), ll.zeros((2, 2)), ll.arange(2))[0])
    says_nothing(f, X)


def by_while_loop(net: Any, x: Any, rounds: Any) -> Any:
    return ll.while_loop(lambda i, y: i < rounds, lambda i, y: (i + 1, net(y)), (0, x))[1]


def by_scan(net: Any, x: Any, rounds: Any) -> Any:
    return ll.scan(lambda y, row: (net(y), None), x, None, rounds)[0]


def by_while(net: Any, x: Any, rounds: Any) -> Any:
    i = 0
    while i < rounds:
        x = net(x)
        i += 1
    return x


def by_for(net: Any, x: Any, rounds: Any) -> Any:
    total = 0.0  # a number whose dtype a trial round tells
    for _ in range(rounds):
        total = total + ll.sum(net(x))
    return total


LOOPS = [by_while_loop, by_scan, by_while, by_for]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_that_has_no_round_makes_none_and_that_is_told(loop: Any) -> None:
    net = ll.nn.Dense(3)
    f = ll.function(lambda x, rounds: loop(net, x, rounds), autograph=True)
    with pytest.warns(UserWarning, match="while the body of a loop is traced, which has no round.*call the layer once"):
        f(X, ll.constant(0))
    says_nothing(f, X, ll.constant(0))


@pytest.mark.parametrize("loop", LOOPS)
def test_of_a_loop_with_a_round_nothing_is_told(loop: Any) -> None:
    net = ll.nn.Dense(3)
    f = ll.function(lambda x, rounds: loop(net, x, rounds), autograph=True)
    says_nothing(f, X, ll.constant(2))


def test_a_loop_in_a_branch_is_the_branchs_to_tell() -> None:
    net = ll.nn.Dense(3)
    with pytest.warns(UserWarning, match="is made while a branch is traced"):
        ll.function(lambda x: ll.cond(positive(x), lambda: by_while_loop(net, x, 2), lambda: x))(X)


def test_what_only_a_batch_tells_is_not_told() -> None:
    """Whether there is a first batch only reading it says."""
    net = ll.nn.Dense(3)

    @ll.function(autograph=True)
    def f(data: Any) -> Any:
        total = ll.constant(0.0)
        for x in data:
            total = total + ll.sum(net(x))
        return total

    says_nothing(f, ll.data.from_arrays(ll.ones((4, 3))).batch(2))
