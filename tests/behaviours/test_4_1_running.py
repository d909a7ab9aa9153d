"""Section 4.1, running graphs: behaviours 18 to 27."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from behaving import Here, ops_of

import limelight as ll
from limelight.core import device_scopes, dispatch
from limelight.errors import RunError, ShapeError

x3 = ll.constant(3.0)


# 18 Pruning


def test_018_dead_pure_ops_vanish_and_stateful_ones_stay() -> None:
    v = ll.Variable(0.0)
    printed: list[float] = []

    @ll.function
    def f(a: Any) -> Any:
        ll.tanh(a)  # dead
        doubled = a * 2  # feeds only what stays
        v.assign(doubled)
        ll.random.normal((3,))
        ll.py_func(lambda t: printed.append(t.item()), [a], None)
        return a + 1

    assert f(x3).item() == 4.0
    assert v.numpy() == 6.0
    assert printed == [3.0]
    kept = [node.op.name for node in f.trace_cache[0].optimised.nodes]
    assert "tanh" not in kept
    assert {"assign", "py_func", "add", "multiply"} <= set(kept)
    assert any(node.op.effect == "random" for node in f.trace_cache[0].optimised.nodes)


def test_018_an_unused_draw_still_advances_the_stream() -> None:
    def draws(unused: bool) -> Any:
        if unused:
            ll.random.normal((3,))
        return ll.random.normal((3,))

    f = ll.function(draws)
    streams = []
    for run in (draws, f):
        ll.random.seed(3)
        streams.append(run(True).tolist())
    assert streams[0] == streams[1]
    ll.random.seed(3)
    assert f(False).tolist() != streams[0]


def test_018_a_dead_op_of_a_failing_shape_still_raises_at_trace_time() -> None:
    @ll.function
    def f(a: Any) -> Any:
        a @ ll.ones((7,))
        return a

    with pytest.raises(ShapeError, match="matmul"):
        f(ll.ones((2,)))


# 19 Optimisation is invisible


def test_019_buffers_in_use_are_never_reused() -> None:
    v = ll.Variable([1.0, 2.0, 3.0])
    captured = ll.constant([1.0, 1.0, 1.0])

    @ll.function
    def f(a: Any) -> Any:
        kept = a + captured
        view = kept.reshape((3, 1))
        read = v.read_value()
        changed = ll.exp(kept * 2) - read
        v.assign(changed)
        return kept, view, read, changed

    a = ll.constant([0.0, 1.0, 2.0])
    first = f(a)
    texts = [t.tolist() for t in first]
    second = f(a)
    assert [t.tolist() for t in first] == texts
    assert first[0].tolist() == [1.0, 2.0, 3.0]
    assert first[2].tolist() == [1.0, 2.0, 3.0]
    assert second[2].tolist() == first[3].tolist()
    assert captured.tolist() == [1.0, 1.0, 1.0]
    assert a.tolist() == [0.0, 1.0, 2.0]


def test_019_reads_around_a_write_are_not_shared() -> None:
    v = ll.Variable(1.0)

    @ll.function
    def f() -> Any:
        before = v.read_value()
        v.assign_add(1.0)
        return before, v.read_value()

    assert [t.item() for t in f()] == [1.0, 2.0]


# 20 A call is one operation


def test_020_a_call_is_one_operation_for_tapes_traces_and_listeners() -> None:
    @ll.function
    def hundred(a: Any) -> Any:
        for _ in range(100):
            a = ll.tanh(a)
        return a

    x = ll.constant(0.5)
    with ll.GradientTape() as tape:
        tape.watch(x)
        hundred(x)
    assert len(tape.entries) == 1
    assert tape.entries[0].op.startswith("call")
    outer = ll.function(lambda a: hundred(a) + 1)
    outer(x)
    assert ops_of(outer) == ["call", "add"]
    seen: list[Any] = []
    with ll.events.listen(seen.append, ll.events.OpRan):
        hundred(x)
    assert [event.op for event in seen] == ["call"]


# 21 Order of errors


def test_021_the_earliest_error_in_program_order_wins() -> None:
    def fail(name: str) -> Callable[..., Any]:
        def raises(t: Any) -> Any:
            raise ValueError(name)

        return raises

    spec = ll.TensorSpec((), "float32")

    @ll.function
    def f(a: Any) -> Any:
        first = ll.py_func(fail("first"), [a], spec)
        second = ll.py_func(fail("second"), [a], spec)
        return second, first

    for _ in range(10):
        with pytest.raises(ValueError, match=r"^first"):
            f(x3)


# 22 Clean state (tests/engine/programs/test_bad_input.py goes through everything that may be left behind)


def test_022_a_failing_trace_leaves_no_trace() -> None:
    @ll.function
    def f(a: Any, fail: bool) -> Any:
        with ll.device("cpu:0"), ll.GradientTape() as tape:
            tape.watch(a)
            if fail:
                raise KeyboardInterrupt
            return a * 2

    with pytest.raises(KeyboardInterrupt):
        f(x3, True)
    assert dispatch.active == []
    assert len(dispatch.stack()) == 1
    assert device_scopes.requested_device() is None
    assert len(f.trace_cache) == 0
    assert f(x3, False).item() == 6.0


# 23 Errors at run time are not sticky


def test_023_errors_at_run_time_are_not_sticky() -> None:
    v = ll.Variable(0.0)

    @ll.function
    def f(i: Any) -> Any:
        v.assign_add(1.0)
        return ll.take(ll.constant([10.0, 20.0]), i, axis=0)

    with pytest.raises(RunError, match="out of bounds"):
        f(ll.constant(5))
    assert v.numpy() == 1.0  # what was written before the failing op stays
    assert f(ll.constant(1)).item() == 20.0
    assert f.trace_count == 1


def test_023_what_was_assigned_before_the_failing_op_is_reported() -> None:
    count, later = ll.Variable(0.0, name="count"), ll.Variable(0.0, name="later")

    @ll.function
    def inner(i: Any) -> Any:
        count.assign_add(1.0)
        taken = ll.take(ll.constant([10.0, 20.0]), i, axis=0)
        later.assign(taken)
        return taken

    @ll.function
    def outer(i: Any) -> Any:
        ll.random.normal(())  # the state of a generator is nobody's variable
        return inner(i) * 2

    with pytest.raises(RunError) as caught:
        inner(ll.constant(5))
    assert str(caught.value).endswith("; assigned before that, which stands: `count`")
    with pytest.raises(RunError) as caught:
        outer(ll.constant(5))
    assert str(caught.value).count("which stands: `count`") == 1
    assert (count.numpy(), later.numpy()) == (2.0, 0.0)
    with pytest.raises(RunError) as caught:
        ll.function(lambda i: ll.take(ll.constant([1.0]), i, axis=0))(ll.constant(5))
    assert "stands" not in str(caught.value)


# 24 Errors at run time point at the user's code


def test_024_errors_at_run_time_name_function_op_shapes_and_line(here: Here) -> None:
    @ll.function
    def inner(v: Any, i: Any) -> Any:
        return ll.take(v, i, axis=0)  # line A

    @ll.function
    def outer(v: Any, i: Any) -> Any:
        return inner(v, i) * 2  # line B

    a, b = here(-6), here(-2)
    with pytest.raises(RunError) as caught:
        outer(ll.ones((2, 3)), ll.constant([7]))
    message = str(caught.value)
    assert re.search(rf"take\(f32\[2,3\], i32\[1\]\) of inner failed: IndexError: .*\({a}: return ll.take", message)
    assert re.search(rf"called by outer \({b}: return inner\(v, i\) \* 2", message)
    assert isinstance(caught.value.__context__, IndexError)
    assert isinstance(caught.value, IndexError)
    with pytest.raises(IndexError, match=r"take.* failed: IndexError"):
        ll.take(ll.ones((2, 3)), ll.constant([7]), axis=0)


def test_024_mismatches_found_at_run_time_read_as_they_do_eagerly(here: Here) -> None:
    f = ll.function(lambda a, b: a + b, input_signature=[ll.TensorSpec((None,), "float32")] * 2)
    line = here(-1)
    with pytest.raises(ShapeError) as staged:
        f(ll.ones((2,)), ll.ones((3,)))
    with pytest.raises(ShapeError) as eager:
        f.python_function(ll.ones((2,)), ll.ones((3,)))
    assert str(staged.value).startswith(eager.value.bare)
    assert line in str(staged.value)


# 26 References


def test_026_tensors_die_with_their_last_reference() -> None:
    t = ll.ones((3,)) * 2
    t.note = "attributes are welcome"
    dead = weakref.ref(t)
    gc.disable()
    try:
        del t
        assert dead() is None
    finally:
        gc.enable()
    cycle = ll.ones((3,))
    cycle.me = cycle
    dead = weakref.ref(cycle)
    del cycle
    gc.collect()
    assert dead() is None


def test_026_a_call_keeps_no_argument_and_no_result() -> None:
    f = ll.function(lambda a: a * 2)
    a = ll.ones((3,))
    b = f(a)
    refs = [weakref.ref(a), weakref.ref(b)]
    gc.disable()
    try:
        del a, b
        assert [r() for r in refs] == [None, None]
    finally:
        gc.enable()


# 27 Threads


def test_027_a_new_thread_starts_eager() -> None:
    found: list[Any] = []

    def look() -> None:
        found.append((len(dispatch.stack()), device_scopes.requested_device(), (x3 + 1).item()))

    @ll.function
    def f(a: Any) -> Any:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return a * 2

    with ll.device("cpu:0"), ll.GradientTape() as tape:
        tape.watch(x3)
        f(x3)
    assert found == [(1, None, 4.0)]
    assert ops_of(f) == ["multiply"]
    assert len(tape.entries) == 1


def test_023_also_what_was_assigned_before_the_table_in_which_it_fails() -> None:
    early, count = ll.Variable(0.0, name="early"), ll.Variable(0.0, name="count")

    @ll.function
    def f(i: Any) -> Any:
        early.assign(2.0)
        y = ll.py_func(lambda a: a + 1, [early + 0.0], ll.TensorSpec((), ll.float32))  # no table runs it
        count.assign_add(y)
        return ll.take(ll.constant([10.0, 20.0]), i, axis=0) + count

    with pytest.raises(RunError) as caught:
        f(ll.constant(5))
    assert str(caught.value).endswith("; assigned before that, which stands: `early`, `count`")
    assert (early.numpy(), count.numpy()) == (2.0, 3.0)
