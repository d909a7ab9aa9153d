"""Indexing, broadcasting and reducing as NumPy does, on whatever hypothesis thinks of."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ways import checked

import limelight as ll

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every example is staged anew

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def counted(shape, dtype="float64"):
    """An array in which every element is different."""
    return np.arange(1, int(np.prod(shape)) + 1, dtype=dtype).reshape(shape)


def gradient(function, array):
    """The gradient of the sum of function(x) * weights, with weights all different; and the weights."""
    x = ll.constant(array)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
        weights = ll.constant(counted(y.shape))
        total = ll.sum(y * weights)
    return tape.gradient(total, x), weights.numpy()


def scattered(array, key, weights):
    """What the gradient of array[key] must be: weights added where they came from."""
    wanted = np.zeros(array.shape)
    np.add.at(wanted, key, weights)
    return wanted


@st.composite
def indexed(draw, arrays):
    """An array, and an index of it: basic, or with integer arrays."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    key = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    if arrays:
        key = list(key) if isinstance(key, tuple) else [key]
        key = [part for part in key if part is not Ellipsis]
        axis, common = 0, draw(hnp.array_shapes(min_dims=1, max_dims=2, max_side=3))
        for i, part in enumerate(key):
            if part is not None:
                if not isinstance(part, slice) or draw(st.booleans()):
                    n = shape[axis]
                    key[i] = (
                        draw(hnp.arrays(np.int64, common, elements=st.integers(-n, n - 1)))
                        if draw(st.booleans())
                        else part
                    )
                axis += 1
        key = tuple(key)
    return counted(shape), key


@given(indexed(arrays=False))
def test_basic_indexing(example):
    array, key = example
    found = checked(lambda x: x[key], [ll.constant(array)])
    np.testing.assert_array_equal(found.numpy(), array[key])
    g, weights = gradient(lambda x: x[key], array)
    np.testing.assert_array_equal(g.numpy(), scattered(array, key, weights))


@given(indexed(arrays=True))
def test_indexing_by_integer_arrays(example):
    array, key = example
    found = checked(lambda x: x[key], [ll.constant(array)])
    np.testing.assert_array_equal(found.numpy(), array[key])
    tensors = tuple([ll.constant(part) if isinstance(part, np.ndarray) else part for part in key])
    g, weights = gradient(lambda x: x[tensors], array)
    np.testing.assert_array_equal(g.numpy(), scattered(array, key, weights))


@given(indexed(arrays=True))
def test_indexing_in_a_trace_of_unknown_sizes(example):
    array, key = example
    F = ll.function(lambda x: x[key], input_signature=[ll.TensorSpec((None,) * array.ndim, "float64")])
    np.testing.assert_array_equal(F(ll.constant(array)).numpy(), array[key])
    g, weights = gradient(F, array)
    np.testing.assert_array_equal(g.numpy(), scattered(array, key, weights))


@given(st.data())
def test_indexing_by_masks(data):
    array = counted(data.draw(hnp.array_shapes(max_dims=3, max_side=4)))
    before = data.draw(st.integers(0, array.ndim - 1))
    covered = data.draw(st.integers(1, array.ndim - before))
    mask = data.draw(hnp.arrays(bool, array.shape[before : before + covered]))
    key = (slice(None),) * before + (mask,)
    np.testing.assert_array_equal(ll.constant(array)[key].numpy(), array[key])
    g, weights = gradient(lambda x: x[key], array)
    np.testing.assert_array_equal(g.numpy(), scattered(array, key, weights))
    staged = ll.function(lambda x, m: x[(slice(None),) * before + (m,)])
    np.testing.assert_array_equal(staged(ll.constant(array), ll.constant(mask)).numpy(), array[key])


@given(st.integers(-6, 6), st.integers(-6, 6), st.integers(0, 5))
def test_slices_between_symbolic_positions(start, stop, size):
    array = counted((size, 2))
    F = ll.function(lambda x, a, b: x[a:b, 1])
    found = F(ll.constant(array), ll.constant(start), ll.constant(stop))
    np.testing.assert_array_equal(found.numpy(), array[start:stop, 1])
    g, weights = gradient(lambda x: F(x, ll.constant(start), ll.constant(stop)), array)
    np.testing.assert_array_equal(g.numpy(), scattered(array, (slice(start, stop), 1), weights))


