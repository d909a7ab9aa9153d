"""Section 4.7, escaping from graphs: behaviours 169 to 179."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight import dispatch
from limelight.errors import ArgumentError, DTypeError, ShapeError, SignatureError, SymbolicValueError

both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
scalar = ll.TensorSpec((), "float32")
x = ll.constant(3.0)


def gradient(f: Callable[..., Any], *xs: Any) -> Any:
    with ll.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs)


def calling(fn: Callable[..., Any], spec: Any) -> Callable[[Any], Any]:
    """A function that calls `fn` through py_func."""
    return lambda t: ll.py_func(fn, [t], spec)


# 169 Eagerly it is a plain call


def test_169_py_func_eagerly_is_a_plain_call() -> None:
    seen: list[Any] = []

    def f(t: Any) -> Any:
        seen.append(t)
        return t * t

    assert ll.py_func(f, [x], scalar).item() == 9.0
    assert seen[0] is x
    assert gradient(lambda t: ll.py_func(f, [t], scalar), x)[0].item() == 6.0
    with pytest.raises(ZeroDivisionError):
        ll.py_func(lambda t: 1 / 0, [x], scalar)


# 170 Staged, it runs at each call


def test_170_python_sees_values_and_its_own_state_at_each_call() -> None:
    seen: list[Any] = []
    state = {"offset": 0.0}

    def f(t: Any) -> Any:
        assert type(t) is ll.Tensor
        seen.append(t.numpy())
        return ll.constant(float(np.max(t.numpy())) + state["offset"])

    g = ll.function(lambda t: ll.py_func(f, [t * 2], scalar))
    assert g(ll.constant([1.0, 5.0])).item() == 10.0
    state["offset"] = 100.0
    assert g(ll.constant([1.0, 2.0])).item() == 104.0
    assert [a.tolist() for a in seen] == [[2.0, 10.0], [2.0, 4.0]]
    assert g.trace_count == 1


def test_170_recursion_may_depend_on_data() -> None:
    def fibonacci(n: Any) -> Any:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    f = ll.function(lambda n: ll.py_func(fibonacci, [n], ll.TensorSpec((), "int32")))
    assert [f(ll.constant(n)).item() for n in (1, 5, 10)] == [1, 5, 55]


@both
def test_170_promises_are_checked(stage: Callable[..., Any]) -> None:
    cases: list[tuple[Any, Any, type[Exception], str]] = [
        (lambda t: ll.astype(t, "float64"), scalar, DTypeError, "returned float64, output_specs promise float32"),
        (lambda t: np.float64(1), scalar, DTypeError, "returned float64"),
        (lambda t: 0.5, ll.TensorSpec((), "int32"), DTypeError, "would lose information as int32"),
        (lambda t: ll.ones((2,)), scalar, ShapeError, r"returned f32\[2\], output_specs promise f32\[\]"),
        (lambda t: (t, t), [scalar], SignatureError, "returned 2 values, output_specs promise 1"),
        (lambda t: t, [scalar, scalar], SignatureError, "returned 1 values, output_specs promise 2"),
        (lambda t: None, scalar, SignatureError, "returned None"),
        (lambda t: ll.Variable(1.0), scalar, SignatureError, r"returned a variable; return v\.read_value\(\)"),
        (lambda t: "text", scalar, DTypeError, "cannot make a tensor"),
    ]
    for fn, spec, error, message in cases:
        with pytest.raises(error, match=message) as caught:
            stage(calling(fn, spec))(x)
        assert "test_4_7.py line" in str(caught.value)
    assert dispatch.active == []


@both
def test_170_what_cannot_be_a_py_func_is_refused(stage: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match="fn must be a function, got int"):
        stage(lambda t: ll.py_func(3, [t], scalar))(x)
    with pytest.raises(ArgumentError, match=r"must be a list or tuple of tensors, got .*Tensor; write \[x\]"):
        stage(lambda t: ll.py_func(lambda u: u, t, scalar))(ll.ones((3,)))
    with pytest.raises(DTypeError, match="'foo' is not a dtype"):
        stage(lambda t: ll.py_func(lambda u: u, [t], "foo"))(x)


@both
def test_170_results_of_every_form(stage: Callable[..., Any]) -> None:
    fortran = np.asfortranarray(np.arange(6, dtype="float32").reshape(2, 3))
    f = stage(lambda: ll.py_func(lambda: fortran, [], ll.TensorSpec((2, None), "float32")))
    assert f().tolist() == fortran.tolist()
    assert stage(lambda t: ll.py_func(lambda u: None, [t], None))(x) is None
    many = stage(lambda t: ll.py_func(lambda u: (u, u > 0, 7), [t], [scalar, "bool", "int64"]))(x)
    assert [(t.item(), t.dtype.name) for t in many] == [(3.0, "float32"), (True, "bool"), (7, "int64")]
    assert stage(lambda: ll.py_func(list, [], []))() == ()


def test_170_what_python_keeps_of_its_operands_is_not_written_to() -> None:
    kept: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        b = a * 2
        ll.py_func(kept.append, [b], None)
        return ll.exp(b) + 1

    f(ll.constant([1.0, 2.0]))
    f(ll.constant([3.0, 4.0]))
    assert [t.tolist() for t in kept] == [[2.0, 4.0], [6.0, 8.0]]


def test_170_what_python_returns_and_writes_to_later_is_not_seen() -> None:
    mine = np.ones(2, "float32")
    f = ll.function(lambda: ll.py_func(lambda: mine, [], ll.TensorSpec((2,), "float32")))
    kept = f()
    mine[0] = 9
    assert kept.tolist() == [1.0, 1.0]
    assert f().tolist() == [9.0, 1.0]


# 171 It is differentiable


@both
def test_171_gradients_of_several_inputs_and_outputs(stage: Callable[..., Any]) -> None:
    def f(a: Any, b: Any, i: Any) -> Any:
        return a * b, a + b, i + 1

    @stage
    def g(a: Any, b: Any, i: Any) -> Any:
        product, total, _ = ll.py_func(f, [a, b, i], [scalar, scalar, "int32"])
        return product * 10 + total

    found = gradient(lambda a, b: g(a, b, ll.constant(1)), ll.constant(2.0), ll.constant(3.0))
    assert [t.item() for t in found] == [31.0, 21.0]


@both
def test_171_second_order(stage: Callable[..., Any]) -> None:
    @stage
    def f(a: Any) -> Any:
        return ll.py_func(lambda t: t * t * t, [a], scalar)

    slope = stage(lambda a: gradient(f, a)[0])
    assert slope(ll.constant(2.0)).item() == 12.0
    assert gradient(slope, ll.constant(2.0))[0].item() == 12.0


def test_171_several_runs_before_their_backward_are_matched() -> None:
    @ll.function
    def f(a: Any) -> Any:
        body = lambda i, y: (i + 1, ll.py_func(lambda t: t * t, [y], scalar))  # noqa: E731
        return ll.while_loop(lambda i, y: i < 3, body, (0, a))[1]

    a = ll.constant(1.5)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(a)
        y = f(a)
        z = f(a * 1.0)
    assert y.item() == pytest.approx(1.5**8)
    assert [tape.gradient(t, a).item() for t in (z, y, z)] == pytest.approx([8 * 1.5**7] * 3)


@both
def test_171_variables_inside_are_constants_of_the_outside(stage: Callable[..., Any]) -> None:
    v = ll.Variable(5.0)
    f = stage(lambda a: ll.py_func(lambda t: t * v, [a], scalar))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).item() == 5.0


@both
def test_171_integers_have_no_gradient(stage: Callable[..., Any]) -> None:
    f = stage(lambda a: ll.py_func(lambda t: ll.astype(t, "int32"), [a], "int32"))
    assert gradient(f, x) == (None,)


# 172 Without a tape, nothing is kept


def test_172_nothing_is_kept_without_a_tape_and_nothing_after_gradient() -> None:
    inside: list[Any] = []

    def f(t: Any) -> Any:
        hidden = t * 2
        inside.append(weakref.ref(hidden))
        return hidden * t

    g = ll.function(lambda a: ll.py_func(f, [a], scalar))
    gc.disable()
    try:
        g(x)
        assert inside[-1]() is None
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = g(x)
        assert inside[-1]() is not None
        tape.gradient(y, x)
        assert inside[-1]() is None
    finally:
        gc.enable()
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(ll.constant(1.0))
        g(x)
    assert tape.entries == ()


# 173 Exceptions


class UnusualError(Exception):
    pass


@pytest.mark.parametrize(
    "error",
    [UnusualError("a", 1), ValueError("v"), StopIteration("s"), MemoryError("m"), KeyboardInterrupt(), SystemExit(3)],
)
def test_173_exceptions_reach_the_caller_as_they_are(error: BaseException) -> None:
    fail = [True]

    def f(t: Any) -> Any:
        if fail[0]:
            raise error
        return t

    inner = ll.function(lambda a: ll.py_func(f, [a], scalar))
    g = ll.function(lambda a: inner(a) + 1)
    with pytest.raises(type(error)) as caught:
        g(x)
    assert caught.value is error
    assert caught.value.args == error.args
    frames = [entry.name for entry in caught.traceback]
    assert frames[-1] == "f"  # the user's traceback
    if isinstance(error, Exception):
        notes = "\n".join(error.__notes__)
        assert "in py_func(f32[]) of <lambda> (test_4_7.py line" in notes
        assert "in call(f32[]) of <lambda> (test_4_7.py line" in notes
    fail[0] = False
    assert g(x).item() == 4.0
    assert g.trace_count == 1
    assert dispatch.active == []


def test_173_notes_do_not_pile_up_on_an_exception_that_is_raised_again() -> None:
    error = ValueError("the same each time")

    def f(t: Any) -> Any:
        raise error

    g = ll.function(lambda a: ll.py_func(f, [a], scalar))
    for _ in range(3):
        with pytest.raises(ValueError, match="the same each time"):
            g(x)
    assert len(error.__notes__) == 1


def test_173_a_mistake_in_limelights_use_keeps_its_line() -> None:
    def f(t: Any) -> Any:
        return t + ll.ones((2,)) @ ll.ones((3,))

    g = ll.function(lambda a: ll.py_func(f, [a], scalar))
    with pytest.raises(ShapeError, match=r"matmul: .*test_4_7.py line \d+: return t \+ ll\.ones"):
        g(x)


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
    meet = threading.Barrier(2, timeout=20)
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
        thread.join(30)
    assert found == [3.0, 3.0]


def test_176_a_blocking_py_func_does_not_stop_others_from_tracing() -> None:
    entered, leave = threading.Event(), threading.Event()

    def block(t: Any) -> Any:
        entered.set()
        assert leave.wait(20)
        return t

    f = ll.function(lambda a: ll.py_func(block, [a], scalar))
    thread = threading.Thread(target=lambda: f(x))
    thread.start()
    try:
        assert entered.wait(20)
        assert ll.function(lambda a: a * 2)(x).item() == 6.0
    finally:
        leave.set()
        thread.join(30)
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
    assert "the result of multiply, f32[] (test_4_7.py line" in message
    assert "made = first * 2" in message
    assert f"(test_4_7.py line {use.__code__.co_firstlineno}" in message
    assert len(f.trace_cache) == 0
    assert dispatch.active == []


def test_179_arguments_are_named() -> None:
    @ll.function
    def f(first: Any) -> Any:
        with ll.init_scope():
            return first + 1

    with pytest.raises(SymbolicValueError, match="the argument `first`, f32"):
        f(x)
