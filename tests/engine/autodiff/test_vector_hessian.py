"""The Hessian of functions whose result is no number: that of each element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll

SHAPES = st.sampled_from([(), (2,), (2, 3), (0,)])


@settings(max_examples=10)
@given(SHAPES, SHAPES, st.booleans())
def test_of_each_element(shape: tuple[int, ...], out: tuple[int, ...], vectorized: bool) -> None:
    x = ll.constant(np.random.default_rng(0).normal(size=shape))
    weights = ll.constant(np.random.default_rng(1).normal(size=out))

    def f(x: Any) -> Any:
        return ll.sin(weights * ll.sum(x * x))

    if 0 in shape and not vectorized:
        return  # one by one needs elements
    found = ll.hessian(f, vectorized=vectorized)(x)
    assert found.shape == (*out, *shape, *shape)
    s, w, flat = float(np.sum(x.numpy() ** 2)), weights.numpy(), x.numpy().reshape(-1)
    first, second = w * np.cos(w * s), -w * w * np.sin(w * s)
    wanted = np.multiply.outer(second, 4 * np.outer(flat, flat)) + np.multiply.outer(first, 2 * np.eye(flat.size))
    np.testing.assert_allclose(found.numpy(), wanted.reshape(found.shape), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
def test_structures(stage: Any) -> None:
    x, y = ll.constant([1.0, 2.0]), ll.constant(3.0)

    def f(x: Any, y: Any) -> Any:
        return {"vector": x * x * y, "number": ll.sum(x) * y * y}

    found = stage(ll.hessian(f, argnums=(0, 1)))(x, y)
    assert found["vector"][0][0].shape == (2, 2, 2)
    assert found["vector"][0][1].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert found["number"][1][1].item() == 6.0
    many, aux = stage(ll.hessian(lambda x: (x * x * x, x), has_aux=True))(x)
    assert many.tolist() == [[[6.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 12.0]]]
    assert aux.tolist() == x.tolist()
    batched = ll.vectorize(ll.hessian(lambda x: x * x * x))(ll.stack([x, x]))
    assert batched.shape == (2, 2, 2, 2)


def test_what_is_refused() -> None:
    for result in (ll.constant([1]), ll.constant([1j]), None):
        with pytest.raises(ll.errors.DTypeError, match="real floating"):
            ll.hessian(lambda x, result=result: result)(ll.constant(1.0))
