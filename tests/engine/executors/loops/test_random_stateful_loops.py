"""Random programs with loops that assign and draw: plan, tables and stepper agree to the bit, state and streams too."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.executors import base
from limelight.executors.loops import open_loops, stateful_loops

PROGRAMS = int(os.environ.get("LIMELIGHT_STATEFUL", "5"))
"""Programs; by hand a few thousand."""
SHAPE = (3, 2)

UNARY = (ll.tanh, ll.sin, lambda x: ll.transpose(ll.transpose(x) * 0.5), lambda x: x / (1.0 + ll.sum(x * x)))
BINARY = (ll.add, ll.subtract, lambda x, y: ll.tanh(x @ ll.transpose(y)) @ x)
DRAWS = (
    lambda g, x: g.normal(SHAPE, 0.5, 2.0),
    lambda g, x: g.uniform(SHAPE),
    lambda g, x: x * g.uniform(()),
    lambda g, x: x * g.dropout_mask(x, 0.4),
    lambda g, x: ll.astype(g.bernoulli(ll.sigmoid(x)), ll.float32),
    lambda g, x: ll.astype(g.integers(0, 5, SHAPE), ll.float32),
    lambda g, x: ll.astype(g.exponential(SHAPE, dtype=ll.float64), ll.float32),
    lambda g, x: g.gamma(ll.exp(ll.tanh(x))),  # tables do not draw by what they compute
)
NUMBER = st.integers(0, 7)


def statements(inner: Any) -> Any:
    body = st.lists(inner, min_size=1, max_size=4)
    return st.one_of(
        st.tuples(st.sampled_from(["cond", "call"]), NUMBER, NUMBER, body, body),
        st.tuples(st.sampled_from(["scan", "while", "count"]), NUMBER, NUMBER, body),
    )


SIMPLE = st.tuples(
    st.sampled_from(["unary", "binary", "draw", "read", "assign", "add", "sub", "part", "rows"]), NUMBER, NUMBER
)
BODY = st.lists(st.recursive(SIMPLE, statements, max_leaves=9), min_size=1, max_size=5)


class Run:
    """What a program assigns and draws from, and what its statements mean. `values` are all of one shape."""

    def __init__(self) -> None:
        numbers = np.random.default_rng(3).standard_normal((2, *SHAPE)).astype("f4")
        self.variables = [ll.Variable(x) for x in numbers]
        self.generators = [ll.random.Generator(i) for i in range(2)]

    def state(self) -> list[bytes]:
        return [np.asarray(x).tobytes() for x in (*self.variables, *[g.state for g in self.generators])]

    def body(self, body: Any, values: list[Any]) -> Any:
        values = list(values)
        for statement in body:
            values.append(self.step(values, *statement))
        return values[-1]

    def step(self, values: list[Any], kind: str, a: int, b: int, *bodies: Any) -> Any:
        x, y = values[-1 - a % len(values)], values[b % len(values)]
        v = self.variables[a % 2]
        if kind == "unary":
            return UNARY[a % len(UNARY)](y)
        if kind == "binary":
            return BINARY[a % len(BINARY)](x, y)
        if kind == "draw":
            return DRAWS[a % len(DRAWS)](self.generators[b % 2], x)
        if kind == "cond":
            return ll.cond(ll.sum(x) > 0.0, lambda: self.body(bodies[0], values), lambda: self.body(bodies[1], values))
        if kind == "call":
            return ll.function(lambda x: self.body(bodies[0], [x]))(x)
        if kind == "scan":
            step = lambda c, row: (self.body(bodies[0], [row * y, c]), ll.sum(c))  # noqa: E731
            last, sums = ll.scan(step, x, ll.stack([x, y, x + 1.0][: 1 + a % 3]), reverse=b % 2 == 0)
            return last + ll.sum(sums)
        if kind in ("while", "count"):
            more = lambda i, c: (i < a) & (ll.sum(c) < 9.0) if kind == "while" else i < a  # noqa: E731
            return ll.while_loop(more, lambda i, c: (i + 1, self.body(bodies[0], [y, c])), (ll.constant(0), x))[1]
        return self.assign(kind, v, ll.tanh(y))

    def assign(self, kind: str, v: Any, y: Any) -> Any:
        if kind == "assign":
            v.assign(y)
        elif kind == "add":
            v.assign_add(y)
        elif kind == "sub":
            v.assign_sub(y)
        elif kind == "part":
            v.at[1:].assign(y[:2])
        elif kind == "rows":
            v.scatter_add(ll.constant([2, 0, 2]), y)
        return v.read_value() * 0.5


def outcome(body: Any, executor: str, repeats: Any, gradient: bool) -> Any:
    """Results and state after each of some calls."""
    run = Run()

    def program(x: Any, n: Any) -> Any:
        step = lambda i, c: (i + 1, ll.tanh(run.body(body, [x, c])))  # noqa: E731
        with ll.GradientTape() as tape:
            tape.watch(x)
            last = ll.while_loop(lambda i, c: i < n, step, (ll.constant(0), x))[1]
        return (last, tape.gradient(last, x, unconnected_gradients="zero")) if gradient else (last,)

    with base.chosen.override(executor):
        staged = ll.function(program)
        found = []
        for n in repeats:
            x = ll.constant(np.random.default_rng(n).standard_normal(SHAPE).astype("f4"))
            found.append(([np.asarray(y).tobytes() for y in staged(x, ll.constant(n))], run.state()))
    tables = stateful_loops.with_stateful_loops(staged.trace_cache[0].optimised) if executor == "loops" else None
    return found, tables


COUNTED: list[bool] = []


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
@settings(max_examples=PROGRAMS, deadline=None)
@given(BODY, st.lists(st.integers(0, 11), min_size=2, max_size=3), st.booleans())
def test_random_loops(body: Any, repeats: Any, gradient: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (open_loops, stateful_loops):
            patch.setattr(module, "ROOM", (2, 8))
        by_tables, graph = outcome(body, "loops", repeats, gradient)
        by_plan, _ = outcome(body, "plan", repeats, gradient)
        assert by_tables == by_plan
        assert outcome(body, "step", repeats, gradient)[0] == by_plan
    COUNTED.append(any(isinstance(node.op, stateful_loops.StatefulLoopOp) for node in graph.nodes))
