"""Errors of staged functions show the user's frames, and the line of the op through every kind of nesting (24)."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import LimelightError, RunError, ShapeError
from limelight.user_code import source_line, tracebacks


@pytest.fixture(autouse=True)
def no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames are left to a notebook that hides them, and other tests may have begun one."""
    monkeypatch.setattr(tracebacks, "_displays", weakref.WeakSet())


def raised(f: Callable[[], Any]) -> Exception:
    try:
        f()
    except Exception as error:  # noqa: BLE001  # whatever is raised is looked at
        return error
    raise AssertionError("nothing was raised")


def library_frames(error: BaseException) -> list[str]:
    found = []
    tb = error.__traceback__
    while tb is not None:
        if source_line.is_library(tb.tb_frame.f_code):
            found.append(tb.tb_frame.f_code.co_name)
        tb = tb.tb_next
    return found


def users(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__]


@ll.function
def wrong(x: Any) -> Any:
    return helper(x)


def helper(x: Any) -> Any:
    return x @ x


def test_what_tracing_raises_shows_the_users_frames() -> None:
    error = raised(lambda: wrong(ll.ones((2, 3))))
    assert isinstance(error, ShapeError)
    assert library_frames(error) == []
    assert users(error)[-2:] == ["wrong", "helper"]


def test_what_a_graph_raises_while_it_runs() -> None:
    f = ll.function(lambda x, i: ll.take(x, i, axis=0), input_signature=None)
    f(ll.ones((3,)), ll.constant(1))
    error = raised(lambda: f(ll.ones((3,)), ll.constant(7)))
    assert library_frames(error) == []
    assert error.__cause__ is None
    assert isinstance(error.__context__, IndexError)
    shown = "".join(traceback.format_exception(error))
    assert "During handling" not in shown
    assert "direct cause" not in shown
    assert "limelight/" not in shown
    entry = f.trace_cache[0]
    assert library_frames(raised(lambda: entry(ll.ones((3,)), ll.constant(7)))) == []


def test_the_users_own_errors_pass_and_are_trimmed() -> None:
    @ll.function
    def f(x: Any) -> Any:
        raise KeyError("mine")

    error = raised(lambda: f(ll.constant(1.0)))
    assert isinstance(error, KeyError)
    assert library_frames(error) == []
    assert users(error)[-1] == "f"


def test_one_switch_shows_them() -> None:
    with ll.config.show_library_frames():
        assert len(library_frames(raised(lambda: wrong(ll.ones((2, 3)))))) > 3
    assert library_frames(raised(lambda: wrong(ll.ones((2, 3))))) == []
    ll.config.show_library_frames()
    try:
        assert len(library_frames(raised(lambda: wrong(ll.ones((2, 3)))))) > 3
    finally:
        said = repr(ll.config.show_library_frames(False))  # as a notebook shows it
    assert said == "<tracebacks hide the frames of limelight>"
    assert library_frames(raised(lambda: wrong(ll.ones((2, 3))))) == []


def test_a_fault_of_the_library_itself_is_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    f = ll.function(lambda x: x + 1.0)

    def broken(call: Any) -> Any:
        return len(call.nothing)

    monkeypatch.setattr(f, "_trace_once", broken)
    error = raised(lambda: f(ll.constant(1.0)))
    assert library_frames(error) == []  # `broken` is the test's own, and innermost
    monkeypatch.setattr(f, "_find", None)
    error = raised(lambda: f(ll.constant(1.0)))
    assert isinstance(error, TypeError)
    assert "__call__" in library_frames(error)


# 24: the op, its operands and the line, through all that a graph can be nested in


def at(x: Any, i: Any) -> Any:
    return ll.take(x, i, axis=0)  # the line that fails


inner = ll.function(at)


def through_a_call(x: Any, i: Any) -> Any:
    return inner(x, i) * 2.0


def through_two_calls(x: Any, i: Any) -> Any:
    return middle(x, i) + 1.0


middle = ll.function(through_a_call)


def through_cond(x: Any, i: Any) -> Any:
    return ll.cond(i > 0, lambda: at(x, i), lambda: x[0])


def through_switch(x: Any, i: Any) -> Any:
    return ll.cond(i > 0, lambda: inner(x, i), lambda: x[0])


def through_while(x: Any, i: Any) -> Any:
    return ll.while_loop(lambda j, s: j < i, lambda j, s: (j + 1, s + at(x, j)), (ll.constant(0), ll.constant(0.0)))[1]


def through_scan(x: Any, i: Any) -> Any:
    return ll.scan(lambda s, j: (s + at(x, j + i - 1), None), ll.constant(0.0), ll.arange(3))[0]


def through_a_tape(x: Any, i: Any) -> Any:
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = at(x, i)
    return tape.gradient(y, x)