def test_symbolic_positions_among_arrays():
    x = np.arange(24.0).reshape(2, 3, 4)
    rows, columns = np.array([[1], [0]]), np.array([2, 0, 3])
    pick = [lambda i, j: (i, rows), lambda i, j: (rows, j, columns), lambda i, j: (i, slice(1, None), columns)]
    for key in pick:
        F = ll.function(lambda x, i, j, key=key: x[key(i, j)])
        found = F(ll.constant(x), ll.constant(1), ll.constant(-1))
        np.testing.assert_array_equal(found.numpy(), x[key(1, -1)])
    with pytest.raises(ll.errors.ArgumentError, match="two steps"):
        ll.function(lambda x, i: x[:i, rows])(ll.constant(x), ll.constant(1))


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3, min_side=0))
def test_gradients_reduce_to_the_shapes_of_broadcast_operands(example):
    shapes = example.input_shapes
    x, y = ll.constant(counted(shapes[0])), ll.constant(counted(shapes[1]) + 0.5)

    def pulled(x, y):
        with ll.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            z = x * y + x - y
        return tuple(tape.gradient(z, [x, y]))

    gx, gy = checked(pulled, [x, y])
    wanted_x = np.broadcast_to(y.numpy() + 1, example.result_shape)
    wanted_y = np.broadcast_to(x.numpy() - 1, example.result_shape)
    for g, wanted, shape in ((gx, wanted_x, shapes[0]), (gy, wanted_y, shapes[1])):
        lead = len(example.result_shape) - len(shape)
        over = tuple(i for i in range(wanted.ndim) if i < lead or shape[i - lead] == 1)
        np.testing.assert_allclose(g.numpy(), wanted.sum(over).reshape(shape))
    unknown = [ll.TensorSpec((None,) * len(shape), "float64") for shape in shapes]
    for g, again in zip((gx, gy), ll.function(pulled, input_signature=unknown)(x, y), strict=True):
        np.testing.assert_allclose(again.numpy(), g.numpy())


REDUCTIONS = {
    "sum": (ll.sum, np.sum),
    "prod": (ll.prod, np.prod),
    "mean": (ll.mean, np.mean),
    "max": (ll.max, np.max),
    "min": (ll.min, np.min),
    "any": (ll.any, np.any),
    "all": (ll.all, np.all),
}


@pytest.mark.slow  # draws arrays
@pytest.mark.parametrize("name", REDUCTIONS)
@given(st.data())
def test_reductions_over_any_axes(name, data):
    ours, numpys = REDUCTIONS[name]
    shape = data.draw(
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=1 if name in ("max", "min", "mean") else 0, max_side=3)
    )
    axis = data.draw(st.none() | (hnp.valid_tuple_axes(len(shape)) if shape else st.just(())))
    if axis is not None and len(axis) == 1 and data.draw(st.booleans()):
        (axis,) = axis
    keepdims = data.draw(st.booleans())
    array = data.draw(hnp.arrays("float64", shape, elements=st.floats(-4, 4)))
    wanted = numpys(array, axis=axis, keepdims=keepdims)
    for run in (checked, lambda f, xs: f(*xs)):
        found = run(lambda x: ours(x, axis=axis, keepdims=keepdims), [ll.constant(array)])
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.numpy(), wanted)
    unknown = [ll.TensorSpec((None,) * len(shape), "float64")]
    F = ll.function(lambda x: ours(x, axis=axis, keepdims=keepdims), input_signature=unknown)
    np.testing.assert_allclose(F(ll.constant(array)).numpy(), wanted)


@given(hnp.array_shapes(min_dims=1, max_dims=4, max_side=3), st.data())
def test_transposes_and_their_gradients(shape, data):
    order = data.draw(st.permutations(range(len(shape))))
    axes = [a - len(shape) if data.draw(st.booleans()) else a for a in order]
    array = counted(shape)
    np.testing.assert_array_equal(ll.transpose(ll.constant(array), axes).numpy(), array.transpose(axes))
    g, weights = gradient(lambda x: ll.transpose(x, axes), array)
    np.testing.assert_array_equal(g.numpy(), weights.transpose(np.argsort(order)))
