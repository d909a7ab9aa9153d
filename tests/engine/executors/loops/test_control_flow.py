"""Control flow in tables: loops, branches and calls find the plan's numbers to the bit, and stop when asked to."""

from __future__ import annotations

import signal
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from staged_on_loops import W, X, bits, in_tables, staged, with_gradient

import limelight as ll
from limelight.errors import ControlFlowError, RunError
from limelight.executors.loops import loops


def rolled(x: Any, w: Any) -> Any:
    return ll.scan(lambda c, row: (ll.tanh(c @ w + row), ll.sum(c)), x[0], x)


def backwards(x: Any, w: Any) -> Any:
    return ll.scan(lambda c, row: (c * row, (c, row, c @ w)), x[0], x, reverse=True)


def swapped(x: Any, w: Any) -> Any:
    """Carried values change places, one of them is handed on as it is, one is replaced by a literal."""

    def step(carry: Any, row: Any) -> Any:
        a, b, kept, ones = carry
        return (b, a + row, kept, ll.ones(5)), (a, ones)

    return ll.scan(step, (x[0], x[1], x[2], x[3]), x)


def nested(x: Any, w: Any) -> Any:
    def inner(c: Any, _: Any) -> Any:
        return ll.sin(c @ w), c * 2.0

    def outer(c: Any, row: Any) -> Any:
        last, rows = ll.scan(inner, c + row, None, length=3)
        return last, rows

    return ll.scan(outer, x[0], x)


def counted(x: Any, w: Any) -> Any:
    return ll.while_loop(lambda i, y: i < 7, lambda i, y: (i + 1, ll.tanh(y @ w) + x), (ll.constant(0), x))[1]


def chosen(x: Any, w: Any) -> Any:
    y = ll.cond(ll.sum(x) > 0, lambda: ll.exp(x), lambda: x)
    return ll.cond(ll.sum(x) > 100, lambda: (y, y @ w, x), lambda: (x, y * 2.0, x * 0.5))


def switched(x: Any, w: Any) -> Any:
    """A number that rows say, between three branches, in a loop and outside of it."""
    branches = [lambda: ll.exp(x), lambda: x, lambda: ll.tanh(x @ w)]
    y = ll.switch(ll.astype(ll.sum(x) > 0, ll.int32) * 2, branches)

    def step(c: Any, row: Any) -> Any:
        kind = ll.astype(ll.sum(row) > 0, ll.int64) + ll.astype(row[0] > 0, ll.int64)
        return ll.switch(kind, [lambda: (c + row, c), lambda: (c, row * 2.0), lambda: (row, row)])

    return ll.scan(step, y[0], y)


