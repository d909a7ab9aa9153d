"""Functions put together from others: `isclose`, `nan_to_num`, `ravel`, the methods that go with them; `RMSNorm`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, DTypeError

ODD = np.array([1.0, np.nan, np.inf, -np.inf, 0.0, -2.0], "float32")


@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose_is_that_of_numpy(equal_nan: bool) -> None:
    y = ODD + np.array([1e-6, 0, 0, 0, 1e-3, 1.0], "float32")
    for a, b in ((ODD, y), (ODD, ODD[::-1].copy()), (ODD[:, None], y)):
        expected = np.isclose(a, b, equal_nan=equal_nan)
        found = ll.isclose(ll.constant(a), ll.constant(b), equal_nan=equal_nan)
        assert found.tolist() == expected.tolist()
        assert bool(ll.allclose(ll.constant(a), ll.constant(b), equal_nan=equal_nan)) == bool(expected.all())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_to_num_replaces_what_is_no_number(dtype: str) -> None:
    x = ll.constant(ODD).astype(dtype)
    found = ll.nan_to_num(x)
    assert found.dtype.name == dtype
    assert np.isfinite(found.numpy().astype("float64")).all()
    if dtype != "bfloat16":
        np.testing.assert_array_equal(found.numpy(), np.nan_to_num(x.numpy()))
    assert ll.nan_to_num(x, 1.0, 2.0, 3.0).tolist() == [1.0, 1.0, 2.0, 3.0, 0.0, -2.0]


def test_nan_to_num_has_gradients_where_it_keeps_the_number() -> None:
    gradient = ll.grad(lambda x: ll.sum(ll.nan_to_num(x) * 2.0))
    expected = [2.0, 0.0, 0.0, 0.0, 2.0, 2.0]
    assert gradient(ll.constant(ODD)).tolist() == ll.function(gradient)(ll.constant(ODD)).tolist() == expected
    assert ll.nan_to_num(ll.constant([1, 2])).tolist() == [1, 2]
    with pytest.raises(DTypeError, match="nan_to_num needs real operands, got complex64"):
        ll.nan_to_num(ll.constant([1j]))


def test_ravel_is_a_vector_also_of_unknown_sizes() -> None:
    x = ll.reshape(ll.arange(6.0), (2, 3))
    assert x.ravel().tolist() == ll.ravel(x).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert ll.ravel(2.0).shape == (1,)
    spec = [ll.TensorSpec((None, 3), "float32")]
    f: Any = ll.function(input_signature=spec)(lambda x: ll.ravel(x) * 2.0)
    assert f(x).shape == (6,)


def test_argsort_is_a_method() -> None:
    assert ll.constant([3, 1, 2]).argsort(descending=True).tolist() == [0, 2, 1]


def test_rms_norm_has_a_scale_and_no_offset() -> None:
    x = np.array([[1.0, -7.0], [3.0, 4.0]], "float32")
    layer = ll.nn.RMSNorm(epsilon=0.25)
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.25)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-6)
    assert [v.shape for v in layer.trainable_variables] == [(2,)]
    assert layer.scale is not None
    layer.scale.assign([2.0, 0.0])
    np.testing.assert_allclose(layer(x).numpy(), expected * [2.0, 0.0], rtol=1e-6)
    assert ll.nn.RMSNorm(use_scale=False).trainable_variables == []
    with pytest.raises(ArgumentError, match="RMSNorm: epsilon must be a number of at least 0"):
        ll.nn.RMSNorm(epsilon=-1.0)


@pytest.mark.parametrize("step", [0.5, -0.25, 0.1, 2.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_arange_takes_floating_tensors(step, dtype):
    """As many elements as of Python numbers; staged their number is known only at run time."""
    tiny = 2e-3 if dtype == "float16" else 1e-6
    first, last = ll.constant(-2.0, dtype), ll.constant(1.0, dtype)
    wanted = np.arange(-2.0, 1.0, float(np.dtype(dtype).type(step))).astype(dtype)
    np.testing.assert_allclose(ll.arange(first, last, ll.constant(step, dtype)).numpy(), wanted, rtol=1e-6, atol=tiny)
    np.testing.assert_allclose(ll.arange(-2.0, 1.0, ll.constant(step, dtype)).numpy(), wanted, rtol=1e-6, atol=tiny)
    staged = ll.function(lambda step: ll.arange(-2.0, last, step))
    np.testing.assert_allclose(staged(ll.constant(step, dtype)).numpy(), wanted, rtol=1e-6, atol=tiny)


@pytest.mark.parametrize("step", [0.0, np.nan])
def test_arange_refuses_steps_that_lead_nowhere(step):
    with pytest.raises(ll.errors.ArgumentError, match="arange: "):
        ll.arange(0.0, 1.0, ll.constant(step))
    with pytest.raises(ll.errors.ArgumentError, match="step must not be 0"):
        ll.arange(0, 1, ll.constant(0))