@ll.custom_gradient
def custom(x: Any, i: Any) -> Any:
    return at(x, i), lambda g: (g * ll.ones((3,)), None)


def through_a_custom_gradient(x: Any, i: Any) -> Any:
    return custom(x, i)


NESTED = [
    through_a_call,
    through_two_calls,
    through_cond,
    through_switch,
    through_while,
    through_scan,
    through_a_tape,
    through_a_custom_gradient,
]


@pytest.mark.parametrize("body", NESTED, ids=lambda body: str(body.__name__))
def test_024_the_op_its_operands_and_the_lines_to_it(body: Any) -> None:
    f = ll.function(body)
    x = ll.constant([1.0, 2.0, 3.0])
    f(x, ll.constant(1))
    for under_tape in (False, True):
        with ll.GradientTape() as tape:
            if under_tape:
                tape.watch(x)
            error = raised(lambda: f(x, ll.constant(7)))
        assert isinstance(error, LimelightError)
        assert isinstance(error, IndexError)
        said = str(error)
        assert "take" in said
        assert ("f32[3]" in said) or (body is through_a_tape and "take_scatter(f32[], i32[])" in said)
        assert "return ll.take(x, i, axis=0)  # the line that fails" in said
        assert "test_tracebacks.py line" in said
        assert library_frames(error) == []
        if body in (through_a_call, through_while, through_scan, through_a_custom_gradient):
            assert f"called by {'forward_' * under_tape}{body.__name__}" in said


def test_024_py_func_errors_are_the_users_own_with_a_note_of_the_way() -> None:
    def python(t: Any) -> Any:
        return ll.constant(np.float32(1 / (int(t.item()) - 7)))

    f = ll.function(lambda x: ll.py_func(python, [x], ll.float32) + 1.0)
    f(ll.constant(1.0))
    error = raised(lambda: f(ll.constant(7.0)))
    assert isinstance(error, ZeroDivisionError)
    assert any("py_func(f32[])" in note and "test_tracebacks.py line" in note for note in error.__notes__)
    assert users(error)[-1] == "python"
    assert library_frames(error) == []


def test_023_an_error_is_not_sticky_and_keeps_what_was_assigned() -> None:
    v = ll.Variable(0.0)

    @ll.function
    def f(x: Any, i: Any) -> Any:
        v.assign_add(1.0)
        return ll.take(x, i, axis=0)

    x = ll.ones((3,))
    f(x, ll.constant(0))
    assert isinstance(raised(lambda: f(x, ll.constant(9))), RunError)
    assert f(x, ll.constant(1)).item() == 1.0
    assert (f.trace_count, v.numpy()) == (1, 3.0)


def test_a_frame_whose_instruction_has_no_line_is_shown_at_its_function() -> None:
    def fail() -> None:
        raise KeyError

    bare = FunctionType(fail.__code__.replace(co_linetable=b""), {})
    with pytest.raises(KeyError) as caught:
        bare()
    tb = caught.value.__traceback__
    assert tb is not None
    assert tb.tb_next is not None
    assert tb.tb_next.tb_lineno is None
    again = tracebacks.chained([tb, tb.tb_next])
    assert again is not None
    assert again.tb_next is not None
    assert again.tb_next.tb_lineno == fail.__code__.co_firstlineno


loose: Any = ll  # the mistake is no news to type checkers


def _factor(x: Any) -> Any:
    def of_numpy(a: Any) -> Any:
        return np.linalg.cholesky(a)

    return ll.py_func(of_numpy, [x], ll.TensorSpec((2, 2), "float32"))


BENEATH: dict[str, tuple[Callable[[], Any], bool]] = {
    "no factor": (lambda: ll.linalg.cholesky(-ll.eye(2)), False),
    "no factor, staged": (lambda: ll.function(ll.linalg.cholesky)(-ll.eye(2)), False),
    "no inverse": (lambda: ll.linalg.inv(ll.zeros((2, 2))), False),
    "a sum of NumPy's, staged": (lambda: ll.function(np.sum)(ll.ones((2,))), False),
    "a seed": (lambda: loose.random.seed("a"), False),
    "NumPy in the user's own function": (lambda: ll.function(_factor)(-ll.eye(2)), True),
}


@pytest.mark.parametrize("name", BENEATH)
def test_what_numpy_raised_for_the_library_is_not_shown(name: str) -> None:
    """The words of the error say it; of what the user's own function has called, NumPy's lines are the story."""
    call, shows_numpy = BENEATH[name]
    error = raised(call)
    tracebacks.trim(error)
    shown = "".join(traceback.format_exception(error))
    assert ("direct cause" in shown) is False
    assert ("/numpy/" in shown) is shows_numpy
