"""Loops whose steps assign variables or draw numbers, by tables: values, streams, state are the plan's to the bit."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight import events
from limelight.errors import LimelightError
from limelight.executors import base
from limelight.executors.loops import loops, open_loops, stateful_loops

X = np.random.default_rng(0).standard_normal((6, 4)).astype("f4")


class State:
    """What a program assigns and draws from."""

    def __init__(self) -> None:
        self.v = ll.Variable(X)
        self.w = ll.Variable(np.float32(0.5))
        self.g = ll.random.Generator(7)
        self.h = ll.random.Generator(8)
        self.optimizer = ll.optim.Momentum(0.05, 0.9)

    def bits(self) -> list[bytes]:
        return [np.asarray(x).tobytes() for x in (self.v, self.w, self.g.state, self.h.state)]


def training(s: State, x: Any, n: Any) -> Any:
    """Gradient descent with momentum."""

    def step(i: Any, loss: Any) -> Any:
        with ll.GradientTape() as tape:
            loss = ll.mean((x @ s.v.read_value().T - 1.0) ** 2) + s.w * s.w
        s.optimizer.apply(tape.gradient(loss, [s.v, s.w]), [s.v, s.w])
        return loss

    return ll.fori_loop(0, 9, step, ll.constant(0.0))


def assigning(s: State, x: Any, n: Any) -> Any:
    """Reads before, between and behind assignments of all kinds; the number of steps is the run's."""

    def step(i: Any, y: Any) -> Any:
        before = s.v.read_value()
        s.v.assign(ll.tanh(before + x))
        s.w.assign_add(ll.sum(s.v.read_value()) * 0.01)
        s.v.assign_sub(before * 0.1)
        s.v.at[1:3].assign(x[1:3] * s.w)
        s.v.at[0].assign_add(x[2])
        s.v.scatter_add(ll.constant([3, 3, 1]), x[:3])
        s.v.scatter_update(ll.constant([4]), x[:1])
        return i + 1, y + before * s.w

    return ll.while_loop(lambda i, y: (i < n) & (s.w < 1e6), step, (ll.constant(0), x))[1]


def branching(s: State, x: Any, n: Any) -> Any:
    """Assignments in branches."""

    def add() -> Any:
        s.w.assign_add(1.0)
        return s.v + 1.0

    def keep() -> Any:
        return x * s.w

    def scale() -> Any:
        s.v.assign(s.v * 0.5)
        return s.v.read_value()

    def step(i: Any, y: Any) -> Any:
        y = y + ll.cond(s.w < 4.0, add, keep)
        return i + 1, y + ll.switch(i % 3, [add, keep, scale])

    return ll.while_loop(lambda i, y: i < n, step, (ll.constant(0), x))[1]


def walking(s: State, x: Any, n: Any) -> Any:
    """Random-walk Metropolis: draws of two kinds from one generator."""

    def step(x: Any, _: Any) -> Any:
        proposal = x + 0.5 * s.g.normal((4,))
        accepted = ll.log(s.g.uniform(())) < 0.5 * (ll.sum(x * x) - ll.sum(proposal * proposal))
        x = ll.where(accepted, proposal, x)
        return x, x

    return ll.scan(step, x[0], None, length=21)[1]


def stopping(s: State, x: Any, n: Any) -> Any:
    """Draws until a condition holds, of which tables draw too many at first."""

    def step(i: Any, y: Any) -> Any:
        s.w.assign_add(ll.sum(s.h.exponential((2,))))
        return i + 1, y + s.g.normal((6, 4), 0.5, 2.0)

    return ll.while_loop(lambda i, y: (i < n) & (ll.max(ll.abs(y)) < 9.0), step, (ll.constant(0), x))[1]


def dropping_out(s: State, x: Any, n: Any) -> Any:
    """A recurrence with masks of all kinds, its gradient, and a scan in each step."""
    with ll.GradientTape() as tape:

        def inner(c: Any, _: Any) -> Any:
            c = c * 0.9 + s.g.uniform((4,), -1.0, 1.0) * ll.astype(s.h.integers(0, 3, (4,)), ll.float32)
            return c, ll.sum(c)

        def step(c: Any, row: Any) -> Any:
            c = ll.tanh(c @ s.v[:4] + row) * ll.astype(s.g.bernoulli(ll.constant([0.5, 0.2, 0.9, 1.0])), ll.float32)
            c, sums = ll.scan(inner, c * s.h.dropout_mask(c, 0.3), None, length=3)
            return c, sums

        last, rows = ll.scan(step, x[0], ll.concat([x, x]), reverse=True)
        loss = ll.sum(last * last) + ll.sum(rows)
    return loss, tape.gradient(loss, s.v)


def until(s: State, x: Any, n: Any) -> Any:
    """The gradient of a loop of unknown length that draws."""
    with ll.GradientTape() as tape:

        def step(i: Any, y: Any) -> Any:
            return i + 1, ll.sin(y @ s.v[:4]) + s.g.normal((6, 4))

        y = ll.while_loop(lambda i, y: i < n, step, (ll.constant(0), x))[1]
        loss = ll.sum(y * y)
    return y, tape.gradient(loss, s.v)


