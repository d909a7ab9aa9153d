"""`ll.explain.retrace`: the newest story, all records, and the table."""

from __future__ import annotations

import warnings

import pytest

import limelight as ll
from limelight.errors import ArgumentError


@pytest.fixture
def busy():
    """A function that traced for two reasons, several times each."""

    @ll.function
    def train(batch, step):
        return batch["x"] * 2.0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        for step in range(4):
            train({"x": ll.ones((4, 3))}, step)
        for rows in (5, 6):
            train({"x": ll.ones((rows, 3))}, 0)
    return train


def test_nothing_traced_yet():
    f = ll.function(lambda x: x, name="f")
    answer = ll.explain.retrace(f)
    assert str(answer) == "`f` has not traced yet: call it once, and the trace is explained here."
    assert answer.table() == str(answer)
    assert answer.records == ()


def test_records_are_in_order_and_the_story_is_that_of_the_newest(busy):
    answer = ll.explain.retrace(busy)
    assert [str(record.cause) for record in answer.records] == ["first call", *["Python number"] * 3, "shape", "shape"]
    assert [record.number for record in answer.records] == [1, 2, 3, 4, 5, 6]
    assert str(answer).startswith(str(answer.records[-1]))
    cost = sum(record.seconds for record in answer.records[-2:])
    shown = f"{cost * 1e3:.0f} ms" if cost >= 0.01 else f"{cost * 1e3:.1f} ms"
    assert f'\n2 traces for this reason (`batch["x"]`, shape) cost {shown} in all.' in str(answer)
    assert str(answer).endswith(f"That is the newest; 6 traces have 3 causes:\n{answer.table()}")


def test_one_trace_is_told_without_a_count():
    f = ll.function(lambda x: x)
    f(ll.ones((2,)))
    f(ll.ones((3,)))
    assert "\n" not in str(ll.explain.retrace(f))


def test_groups_count_what_has_one_cause(busy):
    groups = ll.explain.retrace(busy).groups
    assert {(g.argument, g.cause): g.traces for g in groups} == {
        ("step", "Python number"): 3,
        ('batch["x"]', "shape"): 2,
        ("", "first call"): 1,
    }
    assert [g.seconds for g in groups] == sorted([g.seconds for g in groups], reverse=True)
    (shape,) = [g for g in groups if g.cause == "shape"]
    assert shape.latest.differences[0].after == "f32[6,3]"


def test_the_table_has_a_line_for_each_cause_and_fits_a_terminal(busy):
    lines = ll.explain.retrace(busy).table().splitlines()
    assert lines[0].split() == ["traces", "cost", "argument", "cause", "latest"]
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80
    (shape,) = [line for line in lines if "shape" in line]
    assert shape.split()[0] == "2"
    assert shape.endswith("f32[5,3] -> f32[6,3]")
    (number,) = [line for line in lines if "Python number" in line]
    assert number.index("Python number") == lines[0].index("cause")


def test_long_paths_and_values_do_not_widen_the_table():
    f = ll.function(lambda tree: 1.0)
    for value in ("a" * 100, "b" * 100):
        f({"a rather long key for a dictionary": {"and another below it": value}})
    assert max(map(len, ll.explain.retrace(f).table().splitlines())) == 80


def test_a_method_shows_the_traces_of_all_living_instances():
    class Model:
        @ll.function
        def step(self, x):
            return x * 2.0

    one, other = Model(), Model()
    one.step(ll.ones((2,)))
    other.step(ll.ones((3,)))
    one.step(ll.ones((4,)))
    assert len(ll.explain.retrace(one.step).records) == 2
    wheres = [record.where for record in ll.explain.retrace(Model.step).records]
    assert wheres == sorted(wheres)
    assert len(wheres) == 3
    del other
    assert len(ll.explain.retrace(Model.step).records) == 2


def test_asking_changes_nothing(busy):
    before = busy.trace_count, [entry.hits for entry in busy.trace_cache]
    answer = ll.explain.retrace(busy)
    assert str(answer)
    assert answer.table()
    assert (busy.trace_count, [entry.hits for entry in busy.trace_cache]) == before
    assert len(ll.explain.retrace(busy).records) == len(answer.records)


@pytest.mark.parametrize(("given", "named"), [(len, "builtin_function_or_method 'len'"), (3, "int;")])
def test_what_is_not_staged_is_refused(given, named):
    with pytest.raises(ArgumentError, match=r"needs a staged function, got .*F = ll.function\(fn\)") as caught:
        ll.explain.retrace(given)
    assert named in str(caught.value)


def test_the_history_survives_clearing():
    f = ll.function(lambda x: x)
    f(ll.ones((2,)))
    f.clear_cache()
    f(ll.ones((3,)))
    assert [record.number for record in ll.explain.retrace(f).records] == [1, 2]


def test_the_value_of_a_cell_is_the_sentence():
    f = ll.function(lambda x: x)
    for n in (2, 3, 3):
        f(ll.ones((n,)))
    assert repr(ll.explain.retrace(f)) == str(ll.explain.retrace(f))
    assert "`x` f32[2] -> f32[3]" in repr(ll.explain.retrace(f))
    assert repr(f.trace_cache) == "<trace cache: 2 traces, 1 hit>"


def test_traces_for_other_axes_are_told_beside_the_newest():
    @ll.function
    def f(x):
        return x + 1.0

    for shape in ((4, 25), (4, 13), (2, 25)):
        f(ll.ones(shape))
    said = str(ll.explain.retrace(f))
    assert "f32[4,25] -> f32[2,25] (axis 0: 4 -> 2)" in said
    assert "Others: f32[4,25] -> f32[4,13] (axis 1: 25 -> 13)." in said
    f(ll.ones((3, 25)))
    assert str(ll.explain.retrace(f)).count("axis 0") == 1, "one axis is told once"
