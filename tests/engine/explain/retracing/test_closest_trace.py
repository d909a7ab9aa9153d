"""Which trace an explanation compares with, what a prediction says, and what explanations cost."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref

import pytest

import limelight as ll
from limelight.explain import hook
from limelight.explain.retracing import closest_trace, diagnosis
from limelight.staging import trace_cache


@pytest.fixture(autouse=True)
def _quiet():
    """Retracing is what these tests do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        yield


def newest(f):
    return ll.explain.retrace(f).records[-1]


def only(f):
    """The one differing part of the newest trace."""
    (difference,) = newest(f).differences
    return difference


def constantly(*_, **__):
    return 1.0


x = ll.ones((2,))


# Which trace is the closest


def test_the_fewest_differences_win():
    f = ll.function(lambda a, b, c: 1.0)
    f(1, 2, 3)
    f(4, 5, 6)
    f(1, 2, 9)
    assert newest(f).closest.number == 1
    f(4, 5, 7)
    assert newest(f).closest.number == 2
    assert [d.path for d in newest(f).differences] == ["c"]


def test_then_the_slightest_difference():
    f = ll.function(lambda v: 1.0)
    f(ll.ones((2, 2)))
    f(ll.ones((3,), dtype="int32"))
    f(ll.ones((3, 2)))
    assert newest(f).closest.number == 1
    f(ll.ones((5,), dtype="int32"))
    assert newest(f).closest.number == 2


def test_then_the_most_used():
    f = ll.function(lambda v: 1.0)
    for n in (1, 2, 2, 3):
        f(ll.ones((n,)))
    f(ll.ones((4,)))
    assert newest(f).closest.number == 2
    assert newest(f).closest.uses == 2


def test_a_small_change_of_structure_beats_many_changed_leaves():
    f = ll.function(constantly)
    f([1, 2, 3, 4])
    f({"a": 5, "b": 6, "c": 7, "d": 8, "e": 9})
    f({"a": 1, "b": 2, "c": 3, "d": 4})
    f({"a": 5, "b": 6, "c": 7, "d": 8})
    assert newest(f).closest.number == 2
    assert only(f).cause == "dictionary keys"


# Predictions


def test_a_prediction_neither_traces_nor_counts():
    f = ll.function(lambda v: v * 2.0, name="f")
    assert not f.explain(x)
    assert str(f.explain(x)) == "`f` would trace: first call."
    f(x)
    hit = f.explain(ll.zeros((2,)))
    assert hit
    assert hit.entry is f.trace_cache[0]
    assert "`f` would run trace #1 (test_closest_trace.py line " in str(hit)
    assert "used once): v: f32[2]" in str(hit)
    miss = f.explain(ll.ones((3,)))
    assert not miss
    assert miss.miss.differences[0].after == "f32[3]"
    assert "Cost" not in str(miss)
    assert f.trace_count == 1
    assert f.trace_cache[0].hits == 0
    assert len(ll.explain.retrace(f).records) == 1


# What an explanation costs


def test_explanations_keep_nothing_alive():
    class Config:
        pass

    f = ll.function(lambda v, config, kind: v)
    first, second = Config(), Config()
    kinds = [type("Kind", (), {}) for _ in range(2)]
    f(x, first, kinds[0])
    f(x, second, kinds[1])
    f.clear_cache()
    f(x, 1, 2)
    references = [weakref.ref(one) for one in (first, second, *kinds)]
    del first, second, kinds
    gc.collect()  # classes are in cycles by themselves
    assert [reference() for reference in references] == [None] * 4
    assert len(ll.explain.retrace(f).records) == 3


def test_nothing_is_explained_on_a_hit(monkeypatch):
    f = ll.function(lambda v, g: g(v))
    f(x, ll.tanh)
    from limelight.staging import weak_identity

    for module, name in ((hook, "diagnose"), (hook, "warn_if_retracing"), (weak_identity, "describe_object")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("explained a hit"))
    f(x, ll.tanh)
    assert f.trace_cache[0].hits == 1
    with pytest.raises(pytest.fail.Exception, match="explained a hit"):  # what is replaced is what explains a miss
        f(ll.ones((9,)), ll.tanh)