PROGRAMS = {f.__name__: f for f in (training, assigning, branching, walking, stopping, dropping_out, until)}


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (open_loops, stateful_loops):
        monkeypatch.setattr(module, "ROOM", (2, 8))


def staged(program: Callable[..., Any], executor: str) -> tuple[State, Any]:
    state = State()
    with base.chosen.override(executor):
        run = ll.function(lambda x, n: program(state, x, n))
        run.get_concrete_function(ll.constant(X), ll.constant(3))
    return state, run


def by_tables(run: Any) -> list[str]:
    """The loops that tables run some steps at a time."""
    graph = stateful_loops.with_stateful_loops(run.trace_cache[0].optimised)
    return [str(node.op) for node in graph.nodes if isinstance(node.op, stateful_loops.StatefulLoopOp)]


def bits(results: Any) -> list[bytes]:
    leaves, _ = ll.tree.flatten(results)
    return [np.asarray(x).tobytes() for x in leaves]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_variables_and_streams_are_the_plans(name: str) -> None:
    (one, run), (other, plan) = (staged(PROGRAMS[name], executor) for executor in ("loops", "plan"))
    assert len(by_tables(run)) == 1, loops.code(run.trace_cache[0].optimised)
    for n in (3, 0, 1, 2, 8, 19, 5):
        arguments = ll.constant(X), ll.constant(n)
        assert bits(run(*arguments)) == bits(plan(*arguments)), n
        assert one.bits() == other.bits(), n


