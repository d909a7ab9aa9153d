"""A py_func of a graph whose values leave through NumPy: its gradient is zeros, and somebody says so."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import limelight as ll

SCALAR = ll.TensorSpec((), "float32")


def in_numpy(x: Any) -> Any:
    def sine(t: Any) -> Any:
        return np.sin(t.numpy())

    return ll.py_func(sine, [x], SCALAR)


def in_part(x: Any) -> Any:
    return ll.py_func(lambda t: t * float(t), [x], SCALAR)


def test_a_gradient_that_numpy_loses_in_a_graph_warns_with_the_line() -> None:
    f = ll.function(in_numpy)
    with pytest.warns(RuntimeWarning, match=r"a value in sine left for .*its gradient is zeros") as caught:
        assert ll.grad(f)(ll.constant(1.0)).item() == 0.0
    assert [w.filename for w in caught] == [__file__]
    assert caught[0].lineno == in_numpy.__code__.co_firstlineno + 2


def test_beside_what_is_recorded_too() -> None:
    f = ll.function(lambda x: x + in_numpy(x))
    with pytest.warns(RuntimeWarning, match="left for Python or NumPy"):
        assert ll.grad(f)(ll.constant(1.0)).item() == 1.0


def test_a_tangent_that_numpy_loses_warns_staged_and_eagerly() -> None:
    one = ll.constant(1.0)
    with pytest.warns(RuntimeWarning, match="its tangent is zeros"):
        assert ll.jvp(ll.function(in_numpy), (one,), (one,))[1].item() == 0.0
    with pytest.warns(UserWarning, match="the tangent is zeros") as caught:
        assert ll.jvp(in_numpy, (one,), (one,))[1].item() == 0.0
    assert caught[0].filename == __file__


def test_what_has_a_gradient_and_what_needs_none_do_not_warn() -> None:
    x = ll.constant(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ll.grad(ll.function(in_part))(x).item() == 3.0
        assert ll.jvp(ll.function(in_part), (x,), (x,))[1].item() == 9.0
        assert ll.function(in_numpy)(x).item() == pytest.approx(np.sin(3.0))


def test_what_the_warning_proposes_works() -> None:
    @ll.custom_gradient
    def sine(x: Any) -> Any:
        return in_numpy(x), lambda g: g * ll.cos(x)

    x = ll.constant(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ll.grad(ll.function(sine))(x).item() == pytest.approx(np.cos(1.0))
        assert ll.grad(ll.function(lambda x: x + in_numpy(ll.stop_gradient(x))))(x).item() == 1.0


def test_why_none_names_the_line_in_the_function_and_its_fix() -> None:
    x = ll.constant(1.0)
    f = ll.function(in_numpy)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    why = ll.explain.why_none(tape, y, x)
    assert (why.cause, why.fix) == ("left through NumPy", "return ll.sin(t)")
    assert why.line is not None
    assert "np.sin(t.numpy())" in why.line.text
    both = ll.function(lambda x: x + in_numpy(x))
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = both(x)
    assert ll.explain.why_none(tape, y, x).cause == "connected"


@pytest.mark.parametrize("specs", [ll.TensorSpec(None), [ll.TensorSpec(()), ll.TensorSpec(None)]], ids=["one", "two"])
def test_a_result_of_any_rank_has_none_in_a_batch(specs: Any) -> None:
    many = isinstance(specs, list)

    def doubled(t: Any) -> Any:
        return [ll.constant(1.0), t * 2.0] if many else t * 2.0

    def call(x: Any) -> Any:
        y = ll.py_func(doubled, [x], specs)
        return y[1] if many else y

    for shape in ((), (3,), (2, 3)):
        assert call(ll.ones(shape)).tolist() == (ll.ones(shape) * 2.0).tolist()
        assert ll.grad(lambda x: ll.sum(call(x)))(ll.ones(shape)).tolist() == (ll.ones(shape) * 2.0).tolist()
    which = "result 1 of doubled" if many else "doubled"
    with pytest.raises(ll.errors.ShapeError, match=rf"py_func: {which}: .*write None for .*ll.reshape\(y, \(-1,\)\)"):
        ll.vectorize(call)(ll.ones((2, 3)))
    by_rank = ll.vectorize(lambda x: ll.py_func(lambda t: (t * 2.0).reshape((-1,)), [x], ll.TensorSpec((None,))))
    assert by_rank(ll.ones((2, 3))).numpy().ravel().tolist() == [2.0] * 6  # as the message says


def test_the_dtype_of_a_result_of_any_rank_is_checked() -> None:
    with pytest.raises(ll.errors.DTypeError, match="promise int32"):
        ll.py_func(lambda t: t, [ll.ones(2)], ll.TensorSpec(None, "int32"))