def test_a_thousand_differing_leaves_are_explained_quickly():
    """The bar is 2 ms, which `benchmarks/explain.py` measures; calls are the same on any machine."""
    f = ll.function(lambda tree, which: 1.0)
    names = [f"layer{i}" for i in range(1000)]
    for i in range(40):
        f(dict.fromkeys(names, 1), i)
    key = f._call((dict.fromkeys(names, "a"), 5), {}).key
    calls: list[str] = []
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event == "call" else None)
    try:
        record = diagnosis.diagnose(f, key, ())
    finally:
        sys.setprofile(None)
    assert len(record.differences) == 1000
    assert len(calls) < 20_000  # a few for each leaf, not for each leaf of each of the 40 traces


def test_traces_with_unknown_sizes_are_counted_without_the_sizes_that_they_serve():
    f = ll.function(lambda tree, which: 1.0)
    for rank, which in ((1, "a"), (2, "b")):
        spec = ll.TensorSpec((None,) * rank)
        f.get_concrete_function({"x": spec, "y": spec}, which)
    f({"x": ll.ones((4,)), "y": ll.ones((5,))}, "c")
    (record,) = ll.explain.retrace(f).records[2:]
    assert [difference.path for difference in record.differences] == ["which"]
    assert record.closest.number == 1


def test_deep_trees_are_compared_leaf_by_leaf():
    def nested(depth, x):
        return {"inner": nested(depth - 1, x), "a": 1, "b": [2, 3]} if depth else {"x": x, "y": 4}

    f = ll.function(lambda tree: 1.0)
    f(nested(30, 5))
    f(nested(30, 6) | {"c": 7})
    paths = [difference.path for difference in ll.explain.retrace(f).records[-1].differences]
    assert paths == ["tree", "tree" + '["inner"]' * 30 + '["x"]']


def test_another_dtype_alone_is_closer_than_another_dtype_and_size():
    f = ll.function(lambda x: 1.0)
    f(ll.ones((16, 4)))
    f(ll.ones((3, 4)))
    f(ll.ones((16, 4), dtype="float64"))
    assert ll.explain.retrace(f).records[-1].closest.number == 1


def test_no_signature_is_offered_where_sizes_decide_while_tracing():
    @ll.function
    def deviation(x):
        if x.shape[0] == 1:
            return ll.sum(x) * 0.0
        return ll.sum(x * x)

    deviation(ll.ones((3,)))
    deviation(ll.ones((4,)))
    assert newest(deviation).fixes == ()


def test_a_miss_beside_many_traces_compares_few(monkeypatch):
    """Made anew for each of a thousand numbers, a trace must not look at all those before it."""
    weighed = []
    cause_of = closest_trace.cause_of
    monkeypatch.setattr(closest_trace, "cause_of", lambda *parts: weighed.append(parts) or cause_of(*parts))
    f = ll.function(lambda x, n: x + n)
    x = ll.constant([1.0, 2.0])
    for n in range(120):
        f(x, n)
    for _ in range(3):
        f(x, 5)
    weighed.clear()
    f(x, 200)
    assert len(weighed) <= 32
    assert f.trace_cache[-1].miss.closest.number == 6  # the most used one, however old
    assert len(f.trace_cache) == 121


def test_traces_that_hold_no_object_are_not_asked_whether_it_has_died(monkeypatch):
    asked = []
    is_dead = trace_cache._is_dead
    monkeypatch.setattr(trace_cache, "_is_dead", lambda key: asked.append(key) or is_dead(key))
    f = ll.function(lambda x, g: x if g is None else g(x))
    for n in range(4):
        f(ll.ones(n), None)
    assert asked == []
    f(ll.ones(2), abs)
    f(ll.ones(9), None)
    assert len(asked) == 1
