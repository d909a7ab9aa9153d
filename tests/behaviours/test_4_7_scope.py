"""Section 4.7, escaping from graphs: behaviours 174 to 179."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from behaving import both, gradient, scalar

import limelight as ll
from limelight.core import dispatch
from limelight.errors import SymbolicValueError

x = ll.constant(3.0)


def calling(fn: Callable[..., Any], spec: Any) -> Callable[[Any], Any]:
    """A function that calls `fn` through py_func."""
    return lambda t: ll.py_func(fn, [t], spec)


# 174 Lifetimes


def test_174_the_function_lives_as_long_as_its_graphs() -> None:
    class Increment:
        def __call__(self, t: Any) -> Any:
            return t + 1

    def build() -> tuple[Any, weakref.ref[Any]]:
        fn = Increment()
        ref = weakref.ref(fn)
        g = ll.function(lambda a: ll.py_func(ref(), [a], scalar))
        g(x)
        return g, ref

    gc.disable()
    try:
        g, ref = build()
        assert ref() is not None
        assert g(x).item() == 4.0
        del g
        assert ref() is None
    finally:
        gc.enable()


@pytest.mark.slow  # many graphs, and garbage collected between
def test_174_graphs_with_py_funcs_do_not_pile_up() -> None:
    def build() -> None:
        g: Any = ll.function(lambda a: ll.py_func(lambda t: t if t > 0 else g(t), [a], scalar))
        g(x)

    for i in range(120):
        if i == 20:
            gc.collect()
            before = len(gc.get_objects())
        build()
    gc.collect()
    assert len(gc.get_objects()) - before < 200


# 175 Placement


@both
def test_175_py_func_runs_where_it_is_placed(stage: Callable[..., Any], cpus: list[Any]) -> None:
    seen: list[Any] = []

    def f(t: Any) -> Any:
        seen.append((t.device.short, (t + 1).device.short))
        return t * 2

    @stage
    def g(a: Any) -> Any:
        with ll.device("cpu:1"):
            return ll.py_func(f, [a * 1], scalar)

    y = g(x)
    assert y.item() == 6.0
    assert seen == [("CPU:1", "CPU:1")]
    assert y.device is cpus[1]


# 176 Concurrency


def test_176_py_funcs_keep_program_order() -> None:
    order: list[int] = []

    def note(k: int) -> Callable[[], None]:
        return lambda: order.append(k)

    @ll.function
    def f(a: Any) -> Any:
        for k in range(20):
            ll.py_func(note(k), [], None)
        ll.cond(a > 0, lambda: ll.py_func(note(20), [], None), lambda: None)
        ll.py_func(note(21), [], None)
        return a

    f(x)
    assert order == list(range(22))


def test_176_blocking_py_funcs_of_two_calls_can_wait_for_each_other() -> None:
    meet = threading.Barrier(2, timeout=300)
    f = ll.function(lambda a: ll.py_func(lambda t: (meet.wait(), t)[1], [a], scalar))
    with pytest.raises(threading.BrokenBarrierError):
        meet.abort()
        f(x)  # traced; alone it would wait for ever
    meet.reset()
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(f(x).item())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert found == [3.0, 3.0]


def test_176_a_blocking_py_func_does_not_stop_others_from_tracing() -> None:
    entered, leave = threading.Event(), threading.Event()

    def block(t: Any) -> Any:
        entered.set()
        assert leave.wait(300)
        return t

    f = ll.function(lambda a: ll.py_func(block, [a], scalar))
    thread = threading.Thread(target=lambda: f(x))
    thread.start()
    try:
        assert entered.wait(300)
        assert ll.function(lambda a: a * 2)(x).item() == 6.0
    finally:
        leave.set()
        thread.join(300)
    assert not thread.is_alive()


# 177 Staged functions inside


def test_177_staged_functions_inside_use_their_cache() -> None:
    helper = ll.function(lambda t: t * t)
    f = ll.function(lambda a: ll.py_func(lambda t: helper(t) + 1, [a], scalar))
    assert [f(x).item() for _ in range(3)] == [10.0] * 3
    assert (helper.trace_count, f.trace_count) == (1, 1)
    assert helper.trace_cache[0].hits == 2
    assert gradient(f, x)[0].item() == 6.0


# 178, 179 init_scope


def test_178_init_scope_leaves_the_trace_once_for_each_trace() -> None:
    made: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        with ll.init_scope():
            assert len(dispatch.stack()) == 1
            made.append(ll.constant(2.0) * 3)
        return a * made[-1]

    assert [f(x).item(), f(x).item()] == [18.0, 18.0]
    assert [t.item() for t in made] == [6.0]
    assert [n.op.name for n in f.trace_cache[0].graph.nodes] == ["multiply"]
    f(ll.ones((2,)))
    assert len(made) == f.trace_count == 2


def test_178_it_lifts_through_functions_conditions_and_loops() -> None:
    made: list[str] = []

    def note(name: str) -> None:
        with ll.init_scope():
            assert len(dispatch.stack()) == 1
            made.append(f"{name} {(ll.constant(1) + 1).item()}")

    @ll.function
    def inner(a: Any) -> Any:
        note("inner")

        def branch() -> Any:
            note("branch")
            return a

        def body(i: Any) -> Any:
            note("body")
            return (i + 1,)

        ll.while_loop(lambda i: i < 3, body, (0,))
        return ll.cond(a > 0, branch, lambda: -a)

    outer = ll.function(lambda a: inner(a) * 2)
    assert outer(x).item() == 6.0
    assert made == ["inner 2", "body 2", "branch 2"]


def test_178_the_device_stays_and_tapes_do_not(cpus: list[Any]) -> None:
    found: list[Any] = []
    with ll.device("cpu:1"), ll.GradientTape() as tape:
        tape.watch(x)
        with ll.init_scope():
            found.append((x * 2).device)
        y = x * 3
    assert found[0] is cpus[1]
    assert len(tape.entries) == 1
    assert tape.gradient(y, x).item() == 3.0


def test_178_state_may_be_created_inside() -> None:
    made: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        with ll.init_scope():
            made.append(ll.Variable(2.0))
        return made[-1].assign_add(a)

    assert [f(x).item(), f(x).item()] == [5.0, 8.0]
    assert (f.trace_count, len(made)) == (1, 1)
    assert f(ll.constant(1, dtype="float32")).item() == 9.0


def test_178_an_exception_inside_restores_the_trace() -> None:
    @ll.function
    def f(a: Any) -> Any:
        with pytest.raises(KeyError), ll.init_scope():
            raise KeyError
        return a * 2

    assert f(x).item() == 6.0
    assert len(f.trace_cache[0].graph.nodes) == 2


@pytest.mark.parametrize(
    "use", [lambda t: t + 1, lambda t: t.numpy(), lambda t: bool(t) or 1, lambda t: ll.Variable(t) * 2]
)
def test_179_symbolic_values_are_out_of_scope_inside(use: Callable[..., Any]) -> None:
    @ll.function
    def f(first: Any) -> Any:
        made = first * 2
        with ll.init_scope():
            use(made)
        return made

    with pytest.raises(SymbolicValueError, match="out of scope") as caught:
        f(x)
    message = str(caught.value)
    assert "the result of multiply, f32[] (test_4_7_scope.py line" in message
    assert "made = first * 2" in message
    assert f"(test_4_7_scope.py line {use.__code__.co_firstlineno}" in message
    assert len(f.trace_cache) == 0
    assert dispatch.active == []


def test_179_arguments_are_named() -> None:
    @ll.function
    def f(first: Any) -> Any:
        with ll.init_scope():
            return first + 1

    with pytest.raises(SymbolicValueError, match="the argument `first`, f32"):
        f(x)
