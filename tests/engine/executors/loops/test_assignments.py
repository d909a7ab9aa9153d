"""Variables in tables: assigned together at the end, in program order, and never over another thread's value."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight import events
from limelight.executors import base
from limelight.executors.loops import loops
from limelight.executors.loops.native_loops import native

X = np.random.default_rng(0).standard_normal((6, 5)).astype("f4")


def staged(function: Any, executor: str = "loops") -> Any:
    with base.chosen.override(executor):
        run = ll.function(function)
        run.get_concrete_function(ll.constant(X))
    return run


def in_tables(run: Any) -> tuple[int, list[str]]:
    """How many tables a function runs, and the ops that the plan runs."""
    graph = loops.in_stretches(run.trace_cache[0].optimised, lambda stretch: stretch).graph
    tables = [node for node in graph.nodes if hasattr(node.op, "table")]
    others = [str(node.op) for node in graph.nodes if node not in tables and node.op != "constant"]
    return len(tables), others


def several(v: Any, w: Any) -> Any:
    def function(x: Any) -> Any:
        before = v * 2.0 + x
        v.assign(before)
        v.assign_sub(ll.tanh(v * 3.0))
        w.assign_add(v.read_value())
        v.assign_add(w * 0.5)
        return before, v + 0.0, w.read_value()

    return function


def test_assignments_of_a_table_are_those_of_the_plan() -> None:
    found = []
    for name in ("plan", "loops"):
        v, w = ll.Variable(X), ll.Variable(X * 2)
        run = staged(several(v, w), name)
        for _ in range(3):
            results = [x.numpy().tobytes() for x in run(ll.constant(X))]
        found.append((results, v.numpy().tobytes(), w.numpy().tobytes()))
    assert found[0] == found[1]
    assert in_tables(run)[0] == 1
    assert not set(in_tables(run)[1]) & {"assign", "assign_sub", "assign_add"}


def test_a_value_that_was_assigned_is_never_written_into() -> None:
    v = ll.Variable(X)
    run = staged(lambda x: ll.tanh(v.assign(ll.sin(x) * 2.0) + 1.0))
    run(ll.constant(X))
    kept = v.read_value()
    before = kept.numpy().tobytes()
    for scale in (2.0, 3.0):
        run(ll.constant(X * np.float32(scale)))
    assert kept.numpy().tobytes() == before
    assert v.numpy().tobytes() == (np.sin(X * np.float32(3)) * np.float32(2)).tobytes()


def test_one_value_for_two_variables_and_its_view() -> None:
    v, w, flat = ll.Variable(X), ll.Variable(X), ll.Variable(X.reshape(-1))

    def function(x: Any) -> Any:
        y = ll.tanh(x) * 2.0
        v.assign(y)
        w.assign(y)
        flat.assign(ll.reshape(y, (-1,)))
        return y, ll.reshape(y, (5, 6))

    y, reshaped = staged(function)(ll.constant(X))
    wanted = (np.tanh(X) * np.float32(2)).tobytes()
    assert {a.numpy().tobytes() for a in (v, w, flat, y, reshaped)} == {wanted}


def test_what_the_table_does_not_make_the_plan_assigns() -> None:
    v, w = ll.Variable(X), ll.Variable(X * 2)

    def function(x: Any) -> Any:
        a, b = v.read_value(), w.read_value()
        v.assign(b)
        w.assign(a)
        return ll.tanh(a) * 2.0 + x

    run = staged(function)
    run(ll.constant(X))
    assert (v.numpy().tobytes(), w.numpy().tobytes()) == ((X * 2).tobytes(), X.tobytes())
    assert "assign" in in_tables(run)[1]


def test_what_fails_after_an_assignment_finds_it_made() -> None:
    v, w = ll.Variable(X), ll.Variable(0.0)

    def function(x: Any) -> Any:
        v.assign(ll.tanh(x) * 2.0)
        factor = ll.linalg.cholesky(x @ x.T - 100.0)
        w.assign(ll.sum(factor))
        return factor

    for name in ("plan", "loops"):
        v.assign(X)
        with pytest.raises(Exception, match=r"cholesky.*assigned before that"):
            staged(function, name)(ll.constant(X))
        assert v.numpy().tobytes() == (np.tanh(X) * np.float32(2)).tobytes()


def test_what_fails_before_an_assignment_leaves_it_unmade() -> None:
    v = ll.Variable(X)

    def function(x: Any) -> Any:
        y = ll.tanh(x) * 2.0
        factor = ll.linalg.cholesky(y @ y.T - 100.0)
        v.assign(y * 3.0)
        return factor

    for name in ("plan", "loops"):
        with pytest.raises(Exception, match="cholesky"):
            staged(function, name)(ll.constant(X))
        assert v.numpy().tobytes() == X.tobytes()


def test_no_update_of_several_threads_is_lost() -> None:
    v = ll.Variable(np.zeros(1000, "f4"))
    n, rounds = 4, 200

    def function(x: Any) -> Any:
        y = x
        for _ in range(20):
            y = ll.sin(y) * 0.0 + x
        v.assign_add(y)
        return ll.sum(y) * 2.0

    with base.chosen.override("loops"):
        run = ll.function(function)
        run(ll.constant(np.zeros(1000, "f4")))
    assert in_tables(run) == (1, [])

    def work() -> None:
        x = ll.constant(np.ones(1000, "f4"))
        for _ in range(rounds):
            run(x)

    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (v.numpy() == n * rounds).all()


def test_listeners_hear_of_assignments_in_order() -> None:
    v, w = ll.Variable(X, name="v"), ll.Variable(X, name="w")
    run = staged(several(v, w))
    heard: list[str] = []
    with events.listen(lambda event: heard.append(event.name), events.VariableAssigned):
        run(ll.constant(X))
    assert heard == ["v", "v", "w", "v"]


def test_variables_of_unknown_sizes_are_the_plans() -> None:
    v = ll.Variable(X, shape=(None, 5))
    run = staged(lambda x: v.assign(ll.tanh(x) * 2.0) * 1.0)
    assert in_tables(run)[1] == ["assign"]
    assert run(ll.constant(X)).shape == (6, 5)


class Cell:
    """A variable of another making."""

    __slots__ = ("array", "told")

    def __init__(self, array: Any) -> None:
        self.array = array
        self.told: list[Any] = []

    def _tell(self, array: Any) -> None:
        self.told.append(array)


FLOAT = np.dtype("f4").num
ROW = (FLOAT, (4,), (4,))


def cells(writes: Any, storages: Any = (0,), inputs: Any = (ROW, ROW)) -> Any:
    from limelight.executors.loops.native_loops import ufunc_loop

    add = (ufunc_loop(np.add, bytes([FLOAT] * 3)), (0, 0, 1, 0, 2, 0), (4,), (4, 4, 4), ())
    return native().Table(inputs, (), (ROW,), 64, [add], lambda *xs: "refused", (), 0, storages, writes)


@pytest.mark.parametrize("wrong", [((1, 0, False),), ((0, 1, False),), ((0, 0),), ((2, 0, True),)])
def test_tables_assign_results_to_variables_only(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        cells(wrong)
    with pytest.raises(ValueError, match="variable"):
        cells((), (2,))
    with pytest.raises(ValueError, match="no type"):
        cells((), (), (None, ROW))


def test_an_object_that_is_no_variable_goes_elsewhere() -> None:
    x = np.ones(4, "f4")
    assert cells(((0, 0, True),))(Cell(x), x) == "refused"
    with pytest.raises(TypeError, match="slot"):
        native().use_storage(type("Other", (), {"array": None}), [])
