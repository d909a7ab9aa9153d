"""Section 4.2, gradients of staged code: behaviours 60 to 71."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both, gradient, item, slope_of

import limelight as ll

# 60 cond


@both
def test_060_gradients_flow_through_the_branch_taken(stage: Callable[..., Any]) -> None:
    captured = ll.constant(2.0)

    @stage
    def f(x: Any, c: Any) -> Any:
        return ll.cond(x > 0, lambda: x * x * c, lambda: ll.cond(x < -5, lambda: x * 100.0, lambda: x * x * x))

    for value, expected, of_c in ((3.0, 12.0, 9.0), (-2.0, 12.0, None), (-6.0, 100.0, None)):
        found = gradient(f, ll.constant(value), captured)
        assert found[0].item() == expected
        assert item(found[1]) in ((of_c,) if of_c else (None, 0.0))


@both
def test_060_second_order_through_cond(stage: Callable[..., Any]) -> None:
    @stage
    def f(x: Any) -> Any:
        return ll.cond(x > 0, lambda: x * x * x, lambda: x * x)

    for value, expected in ((2.0, 12.0), (-2.0, 2.0)):
        (g,) = gradient(lambda x: gradient(f, x)[0], ll.constant(value))
        assert g.item() == expected


# 61 while_loop


@both
def test_061_gradients_through_loops_of_any_length(stage: Callable[..., Any]) -> None:
    v = ll.Variable(2.0)

    @stage
    def power(x: Any, n: Any, scale: Any) -> Any:
        body = lambda i, y: (i + 1, y * x * v + scale)  # noqa: E731
        return ll.while_loop(lambda i, y: i < n, body, (0, ll.constant(1.0)))[1]

    x, scale = ll.constant(0.5), ll.constant(0.25)
    for n in (0, 1, 4):
        with ll.GradientTape() as tape:
            tape.watch([x, scale])
            y = power(x, ll.constant(n), scale)
        found = [item(g) for g in tape.gradient(y, [x, v, scale], unconnected_gradients="zero")]
        a = np.float64(0.5 * 2)  # y = a**n + scale * (1 + a + ... + a**(n-1)), at a = 1
        by_a = n * a ** (n - 1) + 0.25 * sum(k * a ** (k - 1) for k in range(n)) if n else 0.0
        assert found == pytest.approx([by_a * 2, by_a * 0.5, float(n)])


@both
def test_061_several_variables_nested_loops_and_second_order(stage: Callable[..., Any]) -> None:
    @stage
    def f(x: Any) -> Any:
        def outer(i: Any, a: Any, b: Any) -> Any:
            inner = ll.while_loop(lambda j, c: j < 2, lambda j, c: (j + 1, c * x), (0, a))
            return i + 1, inner[1], b + a

        return ll.while_loop(lambda i, *_: i < 2, outer, (0, x, x * 0.0))[1:]

    # a = x, x**3, x**5; b = x + x**3
    x = ll.constant(2.0, dtype="float64")
    (first,) = gradient(f, x)
    assert first.item() == pytest.approx(5 * 16 + 1 + 3 * 4)
    (second,) = gradient(lambda v: gradient(f, v)[0], x)
    assert second.item() == pytest.approx(20 * 8 + 6 * 2)


@both
def test_061_zero_iterations_are_the_identity_whatever_the_body_does(stage: Callable[..., Any]) -> None:
    @stage
    def f(x: Any, z: Any, n: Any) -> Any:
        return ll.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, z * 2.0), (0, x))[1]

    @stage
    def constant(x: Any, n: Any) -> Any:
        return ll.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, ll.zeros(())), (0, x))[1]

    x, z = ll.constant(3.0), ll.constant(4.0)
    for n, expected in ((0, [1.0, 0.0]), (1, [0.0, 2.0]), (3, [0.0, 2.0])):
        found = gradient(lambda x, z, n=n: f(x, z, ll.constant(n)), x, z, unconnected_gradients="zero")
        assert [g.item() for g in found] == expected
        (g,) = gradient(lambda x, n=n: constant(x, ll.constant(n)), x, unconnected_gradients="zero")
        assert g.item() == expected[0]


# 62 What a loop keeps


def test_062_loops_keep_what_their_backward_needs() -> None:
    @ll.function
    def f(x: Any, n: Any) -> Any:
        return ll.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, ll.tanh(y) + x), (0, x * 1.0))[1]

    x = ll.ones((100,))
    sizes = []
    for n in (0, 10, 20):
        with ll.GradientTape() as tape:
            tape.watch(x)
            f(x, ll.constant(n))
        sizes.append(tape.saved_bytes)
    row = 100 * 4 + 1
    assert (
        sizes[2] - sizes[1] == sizes[1] - sizes[0] == 10 * row
    )  # tanh keeps its output, addition nothing, the loop a flag


@both
def test_062_a_loop_without_gradient_keeps_nothing(stage: Callable[..., Any]) -> None:
    v, x = ll.Variable(2.0), ll.ones((100,))

    def loop(x: Any, back_prop: bool) -> Any:
        return ll.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, ll.tanh(y) * v), (0, x), back_prop=back_prop)[1]

    values = {}
    for back_prop in (True, False):
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = stage(lambda x, b=back_prop: loop(x, b))(x)
        values[back_prop] = y.numpy()
        assert (tape.saved_bytes > 0) is back_prop
        assert [g is not None for g in tape.gradient(y, [x, v])] == [back_prop] * 2
    np.testing.assert_array_equal(values[False], values[True])
    with ll.GradientTape() as tape:
        tape.watch(x)
        _, same = stage(lambda x: ll.while_loop(lambda i, y: i < 0, lambda i, y: (i, y), (0, x), back_prop=False))(x)
    assert tape.gradient(same, x) is None, "no iterations are no way through either"


# 63, 64 The pair


def test_063_no_pair_is_built_until_a_tape_watches_an_input() -> None:
    v = ll.Variable(2.0)
    f = ll.function(lambda a: ll.tanh(a * v))
    x, other = ll.constant(1.0), ll.constant(5.0)
    pairs = lambda: len(f.trace_cache[0].function.pairs)  # noqa: E731
    f(x)
    with ll.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(other)
        f(x)
    assert pairs() == 0
    assert tape.entries == ()
    assert len(f.trace_cache[0].graph.outputs) == 1
    with ll.GradientTape() as tape:
        f(x)  # reads v
    assert pairs() == 1
    assert len(tape.entries) == 1
    (pair,) = f.trace_cache[0].function.pairs.values()
    assert len(pair.forward.graph.outputs) > 1
    assert len(f.trace_cache[0].graph.outputs) == 1


def test_064_the_pair_is_built_once_and_the_body_is_not_traced_again() -> None:
    traced: list[int] = []

    @ll.function
    def f(a: Any) -> Any:
        traced.append(1)
        return ll.tanh(a) * a

    x = ll.constant(0.5)
    for _ in range(3):
        f(x)
        gradient(f, x)
    function = f.trace_cache[0].function
    (pair,) = function.pairs.values()
    assert (len(traced), f.trace_count, len(f.trace_cache)) == (1, 1, 1)
    assert pair.forward.name == f"forward_{function.name}"
    assert len(pair._backward) == 1
    (backward, _), *_ = pair._backward.values()
    assert backward.name == f"backward_{function.name}"
    built = (pair, backward, len(function.pairs))
    gradient(f, x)
    assert built == (*function.pairs.values(), next(iter(pair._backward.values()))[0], len(function.pairs))


# 65 No recomputation


def test_065_staged_forward_and_backward_launch_no_more_than_eager() -> None:
    launched: list[str] = []

    def counted(a: Any) -> Any:
        launched.append("forward")
        return np.tanh(a)

    from limelight.core.eager import entry_point
    from limelight.core.op import Op

    op = Op(
        "counted",
        inputs="x",
        infer=lambda x: x,
        kernel=lambda xp, x: counted(x),
        vjp={"x": lambda g, out: g * (1 - out * out)},
    )
    run = entry_point(op)
    x = ll.constant([0.5, 1.0])
    expected = gradient(lambda a: run(a) * 2, x)[0].tolist()
    assert launched == ["forward"]
    f = ll.function(lambda a: run(a) * 2)
    f(x)
    launched.clear()
    assert gradient(f, x)[0].tolist() == expected
    assert launched == ["forward"]


def test_065_what_is_an_input_or_output_anyway_is_not_returned_twice() -> None:
    f = ll.function(lambda a, b: (ll.exp(a), a * b))
    gradient(f, ll.constant(0.5), ll.constant(2.0))
    (pair,) = f.trace_cache[0].function.pairs.values()
    assert len(pair.forward.graph.outputs) == 2  # exp needs its output, multiply its inputs


# 66 Backward is staged


def test_066_going_back_is_one_call_for_each_call() -> None:
    @ll.function
    def f(a: Any) -> Any:
        for _ in range(20):
            a = ll.tanh(a) * 1.5
        return a

    x = ll.constant(0.5)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(f(x))
    seen: list[Any] = []
    with ll.events.listen(seen.append, ll.events.OpRan):
        tape.gradient(y, x)
    assert [event.op for event in seen].count("call") == 2
    assert len(seen) <= 4  # and the ones to start from


@both
def test_066_backward_can_be_differentiated_and_traced(stage: Callable[..., Any]) -> None:
    f = ll.function(lambda a: a * a * a)
    slope = stage(lambda a: gradient(f, a)[0])
    curvature = stage(lambda a: gradient(slope, a)[0])
    assert slope(ll.constant(2.0)).item() == 12.0
    assert curvature(ll.constant(2.0)).item() == 12.0
    assert gradient(curvature, ll.constant(2.0))[0].item() == 6.0


# 67 Staging and differentiation in any order


@pytest.mark.parametrize("staged", list(itertools.product([False, True], repeat=5)), ids=str)
def test_067_alternating_staging_and_differentiation(staged: tuple[bool, ...]) -> None:
    x = ll.constant(0.7, dtype="float64")
    f: Any = ll.cos
    expected = [np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin, np.cos]
    for order, stage in enumerate(staged):
        f = ll.function(f) if stage else f
        assert f(x).item() == pytest.approx(expected[order](0.7)), f"order {order}"
        f = slope_of(f)


def test_067_persistent_tapes_outside_functions_that_hold_tapes() -> None:
    cos = ll.function(lambda v: gradient(ll.function(ll.sin), v)[0])
    x = ll.constant(0.7, dtype="float64")
    with ll.GradientTape(persistent=True) as t2:
        t2.watch(x)
        with ll.GradientTape(persistent=True) as t1:
            t1.watch(x)
            y = cos(x)
        dy = t1.gradient(y, x)
    found = [y.item(), dy.item(), t2.gradient(y, x).item(), t2.gradient(dy, x).item()]
    assert found == pytest.approx([np.cos(0.7), -np.sin(0.7), -np.sin(0.7), -np.cos(0.7)])


# 68 The incoming gradient


@both
def test_068_gradients_with_respect_to_the_incoming_gradient(stage: Callable[..., Any]) -> None:
    @stage
    def f(a: Any) -> Any:
        return a * a

    x, g = ll.constant([1.0, 2.0]), ll.constant([5.0, 7.0])
    with ll.GradientTape() as outer:
        outer.watch(g)
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        pulled = tape.gradient(y, x, output_gradients=g)
    assert pulled.tolist() == [10.0, 28.0]
    assert outer.gradient(pulled, g).tolist() == [2.0, 4.0]


# 69 Awkward outputs


def test_069_functions_with_awkward_outputs() -> None:
    captured = ll.constant(2.0)
    x = ll.constant(3.0)

    @ll.function
    def awkward(a: Any) -> Any:
        return None, ll.constant(7), a, captured, {"y": a * captured, "again": (a,)}, 5

    with ll.GradientTape(persistent=True) as tape:
        tape.watch([x, captured])
        none, seven, same, kept, rest, five = awkward(x)
        nothing = ll.function(lambda a: None)(x)
    assert (none, seven.item(), same.item(), kept.item(), five.item(), nothing) == (None, 7, 3.0, 2.0, 5, None)
    assert tape.gradient(rest["y"], x).item() == 2.0
    assert tape.gradient(rest["y"], captured).item() == 3.0
    assert tape.gradient(same, x).item() == 1.0
    assert tape.gradient(rest["again"], x).item() == 1.0
    assert tape.gradient(kept, captured).item() == 1.0
    assert tape.gradient(seven, x) is None


# 70 Nesting and mixing


def test_070_three_functions_deep_with_direct_calls_between() -> None:
    a = ll.function(lambda v: v * v)
    b = ll.function(lambda v: a(v) * v)
    c = ll.function(lambda v: b(v) + a(v))
    x = ll.constant(2.0)
    for _ in range(2):
        assert a(x).item() == 4.0
        assert gradient(c, x)[0].item() == 16.0
        assert b(x).item() == 8.0
        assert gradient(a, x)[0].item() == 4.0
        assert gradient(lambda v: c(v) * a(v) * v, x)[0].item() == pytest.approx(6 * 32 + 5 * 16)
        assert gradient(b, x)[0].item() == 12.0
        assert c(x).item() == 12.0
    assert [f.trace_count for f in (a, b, c)] == [1, 1, 1]


# 71 Recursion


def test_071_recursive_functions_differentiate() -> None:
    @ll.function
    def factorial(n: int, v: Any) -> Any:
        return v if n <= 1 else n * factorial(n - 1, v)

    x = ll.constant(1.0)
    assert factorial(5, x).item() == 120.0
    assert gradient(lambda v: factorial(5, v), x)[0].item() == 120.0

    @ll.function
    def even(n: int, v: Any) -> Any:
        return v * 2 if n == 0 else odd(n - 1, v)

    @ll.function
    def odd(n: int, v: Any) -> Any:
        return v * 3 if n == 0 else even(n - 1, v) * v

    x = ll.constant(2.0)
    assert even(4, x).item() == 16.0
    assert gradient(lambda v: even(4, v), x)[0].item() == 24.0
