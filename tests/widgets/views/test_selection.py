"""What is chosen in a cache: graphs follow, and two traces are compared."""

from __future__ import annotations

import limelight as ll
import limelight_widgets


def test_graphs_of_the_function_follow_the_chosen_trace():
    double = ll.function(lambda x: x * 2.0)
    for size in (2, 3):
        double(ll.ones((size,)))
    cache, graph = limelight_widgets.trace_cache(double), limelight_widgets.graph(double)
    other = limelight_widgets.graph(double.trace_cache[1].graph)
    before = other.state()
    assert "f32[3]" in graph.state()["signature"]
    cache._heard("chosen", {"view": "v", "traces": [[double.id, 0]]})
    assert "f32[2]" in graph.state()["signature"]
    assert cache.state()["chosen"] == [[double.id, 0]]
    assert cache.state()["diff"] is None
    assert other.state() == before
    cache._heard("chosen", {"view": "v", "traces": [[double.id + 10_000, 1]]})
    assert "f32[2]" in graph.state()["signature"], "a trace of another function is none of its own"
    cache._heard("chosen", {"view": "v", "traces": [[double.id, 99]]})
    assert "f32[2]" in graph.state()["signature"], "nor one that has gone"


def test_two_chosen_traces_are_compared():
    double = ll.function(lambda x: x * 2.0)
    for size in (4, 5):
        double(ll.ones((size,)))
    cache = limelight_widgets.trace_cache(double)
    first, second = ([double.id, entry.index] for entry in double.trace_cache)
    cache._heard("chosen", {"view": "v", "traces": [first, second]})
    diff = cache.state()["diff"]
    assert "differ in 1 part" in diff["sentence"]
    assert ["x", "f32[4]", "f32[5]"] == diff["tables"][0]["rows"][0][:3]
    cache._heard("chosen", {"view": "v", "traces": [first, [0, 0]]})
    assert cache.state()["diff"] is None
    double.clear_cache()
    fresh = limelight_widgets.trace_cache(double)
    fresh._heard("chosen", {"view": "v", "traces": [first, second]})
    assert fresh.state()["diff"] is None
