"""Section 4.7, py_func: behaviours 169 to 173."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both, gradient, scalar

import limelight as ll
from limelight.core import dispatch
from limelight.errors import ArgumentError, DTypeError, ShapeError, SignatureError

x = ll.constant(3.0)


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


def test_171_eagerly_variables_inside_have_gradients() -> None:
    v = ll.Variable(5.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.py_func(lambda t: t * v, [x], scalar)
    assert [g.item() for g in tape.gradient(y, [x, v])] == [5.0, 3.0]


@pytest.mark.parametrize("watched", [True, False])
def test_171_in_a_graph_the_gradient_of_a_variable_inside_is_lost_aloud(watched: bool) -> None:
    v, w = ll.Variable(5.0, name="scale"), ll.Variable(1.0, name="unrelated")

    def inside(t: Any) -> Any:
        w.assign(w + 1.0)
        return t * v

    f = ll.function(lambda a: ll.py_func(inside, [a], scalar))

    def gradients() -> Any:
        with ll.GradientTape() as tape:
            if watched:
                tape.watch(x)
            y = f(x)
        return tape.gradient(y, [x, v])

    with pytest.warns(RuntimeWarning, match=r"inside uses the variable 'scale', .*Pass v.read_value\(\)") as caught:
        found = gradients()
    assert len(caught) == 1
    assert found[1] is None
    assert not watched or found[0].item() == 5.0
    assert caught[0].filename == __file__


def test_171_a_variable_whose_value_is_passed_has_its_gradient() -> None:
    v = ll.Variable(5.0)
    f = ll.function(lambda a: ll.py_func(lambda t, u: t * u, [a, v.read_value()], scalar))
    with ll.GradientTape() as tape:
        y = f(x)
    assert tape.gradient(y, v).item() == 3.0
    assert f(x).item() == 15.0


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


@both
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            np.ones(2),
            r"returned float64, output_specs promise float32; return ll.astype\(..., ll.float32\), or promise",
        ),
        (ll.ones(3), r"returned f32\[3\], output_specs promise .*; sizes that change are None in a ll.TensorSpec"),
        ((1.0, 2.0, 3.0), r"returned a tuple, output_specs promise .*|returned f32\[3\]"),
        ("text", r"returned a str, output_specs promise .*: cannot make a tensor"),
        ({"a": 1.0}, "returned a dict, output_specs promise "),
        ([[1.0], [1.0, 2.0]], "returned a list, output_specs promise .*: a tensor must be rectangular"),
        (iter([1.0, 2.0]), "returned a list_iterator, output_specs promise "),
    ],
)
def test_170_a_broken_promise_says_what_was_returned(stage: Callable[..., Any], returned: Any, message: str) -> None:
    def python(t: Any) -> Any:
        return returned

    with pytest.raises(ll.errors.LimelightError, match=f"py_func: python {message}"):
        stage(lambda t: ll.py_func(python, [t], ll.TensorSpec((2,), "float32")))(ll.ones(2))


def test_170_coroutines_and_generators_are_refused_before_they_are_called() -> None:
    async def waits(t: Any) -> Any:
        return t

    def hands_out(t: Any) -> Any:
        yield t

    for python, kind in ((waits, "coroutine"), (hands_out, "generator")):
        with pytest.raises(ll.errors.ArgumentError, match=f"py_func: {python.__name__} is a {kind} function"):
            ll.py_func(python, [ll.ones(2)], ll.float32)


def test_173_after_an_interrupt_the_graph_can_be_called_again() -> None:
    interrupted = [True]

    def python(t: Any) -> Any:
        if interrupted[0]:
            raise KeyboardInterrupt
        return t * t

    f = ll.function(lambda t: ll.py_func(python, [t], ll.float32) + 1.0)
    x = ll.constant(3.0)
    for call in (f, ll.grad(f)):
        interrupted[0] = True
        with pytest.raises(KeyboardInterrupt):
            call(x)
        interrupted[0] = False
        assert call(x).item() == (10.0 if call is f else 6.0)
    assert f.trace_count == 1
    assert len(dispatch.stack()) == 1


def test_171_in_loops_branches_and_vectorised() -> None:
    def squared(t: Any) -> Any:
        return ll.py_func(lambda v: v * v, [t], ll.float32)

    loop = ll.function(
        lambda s: ll.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, squared(s)), (ll.constant(0), s))[1]
    )
    branch = ll.function(autograph=True)(lambda s: squared(s) if s > 0 else s)
    x = ll.constant(1.5, dtype="float32")
    np.testing.assert_allclose([f(x).item() for f in (loop, branch)], [1.5**8, 1.5**2], rtol=1e-5)
    np.testing.assert_allclose([ll.grad(f)(x).item() for f in (loop, branch)], [8 * 1.5**7, 3.0], rtol=1e-5)
    np.testing.assert_allclose([ll.grad(ll.grad(f))(x).item() for f in (loop, branch)], [56 * 1.5**6, 2.0], rtol=1e-5)
    rows = ll.constant([1.0, 2.0])
    assert ll.vectorize(squared)(rows).tolist() == [1.0, 4.0]
    assert ll.vectorize(ll.grad(squared))(rows).tolist() == [2.0, 4.0]
    with pytest.raises(ZeroDivisionError):
        ll.vectorize(lambda t: ll.py_func(lambda v: 1 / 0, [t], ll.float32))(rows)
