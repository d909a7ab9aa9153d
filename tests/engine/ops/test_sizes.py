"""`split` by sizes, and `pad` with a value, that are known when the program runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll

X = np.arange(12.0).reshape(3, 4)


def _pieces(sizes, axis):
    return [piece.tolist() for piece in np.split(X, np.cumsum(sizes)[:-1], axis)]


@ll.function(input_signature=[ll.TensorSpec((None, None), ll.float64), ll.TensorSpec((3,), ll.int64)])
def _rows(x, sizes):
    return ll.split(x, sizes)


@ll.function(input_signature=[ll.TensorSpec((None, None), ll.float64), ll.TensorSpec((3,), ll.int64)])
def _columns(x, sizes):
    return ll.split(x, sizes, axis=-1)


@given(st.data(), st.sampled_from([0, 1]), st.booleans())
def test_an_axis_is_split_by_sizes(data, axis, staged):
    n = X.shape[axis]
    first = data.draw(st.integers(0, n))
    second = data.draw(st.integers(0, n - first))
    sizes = [first, second, n - first - second]
    split = [_rows, _columns][axis] if staged else lambda x, sizes: ll.split(x, sizes, axis=axis)
    pieces = split(ll.constant(X, dtype=ll.float64), ll.constant(sizes, dtype=ll.int64))
    assert [piece.tolist() for piece in pieces] == _pieces(sizes, axis)


@pytest.mark.parametrize("sizes", [[1, 1, 2], [-1, 2, 2], [4, 0, 0]])
def test_sizes_make_up_the_axis(sizes):
    for split in (_rows, ll.split):
        with pytest.raises(ll.errors.ShapeError, match=r"split: (parts of )?sizes"):
            split(ll.constant(X, dtype=ll.float64), ll.constant(sizes, dtype=ll.int64))


def test_sizes_are_a_vector_of_integers():
    with pytest.raises(ll.errors.DTypeError, match="sizes are integers"):
        ll.split(ll.constant(X), ll.constant([1.0, 2.0]))
    with pytest.raises(ll.errors.ShapeError, match="sizes are a vector"):
        ll.split(ll.constant(X), ll.constant([[1, 2]]))
    with pytest.raises(ll.errors.ShapeError, match="whose length is known"):
        ll.function(input_signature=[ll.TensorSpec((None,), ll.int32)])(lambda s: ll.split(ll.constant(X), s))(
            ll.constant([1, 2])
        )


@pytest.mark.parametrize("count", [np.int64(3), np.array(3), ll.constant(3)])
def test_a_number_of_parts_may_be_an_array(count):
    assert [piece.shape for piece in ll.split(ll.constant(X), count)] == [(1, 4)] * 3


def test_pieces_of_run_time_sizes_have_gradients_and_are_vectorised():
    x = ll.constant(X, dtype=ll.float64)

    @ll.function
    def slopes(x, sizes):
        return ll.grad(lambda x: ll.sum(ll.split(x, sizes, axis=1)[1] ** 2))(x)

    @ll.function
    def batched(x, sizes):
        return ll.vectorize(lambda row: ll.split(row, sizes)[1])(x)

    assert slopes(x, ll.constant([1, 3])).tolist() == (2 * X * [0, 1, 1, 1]).tolist()
    assert batched(x, ll.constant([1, 3])).tolist() == X[:, 1:].tolist()
    assert batched.trace_count == 1


@pytest.mark.parametrize("staged", [False, True])
def test_margins_of_a_tensor_are_differentiated_and_batched(staged):
    def padded(x, value):
        return ll.pad(x, ((1, 0), (0, 2)), value=value)

    def loss(x, value):
        return ll.sum(padded(x, value) ** 2)

    x, value = ll.constant(X, dtype=ll.float64), ll.constant(3.0, dtype=ll.float64)
    wrap = ll.function if staged else lambda f: f
    assert wrap(ll.grad(lambda v: loss(x, v)))(value).item() == 2 * 3.0 * (4 * 6 - 12)
    assert wrap(ll.grad(lambda x: loss(x, value)))(x).tolist() == (2 * X).tolist()
    values = ll.constant([1.0, 2.0], dtype=ll.float64)
    expected = [np.pad(X, ((1, 0), (0, 2)), constant_values=v).tolist() for v in (1.0, 2.0)]
    assert wrap(ll.vectorize(lambda v: padded(x, v)))(values).tolist() == expected


def test_a_value_of_margins_fits():
    x = ll.constant([1.0, 2.0])
    assert ll.pad(x, 1, value=np.float32(5.0)).tolist() == [5.0, 1.0, 2.0, 5.0]
    assert ll.pad(x, 1, value=ll.Variable(5.0)).tolist() == [5.0, 1.0, 2.0, 5.0]
    assert ll.pad(x, 1, value=ll.constant(float("inf"))).tolist() == [float("inf"), 1.0, 2.0, float("inf")]
    with pytest.raises(ll.errors.ShapeError, match="must be a scalar"):
        ll.pad(x, 1, value=x)
    with pytest.raises(ll.errors.DTypeError, match=r"write ll\.astype\(value, 'float32'\)"):
        ll.pad(x, 1, value=ll.constant(1))
