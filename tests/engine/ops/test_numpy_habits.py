"""What NumPy's users expect of operators and reductions, eagerly and staged, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import DTypeError, ShapeError

loose: Any = ll
WAYS = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
WHOLE = np.array([[3, 1], [-2, 7]])


@WAYS
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_means_and_deviations_of_integers_and_booleans_are_float32(name: str, dtype: str, stage: Any) -> None:
    values = (WHOLE > 0) if dtype == "bool" else np.abs(WHOLE).astype(dtype)
    for axis in (None, 0):
        result = stage(lambda x, axis=axis: getattr(ll, name)(x, axis=axis))(ll.constant(values))
        assert result.dtype == ll.float32
        np.testing.assert_allclose(result.numpy(), getattr(np, name)(values, axis=axis), rtol=1e-6)


def test_the_variance_of_large_integers_keeps_their_differences() -> None:
    assert ll.var(ll.constant([100_000_000, 100_000_001])).item() == 0.25


@WAYS
def test_accuracy_is_a_mean_of_booleans(stage: Any) -> None:
    x = ll.constant([1, 2, 3, 4])
    assert stage(lambda x: ll.mean(x == ll.constant([1, 2, 3, 0])))(x).item() == 0.75
    assert x.astype("bool").mean().item() == 1.0


@WAYS
def test_integers_divide_to_float32(stage: Any) -> None:
    x, y = ll.constant([1, 2]), ll.constant([4, 0], dtype="int64")
    for call in (lambda x: x / y, lambda x: ll.divide(x, y), lambda x: np.true_divide(x, y)):
        result = stage(call)(x)
        assert result.dtype == ll.float32
        assert result.tolist() == [0.25, np.inf]
    assert stage(lambda x: x / 2)(x).tolist() == stage(lambda x: x / 2.0)(x).tolist() == [0.5, 1.0]
    assert stage(lambda x: 1 / x)(x).tolist() == [1.0, 0.5]
    assert ll.divide(1, 2).item() == 0.5
    with pytest.raises(DTypeError, match="do not mix"):
        stage(lambda x: x / ll.ones(2))(x)
    with pytest.raises(DTypeError, match="do not mix"):
        stage(lambda x: (x > 1) / x)(x)


@WAYS
def test_tuples_inside_an_index_are_index_arrays(stage: Any) -> None:
    values = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    x = ll.Variable(values)
    with ll.GradientTape() as tape:
        picked = stage(lambda: x[(0, 1), (1, 2)])()
    assert picked.tolist() == values[(0, 1), (1, 2)].tolist()
    assert np.nonzero(tape.gradient(picked, x).numpy())[0].tolist() == [0, 1]
    assert stage(lambda: x[:, (0, 3)])().tolist() == values[:, (0, 3)].tolist()
    assert stage(lambda: x[(True, False, True), 1])().tolist() == values[(True, False, True), 1].tolist()
    assert ll.constant(values).at[(0, 1), (1, 2)].set(0.0).numpy()[0, 1] == 0.0


@WAYS
def test_squeeze_without_an_axis_drops_all_of_size_one(stage: Any) -> None:
    x = ll.ones((1, 3, 1, 2))
    assert stage(ll.squeeze)(x).shape == stage(lambda x: x.squeeze())(x).shape == (3, 2)
    assert stage(ll.grad(lambda x: ll.sum(ll.squeeze(x) * 2.0)))(x).shape == x.shape


def test_squeeze_of_an_unknown_size_asks_for_the_axis() -> None:
    with pytest.raises(ShapeError, match="write axis="):
        loose.function(ll.squeeze, input_signature=[ll.TensorSpec((None, 1))])(ll.ones((2, 1)))


class Meters:
    """Something of the user's that knows tensors, and that limelight does not know."""

    def __radd__(self, other: Any) -> tuple[str, Any]:
        return ("added", other)

    def __rmatmul__(self, other: Any) -> tuple[str, Any]:
        return ("multiplied", other)


@pytest.mark.parametrize("make", [ll.ones, lambda n: ll.Variable(ll.ones(n))], ids=["tensor", "variable"])
def test_unknown_operands_are_asked_for_their_reflected_method(make: Any) -> None:
    x, meters = make(2), loose and Meters()
    assert (x + meters)[0] == "added"
    assert (x @ meters)[0] == "multiplied"
    with pytest.raises(DTypeError, match="cannot make a tensor"):
        x * meters
    with pytest.raises(DTypeError, match="cannot make a tensor"):
        ll.add(x, loose and Meters())
    with pytest.raises(DTypeError):
        x % "a"


@WAYS
def test_variances_of_complex_numbers_are_real(stage: Any) -> None:
    values = np.array([1 + 2j, 3 - 1j, -2j], np.complex64)
    z = ll.constant(values)
    for name in ("var", "std"):
        result = stage(getattr(ll, name))(z)
        assert result.dtype == ll.float32
        np.testing.assert_allclose(result.numpy(), getattr(np, name)(values), rtol=1e-6)
    g = stage(ll.grad(ll.var))(z)
    np.testing.assert_allclose(g.numpy(), 2 * (values - values.mean()) / 3, rtol=1e-5)
    assert ll.gradcheck(ll.var, z.astype("complex128")).ok