def branching_loop(x: Any, w: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        c = ll.cond(ll.sum(row) > 0, lambda: c + row, lambda: c * 0.5)
        return c, ll.cond(ll.sum(c) > 0, lambda: c, lambda: row)

    return ll.scan(step, x[0], x)


def powers(x: Any, w: Any) -> Any:
    return ll.scan(lambda c, row: (c + 0.25, ll.abs(row) ** c[0]), w[0] * 0.0, x)


PROGRAMS = [rolled, backwards, swapped, nested, counted, chosen, branching_loop, switched, powers]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("sign", [1, -1])
def test_one_table_has_the_bits_of_the_plan(program: Any, sign: int) -> None:
    args = ll.constant(X * sign), ll.constant(W)
    run = staged(program, *args)
    tables, others = in_tables(run)
    assert len(tables) == 1, loops.code(run.trace_cache[0].optimised)
    assert not others & {"scan", "while_loop", "cond", "switch", "call"}
    refused = _refused(run)
    assert bits(run(*args)) == bits(staged(program, *args, executor="plan")(*args))
    assert _refused(run) == refused == 0


def _refused(run: Any) -> int:
    """How many calls of the tables of a function went to the plan."""
    names = run.trace_cache[0].function.run.__globals__
    return sum(x.refused for x in names.values() if type(x).__name__ == "Table")


@pytest.mark.parametrize("program", [rolled, backwards, nested, branching_loop, chosen, switched])
def test_gradients_too(program: Any) -> None:
    args = ll.constant(X), ll.constant(W)
    found = [bits(staged(with_gradient(program), *args, executor=name)(*args)) for name in ("loops", "plan")]
    assert found[0] == found[1]


def test_residuals_are_stacked_in_one_table() -> None:
    run = staged(with_gradient(rolled), ll.constant(X), ll.constant(W))
    assert in_tables(run)[1] == set()


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_limit_ends_a_loop(limit: int) -> None:
    def function(x: Any) -> Any:
        step = lambda i, y: (i + 1, y * 1.5)  # noqa: E731
        return ll.while_loop(lambda i, y: i < 7, step, (ll.constant(0), x), maximum_iterations=limit)

    run = staged(function, ll.constant(X))
    assert len(in_tables(run)[0]) == 1
    n, y = run(ll.constant(X))
    assert n.item() == min(limit, 7)
    assert y.numpy().tobytes() == (X * np.float32(1.5) ** np.float32(0)).tobytes() or limit


def test_a_loop_without_a_step_is_left_at_once() -> None:
    def function(x: Any) -> Any:
        return ll.while_loop(lambda y: ll.sum(y) > 1e6, lambda y: (y * 2.0,), (ll.tanh(x),))[0] + 1.0

    run = staged(function, ll.constant(X))
    assert len(in_tables(run)[0]) == 1
    assert run(ll.constant(X)).numpy().tobytes() == (np.tanh(X) + np.float32(1)).tobytes()


def test_a_number_that_is_that_of_no_branch_is_the_plans_error() -> None:
    def function(i: Any, x: Any) -> Any:
        return ll.switch(i, [lambda: x * 2.0, lambda: ll.tanh(x)]) + 1.0

    said = []
    for executor in ("loops", "plan"):
        run = staged(function, ll.constant(1), ll.constant(X), executor=executor)
        for i in (-1, 2):
            with pytest.raises(ControlFlowError) as error:
                run(ll.constant(i), ll.constant(X))
            said.append(str(error.value))
    assert said[:2] == said[2:]


def test_calls_are_part_of_the_table() -> None:
    inner = ll.function(lambda x, w: ll.tanh(x @ w) * 2.0 + x)
    run = staged(lambda x, w: inner(inner(x, w), w) - x, ll.constant(X), ll.constant(W))
    tables, others = in_tables(run)
    assert (len(tables), others) == (1, set())


def test_what_a_body_cannot_do_in_a_table_runs_by_the_plan() -> None:
    v = ll.Variable(0.0)

    def step(c: Any, row: Any) -> Any:
        v.assign_add(ll.sum(row))
        return c + row, ll.linalg.det(ll.reshape(c[:4], (2, 2)))

    def function(x: Any) -> Any:
        return ll.scan(step, x[0], x)

    x = ll.constant(X)
    run = staged(function, x)
    lines = {str(node.op): line for node, line in loops.code(run.trace_cache[0].optimised)}
    assert "# plan: it calls `det`" in lines["scan"]
    without = staged(lambda x: ll.scan(lambda c, row: (c, ll.linalg.det(ll.outer(row, c))), x[0], x), x)
    lines = {str(node.op): line for node, line in loops.code(without.trace_cache[0].optimised)}
    assert "# plan: it calls `det`" in lines["scan"]
    v.assign(0.0)
    found, first = bits(run(x)), float(v)
    v.assign(0.0)
    by_plan = staged(function, x, executor="plan")
    v.assign(0.0)
    assert found == bits(by_plan(x))
    assert first == float(v)


def test_an_interrupt_ends_a_loop_that_would_go_on() -> None:
    v = ll.Variable(0.0)

    def function(x: Any) -> Any:
        v.assign_add(1.0)
        y = ll.while_loop(lambda y: ll.all(y < 2.0), lambda y: (ll.sin(y) + 0.5,), (x,))[0]
        v.assign_add(ll.sum(y))
        return y

    x = ll.constant(np.full(10, 3.0, "f4"))
    run = staged(function, x)
    assert len(in_tables(run)[0]) == 1
    before = float(v)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(ll.constant(np.zeros(10, "f4")))
    timer.join()
    assert float(v) == before  # all of its assignments, or none
    assert run(x).numpy().tobytes() == x.numpy().tobytes()


def test_errors_in_a_loop_name_op_and_line() -> None:
    run = staged(lambda x: ll.scan(lambda c, row: (ll.log(c) + row, c), x[0], x), ll.constant(np.abs(X)))
    messages = []
    for name in ("loops", "plan"):
        run = staged(lambda x: ll.scan(lambda c, row: (ll.log(c) + row, c), x[0], x), ll.constant(X), executor=name)
        with np.errstate(all="raise"), pytest.raises(RunError, match="log") as error:
            run(ll.constant(np.zeros_like(X)))
        messages.append(str(error.value).replace("plan", ""))
    assert messages[0] == messages[1]


def test_threads_run_one_loop_at_once() -> None:
    run = staged(with_gradient(rolled), ll.constant(X), ll.constant(W))
    inputs = [ll.constant(X * np.float32(scale)) for scale in (0.5, 1.0, 2.0)]
    wanted = [bits(run(x, ll.constant(W))) for x in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        w = ll.constant(W)
        wrong.extend(i for _ in range(100) if bits(run(inputs[i], w)) != wanted[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_steps_allocate_nothing() -> None:
    def peak(steps: int) -> int:
        def function(x: Any, w: Any) -> Any:
            more = lambda i, y: (i + 1, ll.tanh(y @ w) + ll.cond(i > 5, lambda: x, lambda: y))  # noqa: E731
            return ll.while_loop(lambda i, y: i < steps, more, (ll.constant(0), x))[1]

        args = ll.constant(X), ll.constant(W)
        run = staged(function, *args)
        tracemalloc.start()
        run(*args)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        run(*args)
        highest: int = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        return highest

    assert peak(20_000) < peak(2) + 2000


def test_results_are_new_arrays_also_where_the_plan_makes_them() -> None:
    def chosen(x: Any, order: Any) -> Any:
        sums = ll.cumsum(x)
        y = ll.cond(ll.sum(ll.tanh(sums)) + ll.sum(order * 2.0) > 0.0, lambda: sums, lambda: ll.sin(sums))
        z = y + ll.sort(ll.cumsum(x * 0.5))  # which may be written into `y`, and `sums` is needed once more
        return z, ll.searchsorted(sums, z)

    numbers = ll.constant(np.arange(4.0))
    for order in ("C", "F"):
        run = staged(chosen, numbers, ll.constant(np.ones((2, 3), order=order)))
        z, places = run(numbers, ll.constant(np.ones((2, 3), order=order)))
        assert z.numpy().tolist() == [0.0, 1.5, 4.5, 9.0]
        assert places.numpy().tolist() == [0, 2, 3, 4], order
