"""gradcheck finds the rules that are wrong, and only those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, GradientCheckError, GradientError

X = np.array([[0.3, -0.7, 1.1], [0.5, 2.0, -1.3]], "float32")


def op(name: str, kernel: Any, rule: Any, **fields: Any) -> Any:
    fields = {"inputs": "x", "infer": lambda x: x, **fields}
    return ll.defop(f"check_{name}", kernel=kernel, vjp={"x": rule} if callable(rule) else rule, **fields)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: ll.sin(x) * x, (X,)),
        (lambda x, y: {"a": x @ y, "b": [ll.sum(x, axis=1)]}, (X, X.T)),
        (lambda z: ll.exp(z) * z, (np.array([1 + 2j, 0.5j], "complex64"),)),
        (lambda p: p["x"] * p["n"].astype("float64"), ({"x": X[0], "n": np.array([1, 2, 3])},)),
        (lambda t, i: ll.nn.embedding(t, i) * 2.0, (X, ll.constant([0, 0, 1]))),
        (lambda v: v * v, (ll.Variable(X),)),
        (ll.function(lambda x: ll.cond(ll.sum(x) > 0, lambda: x * x, lambda: x)), (X,)),
        (lambda x: ll.sum(x) * 0.0 + 1.0, (X,)),
        (lambda x: x[:0], (X,)),
    ],
)
def test_right_gradients_pass(function: Any, args: Any) -> None:
    report = ll.gradcheck(function, *args)
    assert report.ok
    assert report.compared > 0 or args[0] is X
    assert "agree with differences" in str(report)


def test_the_message_names_op_argument_element_and_values() -> None:
    wrong = op(
        "wrong",
        lambda xp, x, y: x * y,
        {"x": lambda g, y: g * y, "y": lambda g, x: g * x * x},
        inputs="x y",
        infer=lambda x, y: x,
    )
    a, b = np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    with pytest.raises(
        GradientCheckError, match=r"check_wrong \(ops: check_wrong\) are wrong.*order 1, reverse mode, args\[1\]\[2\]"
    ):
        ll.gradcheck(wrong, a, b)
    report = ll.gradcheck(wrong, a, b, raises=False)
    assert not report.ok
    assert report.worst is not None
    assert report.worst.found == pytest.approx(report.worst.expected * 2.0, rel=1e-6)
    assert ll.gradcheck(lambda a: wrong(a, b), a).ok, "the other rule is right"


def test_a_wrong_second_order_is_found() -> None:
    """The rule's value is right; its own gradient is cut off."""
    cut = op("cut", lambda xp, x: x**3, lambda g, x: g * ll.stop_gradient(3.0 * x * x))
    assert ll.gradcheck(cut, X, order=1).ok
    with pytest.raises(GradientCheckError, match="order 2"):
        ll.gradcheck(cut, X)


def test_a_rule_that_is_not_linear_is_found_by_forward_mode() -> None:
    odd = op("odd", lambda xp, x: x * 2.0, lambda g: 2.0 * g + 0.0 * g * g, elementwise=False)
    assert ll.gradcheck(odd, X).ok
    worse = op("worse", lambda xp, x: x * 2.0, lambda g, x: g * 2.0, linear="x")
    assert ll.gradcheck(worse, X).ok
    wrongly = op("wrongly", lambda xp, x: x * x, lambda g, x: g * x * 2.0, linear="x")
    assert ll.gradcheck(wrongly, X, forward=False).ok
    with pytest.raises(GradientCheckError, match="forward mode, result 0"):
        ll.gradcheck(wrongly, X)


def test_the_shape_of_a_gradient_is_checked() -> None:
    wide = op(
        "wide",
        "add",
        {"x": lambda g: g, "y": lambda g: g},
        inputs="x y",
        infer=lambda x, y: ll.TensorSpec((2, 3), x.dtype),
    )
    with pytest.raises(GradientError, match=r"check_wide: .*'y' returned f64\[2,3\], where y is f64\[3\].*y_shape"):
        ll.gradcheck(wide, X, X[0])


def test_a_missing_connection_is_found() -> None:
    with pytest.raises(GradientCheckError, match="the rule gives 0"):
        ll.gradcheck(lambda x: ll.stop_gradient(x) * 2.0, X)


def test_only_so_many_elements() -> None:
    big = np.linspace(0.0, 1.0, 1000)
    report = ll.gradcheck(lambda x: ll.sum(ll.sin(x)), big, order=1, limit=20)
    assert report.compared == 21
    assert report.ok


def test_what_cannot_be_checked() -> None:
    with pytest.raises(ArgumentError, match="no argument is a floating"):
        ll.gradcheck(lambda n: n, ll.constant([1, 2]))
    with pytest.raises(ArgumentError, match="order must be 1 or 2"):
        ll.gradcheck(ll.sin, X, order=3)
    with pytest.raises(ArgumentError, match="two calls gave different results"):
        ll.gradcheck(lambda x: x * ll.random.uniform(()).astype("float64"), X)


@pytest.mark.parametrize("function", [ll.linalg.cholesky, ll.linalg.eigvalsh, lambda a: ll.linalg.eigh(a).eigenvalues])
def test_of_hermitian_matrices_the_form_in_the_docstring_raises_no_alarm(function: Any) -> None:
    spd = ll.constant([[4.0, 1.0], [1.0, 3.0]])
    assert not ll.gradcheck(function, spd, raises=False).ok
    assert ll.gradcheck(lambda a: function((a + a.mT) / 2), spd).ok
    complexly = ll.constant(np.array([[4.0, 1.0 + 1.0j], [1.0 - 1.0j, 3.0]]))
    assert ll.gradcheck(lambda a: function((a + a.mT.conj()) / 2), complexly).ok
