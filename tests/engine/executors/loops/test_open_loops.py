"""Loops whose number of steps only the run knows, by tables: the plan's numbers to the bit, for any number of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from staged_on_loops import W, X, bits, staged, with_gradient

import limelight as ll
from limelight.errors import LimelightError
from limelight.executors.loops import loops, open_loops


def by_tables(run: Any) -> list[str]:
    """The loops that tables run, some steps at a time."""
    code = loops.code(run.trace_cache[0].optimised)
    return [str(node.op) for node, line in code if line.startswith("table loop")]


def counted(x: Any, n: Any) -> Any:
    """A while_loop of `n` steps."""

    def step(i: Any, y: Any) -> Any:
        return i + 1, ll.sin(y * 1.5) + x

    return ll.while_loop(lambda i, y: i < n, step, (ll.constant(0), x))[1]


def adaptive(x: Any, n: Any) -> Any:
    """Steps until something is reached, with a carried value that nobody differentiates."""

    def step(i: Any, y: Any, speed: Any) -> Any:
        speed = speed - 0.1 * ll.tanh(y)
        return i + 1, y + 0.1 * speed, speed

    more = lambda i, y, speed: (i < n) & (ll.max(ll.abs(y)) < 40.0)  # noqa: E731
    return ll.while_loop(more, step, (ll.constant(0), x, ll.zeros_like(x)))[1]


def scanned(x: Any, n: Any) -> Any:
    """A scan over as many rows as a number says."""
    rows = ll.reshape(ll.arange(n), (-1, 1))
    last, sums = ll.scan(lambda c, row: (ll.tanh(c) + x * ll.astype(row, ll.float32), ll.sum(c)), x, rows)
    return last + ll.sum(sums)


def reversed_scan(x: Any, n: Any) -> Any:
    last, rows = ll.scan(lambda c, i: (ll.sin(c + x), c * 2.0), x, ll.arange(n), reverse=True)
    return last + ll.sum(rows, axis=0)


PROGRAMS = {"counted": counted, "adaptive": adaptive, "scanned": scanned, "reversed": reversed_scan}


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_loops, "ROOM", (2, 8))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_for_any_number_of_steps(name: str) -> None:
    function = PROGRAMS[name]

    def both(x: Any, n: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = function(x, n)
            loss = ll.sum(y * y)
        return y, tape.gradient(loss, x)

    x = ll.constant(X)
    by_loops, by_plan = (staged(both, x, ll.constant(3), executor=executor) for executor in ("loops", "plan"))
    assert len(by_tables(by_loops)) == 2, loops.code(by_loops.trace_cache[0].optimised)  # there and back
    for n in (0, 1, 2, 3, 8, 9, 21, 5):
        assert bits(by_loops(x, ll.constant(n))) == bits(by_plan(x, ll.constant(n))), n


@pytest.mark.parametrize("limit", [0, 1, 5, 30])
def test_a_limit_ends_a_loop_that_keeps_rows(limit: int) -> None:
    def function(x: Any) -> Any:
        step = lambda i, y: (i + 1, ll.tanh(y * 1.5))  # noqa: E731
        return ll.while_loop(lambda i, y: i < 11, step, (ll.constant(0), x), maximum_iterations=limit)[1]

    x = ll.constant(X)
    found = [bits(staged(with_gradient(function), x, executor=executor)(x)) for executor in ("loops", "plan")]
    assert found[0] == found[1]


def test_what_tables_do_not_take_is_the_plans() -> None:
    def both(x: Any, n: Any) -> Any:
        return with_gradient(lambda x: counted(x, n))(x)

    run, plan = (staged(both, ll.constant(X), ll.constant(3), executor=executor) for executor in ("loops", "plan"))
    turned = ll.constant(np.asfortranarray(X))
    assert bits(run(turned, ll.constant(9))) == bits(plan(turned, ll.constant(9)))


def test_errors_are_the_plans() -> None:
    def both(x: Any, n: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            return i + 1, y + x[i]

        return with_gradient(lambda x: ll.while_loop(lambda i, y: i < n, step, (ll.constant(0), x[0]))[1])(x)

    said = []
    for executor in ("loops", "plan"):
        run = staged(both, ll.constant(X), ll.constant(3), executor=executor)
        with pytest.raises(LimelightError) as error:
            run(ll.constant(X), ll.constant(7))
        said.append(str(error.value))
    assert said[0] == said[1]
    assert "step" in said[0] or "line" in said[0]


def test_second_derivatives() -> None:
    def twice(x: Any, n: Any) -> Any:
        with ll.GradientTape() as outer:
            outer.watch(x)
            slope = with_gradient(lambda x: ll.sum(counted(x, n)))(x)[1][0]
            total = ll.sum(slope * slope)
        return outer.gradient(total, x)

    args = ll.constant(X), ll.constant(9)
    found = [bits(staged(twice, *args, executor=executor)(*args)) for executor in ("loops", "plan")]
    assert found[0] == found[1]


def test_rows_of_other_loops_do_not_stay_in_memory() -> None:
    def both(x: Any, n: Any) -> Any:
        return ll.scan(lambda c, i: (c, c), x, ll.arange(n))[1]

    run = staged(both, ll.constant(W), ll.constant(9))
    assert by_tables(run)
    rows = run(ll.constant(W), ll.constant(1)).numpy()
    assert rows.base is None or rows.base.nbytes <= 4 * rows.nbytes


def test_what_a_loop_captures_may_be_transposed(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(x: Any, w: Any, n: Any) -> Any:
        def run(x: Any, w: Any) -> Any:
            step = lambda i, y: (i + 1, ll.tanh(y @ ll.transpose(w)))  # noqa: E731  # turned before the loop
            return ll.while_loop(lambda i, y: i < n, step, (ll.constant(0), x))[1]

        return with_gradient(run)(x, w)

    def fail(*arrays: Any) -> Any:
        raise AssertionError("a table does not take what the loop captures")

    monkeypatch.setattr(open_loops, "refuse", fail)
    run, plan = (staged(both, ll.constant(X), ll.constant(W), ll.constant(3), executor=e) for e in ("loops", "plan"))
    for w in (W, np.asfortranarray(W)):
        arguments = ll.constant(X), ll.constant(w), ll.constant(9)
        assert bits(run(*arguments)) == bits(plan(*arguments))


def test_a_fault_of_our_own_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> Any:
        raise RuntimeError("a fault")

    monkeypatch.setattr(open_loops, "moving_rows", fail)
    with pytest.raises(RuntimeError, match="a fault"):
        staged(lambda x, n: with_gradient(lambda x: counted(x, n))(x), ll.constant(X), ll.constant(3))
