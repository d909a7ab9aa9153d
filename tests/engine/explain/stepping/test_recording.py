"""A call recorded step by step: what Python sees, what the graph records, what passes do, what runs and comes back."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError


def texts(recording, kind):
    return [step.text for step in recording.of(kind)]


def test_a_line_is_shown_with_what_it_binds_and_what_it_records():
    def program(x):
        n = 3
        y = x * n
        len("nothing for the graph")
        return y.sum()

    recording = ll.explain.steps(program, ll.ones((2,)))
    number, product, plain, returned = recording.of("trace")
    assert number.sees == (("n", "3"),)
    assert number.records == ()
    assert product.sees == (("y", "f32[2], no value yet"),)
    assert [one.partition("= ")[2].partition("(")[0] for one in product.records] == ["constant", "multiply"]
    assert (plain.sees, plain.records) == ((), ())
    assert "= sum(" in returned.records[0]
    assert [str(one.value) for one in recording.of("run")] == ["f32[2] = 3, 3", "f32[] = 6"]


def test_every_node_of_the_trace_is_recorded_by_one_line():
    w = ll.Variable(np.eye(2, dtype="float32"))

    def dense(x):
        return ll.tanh(x @ w)

    @ll.function
    def program(x):
        rows = [x[i] + 1.0 for i in range(2)]
        for _ in range(3):
            x = dense(x) + rows[0]
        return x

    program(ll.ones((2, 2)))
    recording = ll.explain.steps(program, ll.ones((2, 2)))
    recorded = [one for step in recording.of("trace") for one in step.records]
    assert len(recorded) == len(program.trace_cache[0].graph.nodes)
    assert sorted(recorded) == sorted(set(recorded))
    assert texts(recording, "trace").count("return ll.tanh(x @ w)") == 3
    assert {one.depth for one in recording.of("trace")} == {0, 1}


def test_nothing_is_changed_but_by_python():
    w = ll.Variable(2.0)
    runs = []

    @ll.function
    def program(x):
        runs.append(1)
        w.assign_add(x)
        return w * ll.random.normal(())

    program(ll.constant(1.0))
    before = ll.random.get_state() if hasattr(ll.random, "get_state") else None
    for _ in range(2):
        recording = ll.explain.steps(program, ll.constant(1.0))
    assert w.numpy() == 3.0
    assert program.trace_count == 1
    assert len(program.trace_cache) == 1
    assert len(runs) == 3
    assert any(str(one.value) == "f32[] = 4" for one in recording.of("run")), "the assignment as it would be"
    assert before is None or before == ll.random.get_state()


def test_the_way_back():
    recording = ll.explain.steps(lambda x: (x * x).sum(), ll.constant([1.0, 3.0]), gradient_of=True)
    (last,) = [one for one in recording.of("backward") if str(one.value) == "f32[2] = 2, 6"]
    assert last.said == ("norm 6.325",), "the root of 2 * 2 + 6 * 6"
    assert all(one.said[0].startswith("norm ") for one in recording.of("backward"))
    assert not any(one.said for one in recording.of("run"))
    assert not ll.explain.steps(lambda x: (x * x).sum(), ll.constant([1.0, 3.0])).of("backward")


def test_passes_that_change_something():
    recording = ll.explain.steps(lambda x: ll.exp(x) + ll.exp(x), ll.ones(()))
    (shared,) = [one for one in recording.of("pass") if one.text.startswith("share")]
    assert any("common subexpression: exp" in one for one in shared.records)


def test_branches_and_loops_are_gone_into():
    def program(x):
        return ll.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), (ll.constant(0), x))[1]

    recording = ll.explain.steps(program, ll.constant(1.0))
    assert [str(one.value) for one in recording.of("run") if "multiply" in one.text] == [
        "f32[] = 2", "f32[] = 4", "f32[] = 8",
    ]  # fmt: skip


@pytest.mark.parametrize("fails", ["tracing", "running"])
def test_an_error_is_the_last_step(fails):
    def program(x):
        y = x * 2.0
        if fails == "tracing":
            return ll.reshape(y, (5,))
        return ll.debug.check_numerics(ll.log(y - 2.0) * 0.0, "bad")

    recording = ll.explain.steps(program, ll.ones((2,)))
    assert recording.steps[-1].kind == "error"
    assert recording.steps[0].text == "y = x * 2.0"
    assert recording.steps[0].records[-1] == "%2: f32[2] = multiply(%0, %1)", "told as if the trace were whole"
    assert not ll.explain.steps(lambda x: x, ll.ones(())).of("error"), "nothing is left behind"


def test_a_debugger_gets_its_turn_back():
    def other(*_):
        return None

    before = sys.gettrace()
    sys.settrace(other)
    try:
        ll.explain.steps(lambda x: x + 1.0, ll.ones(()))
        ll.explain.steps(lambda x: ll.reshape(x, (5,)), ll.ones(()))
        assert sys.gettrace() is other
    finally:
        sys.settrace(before)


def test_an_interrupt_goes_through():
    def program(x):
        raise KeyboardInterrupt

    before = sys.gettrace()
    with pytest.raises(KeyboardInterrupt):
        ll.explain.steps(program, ll.ones(()))
    assert sys.gettrace() is before


def test_more_steps_than_asked_for_are_left_out():
    def program(x):
        for _ in range(50):
            x = ll.tanh(x)
        return x

    recording = ll.explain.steps(program, ll.ones(()), most=10)
    assert recording.is_cut
    assert len(recording.of("trace")) == 10
    assert len(recording.of("run")) == 10
    assert "tracing the first 10, passes 1, run the first 10 of 50; the rest was left out" in str(recording)


def test_a_recursion_lists_one_level():
    @ll.function
    def deep(n, s):
        if n == 0:
            return s
        return deep(n - 1, s * 1.5)

    recording = ll.explain.steps(deep, 9, ll.ones(()))
    assert len(recording.of("trace")) == 2 * 9 + 2
    said = str(recording)
    assert said.count("return deep(n - 1, s * 1.5)") == 1
    assert said.count("and 8 more levels of the same") == 3, "of lines, of products and of calls"


def test_what_is_no_function_is_refused():
    with pytest.raises(ArgumentError, match=r"explain.steps needs a function or a module to call, got int"):
        ll.explain.steps(3)
    with pytest.raises(ArgumentError, match=r"explain.steps: gradient_of has 'z'"):
        ll.explain.steps(lambda x: x, ll.ones(()), gradient_of="z")


def test_a_lambda_has_a_line_of_its_own_where_no_line_calls_it():
    staged = ll.function(lambda x: ll.tanh(x) * 2.0)
    (line,) = ll.explain.steps(staged, ll.ones((2,))).of("trace")
    assert "lambda x: ll.tanh(x)" in line.text
    assert [one.partition("= ")[2].partition("(")[0] for one in line.records] == ["tanh", "constant", "multiply"]

    def program(x):
        twice = lambda y: y * 2.0  # noqa: E731  # a line of a line
        return twice(x)

    assert [len(one.records) for one in ll.explain.steps(program, ll.ones((2,))).of("trace")] == [0, 2]
