"""What each op of a call takes and gives."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors import step
from limelight.explain import op_costs


def test_each_op_of_the_graph_that_runs_is_measured_once() -> None:
    @ll.function
    def chain(x: Any) -> Any:
        return ll.sqrt(ll.tanh(x) - 1.0).sum()

    x = ll.constant([0.0, 1.0, 2.0])
    chain(x)
    measured = ll.explain.costs(chain, x)
    assert measured.graph is chain.trace_cache[0].function.optimised.graph
    assert list(measured.of) == list(measured.graph.nodes)
    assert all(cost.seconds > 0 for cost in measured.of.values())
    assert measured.seconds == sum(cost.seconds for cost in measured.of.values())
    by_op = {node.op.name: cost for node, cost in measured.of.items()}
    assert (by_op["sqrt"].nans, by_op["sqrt"].infinities) == (3, 0)
    np.testing.assert_allclose(by_op["tanh"].norm, np.linalg.norm(np.tanh([0.0, 1.0, 2.0])), rtol=1e-6)
    assert "NaN" in str(measured)


def test_nothing_changes_and_no_trace_is_added() -> None:
    v = ll.Variable([1.0, 2.0])

    @ll.function
    def step(x: Any) -> Any:
        v.assign_add(x)
        return ll.random.normal((2,)) + v

    x = ll.ones(2)
    step(x)
    before, state = v.numpy().copy(), ll.random.default_generator().state.numpy().copy()
    ll.explain.costs(step, x)
    np.testing.assert_array_equal(v.numpy(), before)
    assert len(step.trace_cache) == 1
    np.testing.assert_array_equal(ll.random.default_generator().state.numpy(), state)


def test_what_a_call_a_branch_or_a_loop_runs_counts_as_its_own() -> None:
    @ll.function
    def loop(x: Any) -> Any:
        return ll.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, ll.exp(-x)), (0, x))[1]

    measured = ll.explain.costs(loop, ll.ones(2))
    assert list(measured.of) == list(measured.graph.nodes)
    assert {node.op.name for node in measured.of} >= {"while_loop"}


def test_what_is_not_staged_is_staged_for_the_question_and_what_makes_no_graph_refused() -> None:
    layer = ll.nn.Dense(2)
    layer(ll.ones((1, 3)))
    measured = ll.explain.costs(layer, ll.ones((4, 3)))
    assert [node.op.name for node in measured.of] == ["read_variable", "matmul", "read_variable", "add"]
    with pytest.raises(ll.errors.ArgumentError, match="needs a function or a module to call, got int"):
        ll.explain.costs(1)  # type: ignore[arg-type]
    with pytest.raises(ll.errors.ArgumentError, match="Dense is a class"):
        ll.explain.costs(ll.nn.Dense, 2)


def test_ops_of_the_gradient_are_measured_where_they_are_asked_for():
    x = ll.constant([3.0, 4.0])
    square = ll.function(lambda x: (x * x).sum())
    assert not ll.explain.costs(square, x).has_gradient
    measured = ll.explain.costs(square, x, gradient_of=True)
    assert measured.has_gradient
    assert list(measured.of.values())[-1].norm == pytest.approx(10.0)
    with pytest.raises(ll.errors.ArgumentError, match=r"explain\.costs: gradient_of has 'y'"):
        ll.explain.costs(square, x, gradient_of="y")


def test_the_set_up_of_a_run_counts_for_no_op(monkeypatch):
    clock = count()  # a second for each look at it
    begin = op_costs.begin

    def slow_begin(*args: Any) -> Any:
        for _ in range(1000):
            next(clock)
        return begin(*args)

    monkeypatch.setattr(op_costs, "begin", slow_begin)
    monkeypatch.setattr(op_costs, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    measured = ll.explain.costs(ll.function(lambda x: ll.exp(ll.sin(x))), ll.ones(2))
    assert [cost.seconds for cost in measured.of.values()] == [1.0, 1.0]


def test_a_loop_places_its_functions_once_for_all_turns(monkeypatch):
    placed = []
    place = step.place
    monkeypatch.setattr(step, "place", lambda graph, *rest: placed.append(graph.name) or place(graph, *rest))
    loop = ll.function(lambda x: ll.while_loop(lambda i, x: i < 9, lambda i, x: (i + 1, ll.exp(-x)), (0, x))[1])
    ll.explain.costs(loop, ll.ones(2))
    assert len(placed) == op_costs.RUNS * 3  # the graph, the condition and the body
