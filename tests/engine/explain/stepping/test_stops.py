"""Stops of a recording at another shape, at a copy between devices, and at a call that is traced again."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError


def at(recording, wanted):
    return [(one.kind, one.text) for one in (recording.steps[i] for i in recording.stops(wanted))]


def test_names_that_get_another_shape_and_ops_that_give_one():
    def program(x):
        y = x * 2.0
        y = y + 1.0
        y = ll.sum(y, axis=0)
        z = y
        return z * z

    recording = ll.explain.steps(program, ll.ones((2, 3)))
    (traced, ran) = at(recording, "shape")
    assert traced == ("trace", "y = ll.sum(y, axis=0)")
    assert ran[0] == "run"
    assert "= sum(" in ran[1]
    (step,) = [one for one in recording.of("trace") if one.marks]
    assert step.marks == (("shape", "y: [2,3] → [3]"),)
    assert "y: [2,3] → [3]" in str(recording)


def test_lists_of_numbers_have_no_shape():
    def program(x):
        rows = [1]
        rows = [2]
        name = "f32[3], no value yet"
        name = "f32[4], no value yet"
        grid = np.zeros((2, 3))
        grid = grid[0]
        return x * rows[0] + len(name) + grid.sum()

    recording = ll.explain.steps(program, ll.ones((2,)))
    assert [text for _, text in at(recording, "shape")] == ["grid = grid[0]"]
    assert dict(recording.steps[recording.stops("shape")[0]].marks) == {"shape": "grid: [2,3] → [3]"}


def test_two_calls_of_a_function_are_two_scopes():
    def inner(t):
        y = t + 1.0
        return y.sum()

    def program(a, b):
        return inner(a) + inner(b)

    recording = ll.explain.steps(program, ll.ones((2,)), ll.ones((3,)))
    assert [kind for kind, _ in at(recording, "shape")] == ["run", "run"], "sums alone"


@pytest.mark.usefixtures("second_cpu")
def test_copies_between_devices():
    def program(x):
        y = x + 1.0
        with ll.device("cpu:1"):
            return y * 2.0

    recording = ll.explain.steps(program, ll.ones((2,)))
    found = [recording.steps[i] for i in recording.stops("copy")]
    assert [one.kind for one in found] == ["run"]
    assert "copied from CPU:0 to CPU:1" in found[0].marks[0][1]
    assert "copied from CPU:0 to CPU:1" in str(recording)


@pytest.mark.usefixtures("second_cpu")
def test_what_runs_on_two_devices_is_told_op_by_op():
    inner = ll.function(lambda t: t * 2.0 - 1.0, name="inner")

    @ll.function
    def program(x):
        with ll.device("cpu:1"):
            z = inner(x * 2.0)
            z = ll.cond(z.sum() > 0, lambda: inner(z), lambda: z)
        return z.sum()

    x = ll.ones((2,))
    recording = ll.explain.steps(program, x, gradient_of=True)
    assert recording.stops("error") == ()
    assert "f32[] = 10" in [str(one.value) for one in recording.of("run")]
    measured = ll.explain.costs(program, x)
    assert set(measured.of) == set(measured.graph.nodes), "copies count for the ops that need them"
    flow = ll.explain.gradient_flow(program, x)
    assert flow.steps[-1].norm == pytest.approx(8 * 2**0.5)


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
def test_a_call_that_is_traced_again_and_one_within_it():
    inner = ll.function(lambda t: t * 2.0, name="inner")

    def program(x):
        first = inner(x)
        both = inner(ll.concat([x, x]))
        return first.sum() + both.sum()

    step = ll.function(program)
    recording = ll.explain.steps(step, ll.ones((2,)))
    assert at(recording, "retrace") == [("trace", "both = inner(ll.concat([x, x]))")]
    assert at(ll.explain.steps(step, ll.ones((2,))), "retrace") == [], "all of them are in the caches now"
    again = ll.explain.steps(step, ll.ones((5,)))
    first = again.steps[again.stops("retrace")[0]]
    assert first.text == "first = inner(x)"
    assert any("`program` traced again" in words and "f32[2] -> f32[5]" in words for _, words in first.marks)
    assert step.trace_count == 1


def test_what_is_no_condition():
    recording = ll.explain.steps(lambda x: x, ll.ones((2,)))
    for wanted in ("copies", "line:\u00b2"):
        with pytest.raises(ArgumentError, match=f"shape, copy, retrace or error; got '{wanted}'"):
            recording.stops(wanted)
