"""NumPy's functions on tensors: ufuncs are ops, with gradients; other functions say where a gradient ends."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest

import limelight as ll
from limelight.errors import DTypeError

x = ll.constant([1.0, 2.0])
arr = np.array([3.0, 5.0], np.float32)


@pytest.mark.parametrize(
    ("of_numpy", "ours"),
    [
        (lambda t: np.sin(t * 1), lambda t: ll.sin(t * 1)),
        (lambda t: np.arctan(t * 1), lambda t: ll.atan(t * 1)),
        (lambda t: np.abs(t * 1), lambda t: ll.abs(t * 1)),
        (lambda t: np.isfinite(t * 1), lambda t: ll.isfinite(t * 1)),
        (lambda t: np.maximum(t, arr), lambda t: ll.maximum(t, arr)),
        (lambda t: np.power(t, 2), lambda t: t**2),
        (lambda t: arr + t, lambda t: t + arr),
        (lambda t: arr / t, lambda t: ll.constant(arr) / t),
        (lambda t: np.float32(2) * t, lambda t: 2 * t),
        (lambda t: arr > t, lambda t: t < arr),
        (lambda t: arr @ t, lambda t: ll.matmul(arr, t)),
    ],
)
def test_ufuncs_are_ops_eager_staged_and_on_variables(of_numpy, ours):
    wanted = ours(x)
    for found in (of_numpy(x), ll.function(of_numpy)(x), of_numpy(ll.Variable(x))):
        assert isinstance(found, ll.Tensor)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_ufuncs_have_gradients():
    v = ll.Variable([1.0, 2.0])
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.sum(np.exp(x) * (arr * v))
    by_x, by_v = tape.gradient(y, (x, v))
    np.testing.assert_allclose(by_x, np.exp(x) * arr * v, rtol=1e-6)
    np.testing.assert_allclose(by_v, np.exp(x) * arr, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: np.add.reduce(x), "np.add.reduce does not take tensors: write np.add.reduce"),
        (lambda: np.spacing(x), "np.spacing does not take tensors"),
        (lambda: np.add(x, x, out=np.ones(2, np.float32)), r"np.add of tensors does not take out=: .*x.numpy\(\)"),
        (lambda: arr.__iadd__(x), r"does not take out=: .*`array \+= x.numpy\(\)`"),
        (lambda: np.arange(2) + x, r"add.*integer|add: .*i64"),
    ],
)
def test_what_cannot_be_says_what_to_write(call, words):
    with pytest.raises(DTypeError, match=words):
        call()
    assert arr.tolist() == [3.0, 5.0]


def test_a_function_that_cuts_a_gradient_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.concatenate([x, x]).tolist() == [1.0, 2.0, 1.0, 2.0]  # nobody watches
        with ll.GradientTape():
            np.where(x > 0, x, 0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        with pytest.warns(UserWarning, match=r"np.concatenate takes the value .* gradient ends there; write ll.concat"):
            y = ll.sum(ll.constant(np.concatenate([x, x])))
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda x: (*np.shape(x), np.ndim(x), np.size(x)),
        np.argmax,
        lambda x: np.allclose(x, x) and np.array_equal(x, x),
        np.zeros_like,
        np.array_repr,
        lambda x: np.savetxt(io.StringIO(), x),
    ],
)
def test_what_has_no_gradient_anyway_cuts_none(call):
    with ll.GradientTape() as tape, warnings.catch_warnings(action="error"):
        tape.watch(x)
        call(x)


def test_numbers_copied_into_an_array_warn():
    v = ll.Variable([1.0, 2.0])
    with ll.GradientTape(), pytest.warns(UserWarning, match="np.copyto takes the value"):
        np.copyto(np.zeros(2, np.float32), v * 2.0)


def test_grad_warns_of_zeros_that_come_of_leaving():
    with pytest.warns(UserWarning, match=r"a value left for Python or NumPy \(.*x.numpy\(\)"):
        found = ll.grad(lambda x: ll.sum(ll.constant(x.numpy()) ** 2))(x)
    assert found.tolist() == [0.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ll.grad(lambda x: ll.constant(3.0))(x).tolist() == [0.0, 0.0]  # a constant function is no mistake
        assert ll.grad(lambda x: ll.sum(x) * float(x[0]))(x).tolist() == [1.0, 1.0]  # nor is a number kept on purpose