def test_a_step_that_fails_leaves_what_the_plan_leaves() -> None:
    def program(s: State, x: Any, n: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            s.w.assign_add(1.0)
            y = y + x[i] + s.g.normal((4,))
            s.v.assign(s.v * 2.0)
            return i + 1, y

        return ll.while_loop(lambda i, y: i < n, step, (ll.constant(0), x[0]))[1]

    said = []
    for executor in ("loops", "plan"):
        state, run = staged(program, executor)
        run(ll.constant(X), ll.constant(5))
        with pytest.raises(LimelightError) as error:
            run(ll.constant(X), ll.constant(9))
        said.append((str(error.value), state.bits()))
    assert said[0] == said[1]


def test_what_tables_do_not_take_is_the_plans() -> None:
    def program(s: State, x: Any, n: Any) -> Any:
        return assigning(s, x, n) + stopping(s, x, n)

    (one, run), (other, plan) = (staged(program, executor) for executor in ("loops", "plan"))
    for x in (np.asfortranarray(X), X[::-1], X):
        assert bits(run(ll.constant(x), ll.constant(9))) == bits(plan(ll.constant(x), ll.constant(9)))
        assert one.bits() == other.bits()


def test_draws_that_depend_on_what_is_computed_are_the_plans() -> None:
    def program(s: State, x: Any, n: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            y = ll.cond(ll.sum(y) > 0.0, lambda: y + s.g.normal((6, 4)), lambda: y - s.h.uniform((6, 4)))
            return y * 0.7, s.g.gamma(ll.exp(y[0]))

        return ll.scan(step, x, None, length=9)

    (one, run), (other, plan) = (staged(program, executor) for executor in ("loops", "plan"))
    assert not by_tables(run)
    assert "it draws in a branch" in "".join(line for _, line in loops.code(run.trace_cache[0].optimised))
    assert bits(run(ll.constant(X), ll.constant(3))) == bits(plan(ll.constant(X), ll.constant(3)))
    assert one.bits() == other.bits()


def test_an_interrupt_leaves_variables_and_streams_as_they_are_behind_a_step() -> None:
    def program(s: State, x: Any, n: Any) -> Any:
        def step(y: Any) -> Any:
            s.w.assign_add(1.0)
            s.v.assign(ll.zeros((6, 4)) + s.w * 2.0)
            return y + s.g.normal((6, 4))

        return ll.while_loop(lambda y: n > 0, step, (x,))[0]

    state, run = staged(program, "loops")
    assert by_tables(run)
    state.w.assign(0.0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for seconds in (0.1, 1.0, 10.0):  # on a busy machine nothing may be done before the first interrupt
            signal.setitimer(signal.ITIMER_REAL, seconds)
            with pytest.raises(KeyboardInterrupt):
                run(ll.constant(X), ll.constant(1))
            if state.w.item():
                break
    finally:
        signal.signal(signal.SIGALRM, before)
    steps = int(state.w.item())
    assert steps > 0, "what was done before is kept"
    assert np.all(state.v.numpy() == 2 * steps)
    stream = ll.random.Generator(7)
    stream.normal((steps, 6, 4))
    assert np.asarray(state.g.normal((3,))).tobytes() == np.asarray(stream.normal((3,))).tobytes()


def test_updates_of_other_threads_are_not_lost() -> None:
    def program(s: State, x: Any, n: Any) -> Any:
        def step(i: Any) -> Any:
            s.w.assign_add(1.0)
            return i + 1

        return ll.while_loop(lambda i: i < n, step, (ll.constant(0),))[0]

    state, run = staged(program, "loops")
    assert by_tables(run)
    state.w.assign(0.0)
    done = threading.Event()

    def add() -> None:
        while not done.is_set():
            state.w.assign_add(-1.0)
            counted.append(1)

    counted: list[int] = []
    other = threading.Thread(target=add)
    other.start()
    for _ in range(20):
        run(ll.constant(X), ll.constant(500))
    done.set()
    other.join()
    assert state.w.item() == 20 * 500 - len(counted)


def test_a_draw_that_fails_says_so_at_the_step_that_draws() -> None:
    def program(s: State, x: Any, n: Any) -> Any:
        def step(i: Any) -> Any:
            s.w.assign_add(1.0)
            s.v.assign_add(ll.astype(s.g.poisson(ll.constant([-1.0] * X.shape[-1]), X.shape), ll.float32))
            return i + 1

        return ll.while_loop(lambda i: i < n, step, (ll.constant(0),))[0]

    outcomes = []
    for executor in ("plan", "loops"):
        state, run = staged(program, executor)
        assert run(ll.constant(X), ll.constant(0)).item() == 0
        with pytest.raises(ll.errors.ArgumentError, match="rates must be at least 0"):
            run(ll.constant(X), ll.constant(3))
        outcomes.append(state.bits())
    assert outcomes[0] == outcomes[1]


def test_rows_in_another_order_are_added_up_in_theirs() -> None:
    rows = np.random.default_rng(0).normal(size=(17, 53, 9)).astype(np.float32)

    def program(s: State, x: Any, n: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            s.w.assign_add(1.0)
            z = ll.exp(row)
            r = ll.sum(ll.mean(z, axis=1)) + ll.mean(z)
            return c * 0.5 + r, r

        return ll.scan(step, ll.constant(0.0), ll.transpose(ll.constant(rows) * x[0, 0], (0, 2, 1)))

    found = []
    for executor in ("plan", "loops"):
        _, run = staged(program, executor)
        found.append([bits(run(ll.constant(X), ll.constant(1))) for _ in range(2)])
    assert found[0] == found[1]


def test_listeners_hear_of_each_assignment() -> None:
    state, run = staged(training, "loops")
    heard: list[Any] = []
    with events.listen(heard.append, events.VariableAssigned):
        run(ll.constant(X), ll.constant(3))
    assert len([one for one in heard if one.variable_id == state.w._uid]) == 9


def test_a_variable_that_is_given_twice() -> None:
    def program(a: Any, b: Any, x: Any) -> Any:
        def step(i: Any) -> Any:
            a.assign_add(x)
            b.assign(b * 2.0)
            return i + 1

        return ll.while_loop(lambda i: i < 5, step, (ll.constant(0),))[0]

    found = []
    for executor in ("loops", "plan"):
        v, w = ll.Variable(X), ll.Variable(X)
        with base.chosen.override(executor):
            run = ll.function(program)
        run(v, w, ll.constant(X))
        run(v, v, ll.constant(X))
        found.append([v.numpy().tobytes(), w.numpy().tobytes()])
    assert found[0] == found[1]


class Normals:
    """In place of a table's draws: as many numbers as there are steps."""

    def make(self, generators: Any, steps: int) -> Any:
        return [one.generator.normal(size=steps) for one in generators]


def test_draws_are_taken_back_unless_others_drew() -> None:
    draws: Any = Normals()
    one, other = (ll.random.Generator(i)._data for i in (1, 2))
    before: list[Any] = []
    after: list[Any] = []
    first = stateful_loops._drawn(draws, [one, other], 3, before, after)
    stateful_loops._draw_again(draws, [one, other], before, after, 1)
    assert one.generator.normal(size=2).tobytes() == first[0][1:].tobytes()
    assert other.generator.normal(size=2).tobytes() == first[1][1:].tobytes()
    before, after = [], []
    stateful_loops._drawn(draws, [one, other], 3, before, after)
    other.generator.normal(size=3)  # by another thread
    stateful_loops._draw_again(draws, [one, other], before, after, 0)
    assert one.is_at(after[0])


def test_an_interrupt_of_draws_leaves_the_streams_behind_a_step() -> None:
    one = ll.random.Generator(1)._data
    draws: Any = Normals()
    before: list[Any] = []
    after: list[Any] = []
    first = stateful_loops._drawn(draws, [one], 3, before, after)

    class Interrupted(Normals):
        calls = 0

        def make(self, generators: Any, steps: int) -> Any:
            self.calls += 1
            if self.calls == 1:
                super().make(generators, 1)
                raise KeyboardInterrupt
            return super().make(generators, steps)

    interrupted: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        stateful_loops._draw_again(interrupted, [one], before, after, 2)
    assert one.generator.normal(size=1).tobytes() == first[0][2:].tobytes()
