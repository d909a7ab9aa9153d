"""Section 4.1, control flow: behaviours 15 to 17."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.errors import ControlFlowError, LimelightError, RunError

x3 = ll.constant(3.0)


# 15 cond


def test_015_cond_runs_one_branch_with_its_effects() -> None:
    v = ll.Variable(0.0)
    ran: list[str] = []

    @ll.function
    def f(a: Any) -> Any:
        def seen(name: str, change: float) -> Callable[[], Any]:
            def branch() -> Any:
                ran.append(name)
                ll.py_func(lambda: calls.append(name), [], None)
                return v.assign_add(change) + a

            return branch

        return ll.cond(a > 0, seen("true", 1.0), seen("false", 10.0))

    calls: list[str] = []
    assert f(ll.constant(1.0)).item() == 2.0
    assert f(ll.constant(-1.0)).item() == 10.0
    assert v.numpy() == 11.0
    assert ran == ["true", "false"]  # both are traced, once
    assert calls == ["true", "false"]


def test_015_errors_of_the_branch_not_taken_never_occur() -> None:
    @ll.function
    def f(a: Any, i: Any) -> Any:
        return ll.cond(a > 0, lambda: ll.take(ll.ones((2,)), i, axis=0), lambda: ll.zeros((1,)))

    assert f(ll.constant(-1.0), ll.constant([9])).tolist() == [0.0]
    with pytest.raises(RunError, match="out of bounds"):
        f(ll.constant(1.0), ll.constant([9]))


def test_015_branches_may_return_none_and_nests() -> None:
    def branch(a: Any, k: float) -> Any:
        return {"a": a * k, "none": None, "pair": (a, [a + k])}

    f = ll.function(lambda a: ll.cond(a > 0, lambda: branch(a, 2.0), lambda: branch(a, 3.0)))
    result = f(ll.constant(-1.0))
    assert result["a"].item() == -3.0
    assert result["none"] is None
    assert result["pair"][1][0].item() == 2.0
    nothing = ll.function(lambda a: ll.cond(a > 0, lambda: None, lambda: None))
    assert nothing(x3) is None


def test_015_branches_must_agree() -> None:
    cases: list[tuple[Callable[[Any], Any], str]] = [
        (
            lambda a: ll.cond(a > 0, lambda: a, lambda: 1),
            r"the output is f32\[\] from true_fn and i32\[\] from false_fn",
        ),
        (lambda a: ll.cond(a > 0, lambda: (a, a), lambda: (a, ll.ones((2,)))), r"`output\[1\]` is f32\[\].*f32\[2\]"),
        (
            lambda a: ll.cond(a > 0, lambda: {"n": 1, "loss": [a, a]}, lambda: {"n": 1, "loss": [a, a > 0]}),
            r'`output\["loss"\]\[1\]` is f32\[\] from true_fn and bool\[\].*ll.astype\(..., ll.float32\) in false_fn',
        ),
        (lambda a: ll.cond(a > 0, lambda: (a, a), lambda: a), "different structures"),
        (lambda a: ll.cond(a > 0, lambda: None, lambda: a), "different structures"),
    ]
    for fails, message in cases:
        with pytest.raises(ControlFlowError, match=message):
            ll.function(fails)(x3)


def test_015_captures_of_one_branch_and_predicates_of_one_element() -> None:
    captured = ll.constant(5.0)
    f = ll.function(lambda p, a: ll.cond(p, lambda: a * captured, lambda: a))
    assert f(ll.constant([[True]]), x3).item() == 15.0
    assert f(ll.constant([[False]]), x3).item() == 3.0


# 16 while_loop


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_016_loops_run_as_often_as_data_says(stage: Callable[..., Any]) -> None:
    @stage
    def collatz(n: Any) -> Any:
        def body(n: Any, steps: Any) -> Any:
            return ll.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), steps + 1

        return ll.while_loop(lambda n, _: n != 1, body, (n, 0))[1]

    assert [collatz(ll.constant(n)).item() for n in (1, 6, 27)] == [0, 8, 111]


def test_016_the_body_is_traced_once() -> None:
    traced: list[int] = []

    @ll.function
    def f(n: Any) -> Any:
        def body(i: Any) -> Any:
            traced.append(1)
            return (i + 1,)

        return ll.while_loop(lambda i: i < n, body, (0,))[0]

    assert f(ll.constant(50)).item() == 50
    assert len(traced) == 1


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_016_limits_zero_iterations_and_nesting(stage: Callable[..., Any]) -> None:
    limited = stage(lambda a: ll.while_loop(lambda v: v < 100.0, lambda v: (v + 1.0,), (a,), maximum_iterations=4)[0])
    assert limited(x3).item() == 7.0
    never = stage(lambda a: ll.while_loop(lambda v: v < 0.0, lambda v: (v + 1.0,), (a,))[0])
    assert never(x3).item() == 3.0

    @stage
    def table(n: Any) -> Any:
        def row(i: Any, total: Any) -> Any:
            inner = ll.while_loop(lambda j, t: j < n, lambda j, t: (j + 1, t + i * j), (0, total))
            return i + 1, inner[1]

        return ll.while_loop(lambda i, _: i < n, row, (0, 0))[1]

    assert table(ll.constant(4)).item() == sum(i * j for i in range(4) for j in range(4))


def test_016_zero_iterations_return_values_that_are_their_own() -> None:
    v = ll.Variable([1.0, 2.0])
    never = ll.function(lambda: ll.while_loop(lambda a: ll.constant(False), lambda a: (a + 1,), (v,))[0])
    kept = never()
    v.assign([9.0, 9.0])
    assert kept.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_016_a_loop_hands_back_no_tensor_that_it_was_given(stage: Callable[..., Any]) -> None:
    def never(a: Any) -> Any:
        return ll.while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, v * 2), (ll.constant(0), a))[1]

    def handed_on(a: Any) -> Any:
        return ll.scan(lambda c, row: (c, row), a, ll.ones((2,)))[0]

    x = ll.constant(2.0)
    for loop in (never, handed_on):
        y = stage(loop)(x)
        with ll.GradientTape() as tape:
            tape.watch(x)
            z = x * y
        assert tape.gradient(z, x).item() == 2.0


# 17 Loop invariants


def test_017_invariants_may_have_the_structure_of_the_variables() -> None:
    def doubled(invariants: Any) -> Any:
        def body(s: Any, i: Any) -> Any:
            return {"t": ll.concat([s["t"], s["t"]])}, i + 1

        return ll.while_loop(lambda s, i: i < 3, body, [{"t": ll.ones((2,))}, 0], shape_invariants=invariants)[0]["t"]

    for invariants in ([(None,), ()], ({"t": (None,)}, ())):
        assert ll.function(lambda given=invariants: doubled(given))().shape == (16,)
    with pytest.raises(ControlFlowError, match=r"`shape_invariants` must have the structure .*, or one shape for each"):
        doubled([{"t": (None,)}, (), ()])


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_017_a_body_that_changes_a_variable_is_refused_by_name(stage: Callable[..., Any]) -> None:
    def dtype(a: Any) -> Any:
        return ll.while_loop(
            lambda i, v: i < 2, lambda i, v: (i + 1, {"w": ll.astype(v["w"], "float64")}), (0, {"w": a})
        )

    def shape(a: Any) -> Any:
        return ll.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, ll.stack([v, v])), [0, a])

    with pytest.raises(ControlFlowError, match=r'`loop_vars\[1\]\["w"\]` is f32\[\] on entry and f64\[\] after one'):
        stage(dtype)(x3)
    with pytest.raises(ControlFlowError, match=r"`loop_vars\[1\]` is f32\[\] on entry and f32\[2\] after one"):
        stage(shape)(x3)


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_017_shape_invariants_relax_sizes(stage: Callable[..., Any]) -> None:
    grow = lambda i, v: (i + 1, ll.concat([v, v], axis=0))  # noqa: E731
    loop = stage(lambda v: ll.while_loop(lambda i, _: i < 3, grow, (0, v), shape_invariants=[(), (None,)])[1])
    assert loop(ll.ones((2,))).shape == (16,)
    wrong = stage(lambda v: ll.while_loop(lambda i, _: i < 3, grow, (0, v), shape_invariants=[(), (5,)]))
    with pytest.raises(ControlFlowError, match=r"`loop_vars\[1\]` is f32\[2\], its shape invariant is \(5,\)"):
        wrong(ll.ones((2,)))


# 15, 16 for a switch, a scan and a map


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_015_a_switch_runs_one_branch_with_its_effects_and_errors(stage: Callable[..., Any]) -> None:
    v = ll.Variable(0.0)

    def added(k: float) -> Callable[[], Any]:
        return lambda: {"v": v.assign_add(k), "none": None}

    def fails() -> Any:
        return {"v": ll.sum(ll.take(ll.ones((2,)), ll.constant([9]), axis=0)), "none": None}

    f = stage(lambda k: ll.switch(k, [added(1.0), added(10.0), fails]))
    assert [f(ll.constant(k))["v"].item() for k in (1, 0, 1)] == [10.0, 11.0, 21.0]
    assert f(ll.constant(0))["none"] is None
    with pytest.raises(LimelightError, match="out of bounds"):
        f(ll.constant(2))


def test_016_the_body_of_a_scan_is_traced_once() -> None:
    traced: list[int] = []

    @ll.function
    def f(x: Any) -> Any:
        def body(c: Any, r: Any) -> Any:
            traced.append(1)
            return c + r, ll.map_fn(lambda a: a * c, r)

        return ll.scan(body, ll.zeros(2), x)

    last, all_ = f(ll.ones((50, 2)))
    assert last.tolist() == [50.0, 50.0]
    assert all_.shape == (50, 2, 2)
    assert len(traced) == 1


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_017_a_scan_that_changes_its_carry_is_refused_by_name(stage: Callable[..., Any]) -> None:
    wrong = stage(lambda x: ll.scan(lambda c, r: ([c[0], c[1].astype("float64")], r), [x[0], x[0]], x))
    with pytest.raises(ControlFlowError, match=r"`carry\[1\]` is f32\[\] on entry and f64\[\] after one step"):
        wrong(ll.ones(3))


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_017_an_invariant_must_cover_what_the_body_returns(stage: Callable[..., Any]) -> None:
    def loop(v: Any) -> Any:
        grow = lambda i, v: (i + 1, ll.stack([v, v]))  # noqa: E731
        return ll.while_loop(lambda i, _: i < 3, grow, (0, v), shape_invariants=[(), (None,)])

    with pytest.raises(ControlFlowError, match=r"`loop_vars\[1\]` is f32\[\?\] on entry and f32\[2,"):
        stage(loop)(ll.ones(2))
