"""Control flow: what does not add up."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import limelight as ll
from limelight.errors import (
    ArgumentError,
    ControlFlowError,
    LimelightError,
)

Clean = Any  # the fixture of conftest.py

pytestmark = pytest.mark.usefixtures("retraces_are_meant")

v3 = ll.ones((3,))
one = ll.constant(1.0)


def line_of(f: Callable[..., Any], offset: int = 0) -> str:
    """How errors name a line of a function of this file: by default its first."""
    return f"test_errors.py line {f.__code__.co_firstlineno + offset}"


class Mistake(NamedTuple):
    """A function that makes a mistake, the tensors to call it with, and what it should raise."""

    make: Callable[..., Any]
    given: tuple[Any, ...]
    error: type[LimelightError]
    message: str


# --- Control flow


FLOW = [
    Mistake(
        lambda a: ll.cond(a > 0, lambda: a, lambda: ll.astype(a, "int32")),
        (one,),
        ControlFlowError,
        "the output is f32.*i32",
    ),
    Mistake(lambda a: ll.cond(a > 0, lambda: (a, a), lambda: a), (one,), ControlFlowError, "different structures"),
    Mistake(lambda a: ll.cond(a > 0, lambda: None, lambda: a), (one,), ControlFlowError, "different structures"),
    Mistake(
        lambda a: ll.cond(a > 0, lambda: a, lambda: ll.ones((2,))),
        (one,),
        ControlFlowError,
        "dtypes and ranks must agree",
    ),
]
FLOW_ALSO_EAGERLY = [
    Mistake(
        lambda a: ll.cond(a, lambda: a, lambda: a), (one,), ControlFlowError, r"a boolean with one element, got f32\[\]"
    ),
    Mistake(lambda a: ll.cond(a > 0, lambda: a, lambda: a), (v3,), ControlFlowError, r"one element, got bool\[3\]"),
    Mistake(lambda a: ll.cond(a > 0, a, a), (one,), ArgumentError, "true_fn must be a function, got"),
    Mistake(lambda a: ll.while_loop(lambda i: i < 3, a, (a,)), (one,), ArgumentError, "body must be a function"),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: i, a), (one,), ControlFlowError, "must be a tuple or list"
    ),
    Mistake(lambda a: ll.while_loop(lambda i: i, lambda i: i, (a,)), (one,), ControlFlowError, "one boolean, got f32"),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: (i, i), (a,)),
        (one,),
        ControlFlowError,
        r"structure \(\*,\) on entry and \(\(\*, \*\),\)",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i, j: i < 3, lambda i, j: None, (a, a)), (one,), ControlFlowError, "got NoneType"
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i["x"] < 3, lambda i: {"y": i["x"]}, ({"x": a},)),
        (one,),
        ControlFlowError,
        r"structure \(\{x: \*\},\) on entry and",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: ll.astype(i, "float64"), (a,)),
        (one,),
        ControlFlowError,
        r"`loop_vars\[0\]` is f32\[\] on entry and f64\[\] after one iteration",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, ll.stack([j, j])), (a, a)),
        (one,),
        ControlFlowError,
        r"`loop_vars\[1\]` is f32\[\] on entry and f32\[2\] after one iteration",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: i + 1, (a,), maximum_iterations=-1),
        (one,),
        ArgumentError,
        "maximum_iterations must be a number from 0 on, .*, or None, got -1",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: i + 1, (a,), shape_invariants=[(), ()]),
        (one,),
        ControlFlowError,
        "2 shape_invariants for 1 loop variables",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i, d: i < 3, lambda *v: v, (a, {"k": a}), shape_invariants=[(), {"z": ()}]),
        (one,),
        ControlFlowError,
        r"shape_invariants.*or one shape for each of its leaves",
    ),
]


@pytest.mark.parametrize("mistake", FLOW + FLOW_ALSO_EAGERLY, ids=lambda m: re.sub(r"\W+", " ", m.message)[:30].strip())
def test_control_flow_that_does_not_add_up(mistake: Mistake, clean: Clean) -> None:
    f = ll.function(mistake.make)
    for run in (f, mistake.make) if mistake in FLOW_ALSO_EAGERLY else (f,):
        with clean(f), pytest.raises(mistake.error, match=mistake.message) as caught:
            run(*mistake.given)
        assert line_of(mistake.make) in str(caught.value)


# --- What adds up: branches and loops within one another, with functions, variables and tapes


both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])


def slopes(f: Callable[..., Any], *xs: Any) -> list[Any]:
    with ll.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return [g.tolist() for g in tape.gradient(y, xs, unconnected_gradients="zero")]


@both
def test_a_branch_may_do_anything(stage: Callable[..., Any]) -> None:
    v = ll.Variable(1.0)
    helper = ll.function(lambda a: a * v)

    @stage
    def f(a: Any) -> Any:
        def busy() -> Any:
            v.assign_add(1.0)
            inner = ll.while_loop(lambda i, b: i < 2, lambda i, b: (i + 1, helper(b)), (0, a))[1]
            return ll.cond(inner > 10, lambda: {"y": inner, "n": None}, lambda: {"y": -inner, "n": None})

        return ll.cond(a > 0, busy, lambda: {"y": a * 3, "n": None})

    assert f(ll.constant(1.0))["y"].item() == -4.0  # v is 2 by then
    assert f(ll.constant(2.0))["y"].item() == 18.0
    assert f(ll.constant(-1.0))["y"].item() == -3.0
    assert v.numpy() == 3.0


@both
def test_effects_in_branches_and_loops_keep_their_order_with_those_outside(stage: Callable[..., Any]) -> None:
    log: list[Any] = []
    v = ll.Variable(0.0)

    def note(what: str) -> None:
        ll.py_func(lambda t: log.append((what, t.item())), [v.read_value()], None)

    @stage
    def f(a: Any) -> Any:
        note("before")
        v.assign(a)

        def body(i: Any) -> Any:
            v.assign_add(1.0)
            note("body")
            return (i + 1,)

        ll.while_loop(lambda i: i < 2, body, (0,))
        note("between")
        ll.cond(a > 0, lambda: (v.assign(100.0), note("branch"))[1], lambda: None)
        note("after")
        return v.read_value()

    for _ in range(30):
        log.clear()
        v.assign(0.0)
        assert f(ll.constant(10.0)).item() == 100.0
        values = [
            ("before", 0.0),
            ("body", 11.0),
            ("body", 12.0),
            ("between", 12.0),
            ("branch", 100.0),
            ("after", 100.0),
        ]
        assert log == values


@both
def test_a_condition_may_read_state_and_have_effects(stage: Callable[..., Any]) -> None:
    v, asked = ll.Variable(0), []

    @stage
    def f() -> Any:
        def more(i: Any) -> Any:
            ll.py_func(lambda: asked.append(1), [], None)
            return v < 3

        def body(i: Any) -> Any:
            v.assign_add(1)
            return i * 2

        return ll.while_loop(more, body, (ll.constant(1.0),))[0]

    assert f().item() == 8.0
    assert v.numpy() == 3
    assert len(asked) == 4


@both
def test_loops_over_structures_and_any_sequence(stage: Callable[..., Any]) -> None:
    from collections import namedtuple

    Pair = namedtuple("Pair", "low high")

    @stage
    def f(a: Any) -> Any:
        narrow = lambda p: Pair(p.low + 1, {"h": p.high["h"] - a})  # noqa: E731
        tuple_ = ll.while_loop(lambda p: p.low < p.high["h"], narrow, (Pair(a * 0, {"h": a * 8}),))
        list_ = ll.while_loop(lambda i, xs: i < 2, lambda i, xs: [i + 1, [xs[1], xs[0] + 1]], [0, [a, a * 5]])
        return tuple_, list_

    (pair,), (count, numbers) = f(ll.constant(1.0))
    assert (pair.low.item(), pair.high["h"].item()) == (4.0, 4.0)
    assert (count.item(), [x.item() for x in numbers]) == (2, [2.0, 6.0])


@both
def test_bodies_with_dead_unused_and_integer_variables_differentiate(stage: Callable[..., Any]) -> None:
    @stage
    def f(x: Any, z: Any) -> Any:
        def body(i: Any, y: Any, unused: Any, flag: Any) -> Any:
            ll.exp(y)  # dead
            return i + 1, y * x, unused, ll.logical_not(flag)

        i, y, unused, flag = ll.while_loop(lambda i, *_: i < 3, body, (0, x, z, ll.constant(True)))
        return ll.where(flag, -1.0, y) + unused * 0.0 + ll.astype(i, "float32")

    assert f(ll.constant(2.0), ll.constant(1.0)).item() == 19.0
    assert slopes(f, ll.constant(2.0), ll.constant(1.0)) == [32.0, 0.0]


@both
def test_gradients_of_captures_of_nested_control_flow(stage: Callable[..., Any]) -> None:
    w = ll.Variable(2.0)

    @stage
    def f(x: Any, c: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            return i + 1, ll.cond(y < 20, lambda: y * w + c, lambda: y + c * c)

        return ll.while_loop(lambda i, _: i < 3, body, (0, x))[1]

    x, c = ll.constant(3.0), ll.constant(5.0)
    # 3 -> 11 -> 27 -> 52: twice y w + c, then y + c c
    assert f(x, c).item() == 52.0
    assert slopes(f, x, c) == [4.0, 2.0 + 1.0 + 10.0]
    with ll.GradientTape() as tape:
        y = f(x, c)
    assert tape.gradient(y, w).item() == 3.0 * 2 + 11.0


@both
def test_third_derivatives_through_cond_and_loop(stage: Callable[..., Any]) -> None:
    @stage
    def f(x: Any) -> Any:
        power = ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))[1]  # x ** 4
        return ll.cond(x > 0, lambda: power, lambda: -power)

    def slope(g: Callable[..., Any]) -> Callable[[Any], Any]:
        def of(x: Any) -> Any:
            with ll.GradientTape() as tape:
                tape.watch(x)
                y = g(x)
            return tape.gradient(y, x)

        return of

    x = ll.constant(2.0, dtype="float64")
    found = [f(x).item(), slope(f)(x).item(), slope(slope(f))(x).item(), slope(slope(slope(f)))(x).item()]
    assert found == pytest.approx([16.0, 32.0, 48.0, 48.0])


def test_graphs_of_control_flow_can_be_read_back() -> None:
    from limelight.graph import verify

    f = ll.function(
        lambda a, n: ll.while_loop(
            lambda i, b: i < n, lambda i, b: (i + 1, ll.cond(b > 2, lambda: b, lambda: b * 2)), (0, a)
        )
    )
    f(one, ll.constant(3))
    entry = f.trace_cache[0]
    for graph in (entry.graph, entry.optimised):
        verify(graph)
        assert "while_loop" in graph.text()
        assert "cond" in graph.text()
    inner = [function.name for node in entry.graph.nodes for function in node.functions]
    assert inner == ["cond", "body"]
