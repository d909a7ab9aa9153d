"""The executor `loops`: what runs in tables, and that all else is as in the plan."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import RunError
from limelight.executors import base
from limelight.executors.loops import loops, stretch

X = np.random.default_rng(0).standard_normal((6, 5)).astype("f4")


def staged(function: Any, *args: Any, executor: str = "loops") -> Any:
    """The function, traced for an executor."""
    with base.chosen.override(executor):
        run = ll.function(function)
        run(*args)
    return run


def graph_of(run: Any) -> Any:
    return run.trace_cache[0].optimised


def tables(run: Any) -> list[Any]:
    """The tables that a function runs."""
    graph = loops.in_stretches(graph_of(run), lambda stretch: stretch).graph
    return [node.op.table for node in graph.nodes if hasattr(node.op, "table")]


def test_each_node_says_what_runs_it() -> None:
    v = ll.Variable(X)
    mean = staged(lambda x: v.assign_add(ll.tanh(x * 2.0 + v).T.sum(axis=0)[:, None]) * 1.0, ll.constant(X))
    lines = {node.op.name: line for node, line in loops.code(graph_of(mean))}
    assert lines["tanh"] == "table 1: tanh, instruction 2"
    assert lines["read_variable"].endswith("# plan: it reads a variable, which the plan does")


def test_what_is_long_is_one_table() -> None:
    def function(x: Any, w: Any) -> Any:
        for _ in range(10):
            x = ll.nn.relu(x @ w) - ll.mean(x, axis=-1, keepdims=True)
        return ll.nn.softmax(x)

    w = ll.constant(X[:5])
    run = staged(function, ll.constant(X), w)
    (table,) = tables(run)
    assert table.instructions > 40
    assert (
        run(ll.constant(X), w).numpy().tobytes()
        == staged(function, ll.constant(X), w, executor="plan")(ll.constant(X), w).numpy().tobytes()
    )


def test_results_are_new_memory() -> None:
    run = staged(lambda x: (ll.tanh(x) + 1.0, ll.tanh(x) * x), ll.constant(X))
    first = run(ll.constant(X))
    kept = [part.numpy().tobytes() for part in first]
    run(ll.constant(X * 2))
    assert [part.numpy().tobytes() for part in first] == kept
    assert not np.shares_memory(first[0].numpy(), first[1].numpy())


@pytest.mark.parametrize("arrange", [np.asfortranarray, lambda x: np.repeat(x, 2, 1)[:, ::2], lambda x: x[::-1]])
def test_other_layouts_run_by_the_plan(arrange: Any) -> None:
    def function(x: Any) -> Any:
        return ll.sum(ll.exp(x) * x + 1.0, axis=0)

    x = ll.asarray(arrange(X), copy=False)
    found = [staged(function, ll.constant(X), executor=name)(x).numpy().tobytes() for name in ("plan", "loops")]
    assert found[0] == found[1]


def test_assignments_stay_in_order() -> None:
    v = ll.Variable(X)

    def function(x: Any) -> Any:
        before = v * 2.0 + x
        v.assign(before)
        after = v * 3.0 + x
        v.assign_sub(ll.tanh(after))
        return before, after, v + 0.0

    run = staged(function, ll.constant(X))
    v.assign(X)
    found = [part.numpy() for part in run(ll.constant(X))]
    before = X * np.float32(2) + X
    after = before * np.float32(3) + X
    assert found[0].tobytes() == before.tobytes()
    assert found[1].tobytes() == after.tobytes()
    assert v.numpy().tobytes() == found[2].tobytes() == (before - np.tanh(after)).tobytes()


def test_an_error_between_tables_is_the_plans() -> None:
    def fails(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    def function(x: Any) -> Any:
        y = ll.tanh(x) * 2.0 + x
        z = ll.linalg.cholesky(y @ y.T - 100.0)
        return ll.exp(z) * z

    words = []
    for name in ("plan", "loops"):
        with base.chosen.override(name):
            run = ll.function(function)
        with pytest.raises(Exception, match="cholesky") as error:
            run(ll.constant(X))
        words.append((type(error.value), str(error.value)))
    assert words[0] == words[1]


def test_errors_that_numpy_is_asked_for_name_op_and_line() -> None:
    run = staged(lambda x: ll.exp(ll.log(x) * 2.0) + x, ll.constant(X))
    with np.errstate(all="raise"), pytest.raises(RunError, match="log"):
        run(ll.constant(np.zeros_like(X)))


def test_an_interrupt_leaves_variables_as_program_order_says() -> None:
    v, w = ll.Variable(0.0), ll.Variable(0.0)

    def function(x: Any) -> Any:
        v.assign(1.0)
        for _ in range(300):
            x = ll.sin(x)
        w.assign(ll.sum(x))
        return x

    x = ll.constant(np.ones(1 << 18, "f4"))
    run = staged(function, x)
    assert tables(run)[0].instructions >= 300
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            w.assign(0.0)
            v.assign(0.0)
            run(x)
    timer.join()
    assert float(v) == 1.0 or float(w) == 0.0
    assert float(run(x)[0]) > 0


def test_threads_and_functions_within_functions() -> None:
    inner = ll.function(lambda x: ll.tanh(x) * 2.0 + x)
    run = staged(lambda x: inner(inner(x) * 0.5) - x, ll.constant(X))
    inputs = [ll.constant(X * scale) for scale in (0.5, 1.0, 2.0)]
    wanted = [run(x).numpy().tobytes() for x in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        wrong.extend(i for _ in range(100) if run(inputs[i]).numpy().tobytes() != wanted[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_unknown_sizes_are_the_plans() -> None:
    with base.chosen.override("loops"):
        run = ll.function(lambda x: ll.tanh(x) * 2.0 + x, input_signature=[ll.TensorSpec((None,), "float32")])
    assert run(ll.constant(X[0])).shape == (5,)
    assert {line.partition("# ")[2] for _, line in loops.code(graph_of(run))} == {"plan: its sizes are unknown"}


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_large_results_lie_where_an_operand_has_died(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these goes through the whole array alone: a column and a row stand between runs of blocks."""

    def function(x: Any) -> Any:
        column, row = x[:, :1], x[:1]
        y = (x - column) * row
        z = (y + column) * row - y  # y is needed again
        return ll.exp((z + column) * row) + column

    monkeypatch.setattr(stretch, "is_no_slower", lambda instructions, results: True)
    x = ll.constant((np.random.default_rng(0).standard_normal((9000, 2)) * 0.1).astype(dtype))
    run = staged(function, x)
    (table,) = tables(run)
    arrays = table.arena / x.numpy().nbytes
    assert arrays < (2.5 if dtype != "c8" else 3.5)
    assert run(x).numpy().tobytes() == staged(function, x, executor="plan")(x).numpy().tobytes()
