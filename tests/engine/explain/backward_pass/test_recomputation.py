"""What recomputing a tensor that is kept for the gradient would save and cost."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import limelight as ll
from limelight.explain.backward_pass import recomputation
from limelight.explain.backward_pass.both_passes import BothPasses


def test_each_tensor_that_the_gradient_reads_is_told_once_with_what_would_run_again():
    w = ll.Variable(ll.ones((8, 4)), name="w")

    def program(x):
        hidden = ll.tanh(x @ w)
        return ll.sum(hidden * hidden)

    (kept,) = ll.explain.recomputations(program, ll.ones((16, 8))).records
    assert (kept.op, kept.spec, kept.nbytes) == ("tanh", "f32[16,4]", 16 * 4 * 4)
    assert set(kept.again) == {"tanh", "matmul", "read_variable"}
    assert kept.line.text == "hidden = ll.tanh(x @ w)"
    assert kept.seconds > 0
    assert "dropping this and recomputing saves 256 bytes, costs" in str(kept)


def test_what_is_kept_anyway_does_not_run_again():
    chain = ll.explain.recomputations(lambda x: ll.exp(ll.tanh(x)), ll.ones((3,)))
    assert {one.op: one.again for one in chain.records} == {"tanh": ("tanh",), "exp": ("exp",)}


def test_a_linear_call_keeps_nothing():
    report = ll.explain.recomputations(lambda x: x * 2.0 + 1.0, ll.ones((3,)))
    assert report.records == ()
    assert "keeps nothing but inputs" in str(report)


def test_sizes_that_a_signature_leaves_open_are_those_of_the_call():
    f = ll.function(lambda x: ll.sum(ll.tanh(x) * 2.0), input_signature=[ll.TensorSpec((None, 10))])
    (record, *_) = ll.explain.recomputations(f, ll.ones((5, 10))).records
    assert (record.op, record.spec, record.nbytes) == ("tanh", "f32[?,10]", 200)


def test_the_set_up_of_a_run_counts_for_no_op(monkeypatch):
    clock = count()  # a second for each look at it
    run = BothPasses.run

    def slow_run(passes):
        for _ in range(1000):
            next(clock)
        return run(passes)

    monkeypatch.setattr(BothPasses, "run", slow_run)
    monkeypatch.setattr(recomputation, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    chain = ll.explain.recomputations(lambda x: ll.exp(ll.tanh(x)), ll.ones((3,)))
    assert {one.op: one.seconds for one in chain.records} == {"tanh": 1.0, "exp": 1.0}
