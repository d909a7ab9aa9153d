"""What a trace has written while it runs, and when it has failed."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight import events
from limelight.staging import partial_trace


def fail(function: Any, *args: Any) -> partial_trace.PartialTrace:
    with pytest.raises(Exception, match=r"."):
        function(*args)
    partial = partial_trace.of(function.id)
    assert partial is not None
    return partial


def test_a_failed_trace_is_there_up_to_the_op_that_failed() -> None:
    def project(x: Any) -> Any:
        y = ll.tanh(x)
        return y @ ll.ones((3, 3))

    partial = fail(ll.function(project), ll.ones((2, 2)))
    assert [node.op.name for node in partial.graph.nodes] == ["tanh", "full"]
    assert partial.op == "matmul"
    assert list(partial.operands) == [node.outputs[0] for node in partial.graph.nodes]
    assert partial.error.startswith("ShapeError: matmul")
    assert partial.source is not None
    assert partial.source.text == "return y @ ll.ones((3, 3))"


def test_an_error_of_pythons_own_has_a_line_and_no_op() -> None:
    def look_up(x: Any) -> Any:
        y = x + 1.0
        return {}["weights"] * y

    partial = fail(ll.function(look_up), ll.ones(2))
    assert (partial.op, partial.operands, len(partial.graph.nodes)) == ("", (), 2)
    assert partial.error == "KeyError: 'weights'"
    assert partial.stack[0].function == "look_up"


def test_the_module_whose_call_failed_is_known() -> None:
    class Model(ll.Module):
        def __init__(self) -> None:
            self.head = ll.nn.Lambda(lambda x: x @ ll.ones((3, 3)))

        def call(self, x: Any) -> Any:
            return self.head(x)

    model = Model()
    partial = fail(ll.function(model), ll.ones((2, 2)))
    assert partial.source is not None
    assert partial.source.call.path == "model.head"


def test_what_fails_in_a_branch_leaves_the_graph_around_it() -> None:
    def chosen(x: Any) -> Any:
        y = ll.exp(x)
        return ll.cond(ll.sum(y) > 0, lambda: y @ ll.ones((3, 3)), lambda: y)

    partial = fail(ll.function(chosen), ll.ones((2, 2)))
    assert [node.op.name for node in partial.graph.nodes][:2] == ["exp", "sum"]
    assert partial.op == "matmul"


def test_a_trace_that_succeeds_and_a_cleared_cache_forget_the_failed_one() -> None:
    @ll.function
    def add(x: Any, y: Any) -> Any:
        return x + y

    for forget in (lambda: add(ll.ones(2), ll.ones(2)), add.clear_cache):
        fail(add, ll.ones(2), ll.ones(3))
        forget()
        assert partial_trace.of(add.id) is None


def test_a_failed_trace_says_how_many_calls_had_gone_well_before() -> None:
    @ll.function
    def add(x: Any, y: Any) -> Any:
        return x + y

    for _ in range(3):
        add(ll.ones(2), ll.ones(2))
    partial = fail(add, ll.ones(2), ll.ones(3))
    assert partial.calls == add.trace_cache.history.calls == 3
    add(ll.ones(2), ll.ones(2))
    assert add.trace_cache.history.calls == 4


def test_few_are_kept_and_no_large_literal() -> None:
    arrays = []

    def widen(x: Any) -> Any:
        array = np.full((1000, 1000), 1.5, np.float32)
        arrays.append(weakref.ref(array))
        y = x + ll.constant(array)
        del array
        return y @ ll.ones((3, 3))

    staged = ll.function(widen)
    partial = fail(staged, ll.ones((1000, 1000)))
    gc.collect()
    assert arrays[0]() is None
    names = [node.op.name for node in partial.graph.nodes]
    assert names == ["constant", "add", "full"]
    assert partial.graph.nodes[1].inputs[1] is partial.graph.nodes[0].outputs[0]
    others = [ll.function(lambda x: x @ ll.ones((3, 3))) for _ in range(partial_trace.MOST_KEPT)]
    for other in others:
        fail(other, ll.ones((2, 2)))
    assert partial_trace.of(staged.id) is None
    assert partial_trace.of(others[0].id) is not None


def test_the_graph_of_a_running_trace_can_be_read_from_another_thread() -> None:
    seen: list[Any] = []

    def look(function_id: int) -> None:
        partial = partial_trace.of(function_id)
        assert partial is not None
        seen.append(([node.op.name for node in partial.graph.nodes], partial.error, partial_trace.size(function_id)))

    @ll.function
    def slow(x: Any) -> Any:
        for _ in range(2):
            x = ll.tanh(x)
            thread = threading.Thread(target=look, args=(slow.id,))
            thread.start()
            thread.join()
        return x

    slow(ll.ones(2))
    assert seen == [(["tanh"], "", 1), (["tanh", "tanh"], "", 2)]
    assert partial_trace.size(slow.id) is None
    assert partial_trace.of(slow.id) is None


def test_listeners_hear_of_begun_and_failed_traces() -> None:
    @ll.function
    def project(x: Any) -> Any:
        return ll.tanh(x) @ ll.ones((3, 3))

    heard: list[Any] = []
    with events.listen(heard.append, events.TraceBegun, events.TraceFailed, events.Traced):
        fail(project, ll.ones((2, 2)))
        project(ll.ones((2, 3)))
    assert [type(event).__name__ for event in heard] == ["TraceBegun", "TraceFailed", "TraceBegun", "Traced"]
    assert heard[1].function == "project"
    assert heard[1].nodes == 2
    assert heard[1].error.startswith("ShapeError")
