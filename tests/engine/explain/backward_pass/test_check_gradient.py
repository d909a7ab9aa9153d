"""Gradients of calls, held against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight.errors import ArgumentError
from limelight.explain.backward_pass.both_passes import both_passes

SMOOTH = (ll.tanh, ll.sin, ll.exp, ll.sigmoid, lambda x: x * x, lambda x: ll.sum(x) * x, lambda x: x / (1.0 + x * x))


@given(st.lists(st.sampled_from(SMOOTH), min_size=1, max_size=4), st.integers(0, 3))
def test_programs_of_smooth_ops_are_right_and_their_records_name_each_source(ops, seed):
    w = ll.Variable(np.random.default_rng(seed).uniform(-1, 1, (3,)).astype("float32"), name="w")

    def program(x):
        for op in ops:
            x = op(x) * w
        return x

    report = ll.explain.check_gradient(program, ll.constant(np.linspace(-1, 1, 3, dtype="float32")))
    assert report.ok, str(report)
    assert [record.name for record in report.records] == ["x", "w"]
    assert all(record.compared + record.kinks == 3 for record in report.records)


def test_a_wrong_rule_is_found_with_its_place_and_both_numbers():
    @ll.custom_gradient
    def wrong(x):
        return x * x, lambda g: g * x * 3.0

    report = ll.explain.check_gradient(wrong, ll.constant([1.0, 2.0]))
    (record,) = report.records
    assert not report.ok
    assert record.error == pytest.approx(1 / 3)
    assert (record.found, record.expected) == (
        pytest.approx(3.0 * (1 + record.place[0])),
        pytest.approx(2.0 * (1 + record.place[0])),
    )
    assert "wrong, worst at x[" in str(report)


def test_nothing_that_the_call_would_change_is_changed_and_draws_are_the_same():
    v = ll.Variable(1.0, name="v")
    generator = ll.random.Generator(3)

    def program(x):
        v.assign_add(1.0)
        return generator.normal((2,)) * x * v

    before = generator.normal((2,)).numpy()
    generator = ll.random.Generator(3)
    assert ll.explain.check_gradient(program, ll.constant([1.0, 2.0])).ok
    assert v.item() == 1.0
    assert np.array_equal(generator.normal((2,)).numpy(), before)


def test_kinks_are_left_out_and_sources_without_gradient_are_told():
    report = ll.explain.check_gradient(lambda x, y: ll.nn.relu(x), ll.constant([0.0, 1.0]), ll.constant(1.0))
    x, y = report.records
    assert report.ok
    assert (x.kinks, x.compared) == (1, 1)
    assert not y.connected
    assert "it has no gradient (None)" in str(y)


def test_a_gradient_that_is_zero_but_for_rounding_is_right_and_no_kink():
    net = ll.nn.Sequential(ll.nn.Dense(3), ll.nn.BatchNorm(), ll.nn.Dense(1))
    x = ll.constant(np.random.default_rng(0).normal(size=(6, 2)).astype("float32"))
    report = ll.explain.check_gradient(lambda x: ll.mean(net(x, training=True) ** 2), x)
    bias = next(record for record in report.records if record.name == "layers.0.bias")
    assert report.ok, str(report)
    assert bias.compared == 3
    assert max(abs(bias.found), abs(bias.expected)) < 1e-9
    assert all(record.kinks == 0 for record in report.records)


def test_beside_a_kink_the_gradient_is_compared_on_its_own_side():
    report = ll.explain.check_gradient(lambda x: ll.nn.relu(x) * 2.0, ll.constant([5e-5, -5e-5, 1e-5, 0.0]))
    assert (report.ok, report.records[0].compared, report.records[0].kinks) == (True, 3, 1)


def test_where_results_are_not_finite_there_are_no_differences():
    report = ll.explain.check_gradient(lambda x: ll.log(x) * 2.0, ll.constant([1.0, 0.0, float("nan")]))
    assert not report.ok
    assert str(report) == (
        "the gradient of `<lambda>` is not known to be right, as results are not finite:\n"
        "  `x` f32[3]: nothing compared, 3 left out: the results are not finite"
    )
    root = ll.explain.check_gradient(lambda x, y: ll.sqrt(x) * y, ll.constant(0.0), ll.constant(3.0))
    assert [(one.compared, one.nonfinite) for one in root.records] == [(0, 1), (1, 0)]


def test_of_a_large_source_some_numbers_are_picked():
    (record,) = ll.explain.check_gradient(ll.tanh, ll.ones((40, 40)), limit=7).records
    assert record.compared == 7
    assert "in 7 of 1600 numbers" in str(record)


def test_without_anything_to_differentiate_it_says_so():
    with pytest.raises(ArgumentError, match="reads no floating tensor"):
        ll.explain.check_gradient(lambda n: n + 1, ll.constant(1))
    with pytest.raises(ArgumentError, match="needs a function"):
        ll.explain.check_gradient(3)


def test_differences_run_the_call_without_its_gradient():
    passes = both_passes("check_gradient", lambda x: ll.tanh(x) * 2.0, True, (ll.constant([1.0, 2.0]),), {})
    forward = passes.forward()
    assert passes.gradient_nodes().isdisjoint(forward.graph.nodes)
    assert np.array_equal(forward.outputs()[0], passes.outputs()[0])
