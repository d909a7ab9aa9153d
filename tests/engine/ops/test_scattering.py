"""Updates at an index, segments and scatters: repeated places, places that do not exist, immutability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from limelight.ops.index._scatter_add import add_rows

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every example is staged anew

X = ll.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
PAIRS = {"set": None, "add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}

KEYS = (
    0, -1, slice(None), slice(None, None, -2), (1, 0), (slice(1), 1), (..., 0), (None, 1), [0, 2, 0], ([1, 1], [0, 1]),
    ([2, 0], slice(None)), np.array([True, False, True]), np.array([[0], [2]]), (slice(None), [1, 0, 1]),
)  # fmt: skip


@given(st.sampled_from(KEYS), st.sampled_from(list(PAIRS)), st.booleans())
@settings(max_examples=60, deadline=None)
def test_updates_are_numpys_on_a_copy(key, how, single):
    before = X.numpy().copy()
    part = before[key]
    updates = np.float32(2.5) if single else np.random.default_rng(1).uniform(0, 6, part.shape).astype(np.float32)
    wanted = before.copy()
    if how == "set":
        wanted[key] = updates
    else:
        PAIRS[how].at(wanted, key, updates)
    for run in (lambda x, u: getattr(x.at[key], how)(u), ll.function(lambda x, u: getattr(x.at[key], how)(u))):
        found = run(X, ll.constant(updates))
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    np.testing.assert_array_equal(X.numpy(), before)


def test_positions_may_be_tensors_of_a_trace():
    F = ll.function(lambda x, i, v: x.at[i, i:].set(v))
    np.testing.assert_array_equal(F(X, ll.constant(1), ll.constant(9.0)).numpy(), [[1, 2], [3, 9], [5, 6]])
    np.testing.assert_array_equal(F(X, ll.constant(0), ll.constant(9.0)).numpy(), [[9, 9], [3, 4], [5, 6]])
    assert F.trace_count == 1


def test_item_assignment_names_the_functional_form():
    for write in (lambda x: x.__setitem__(0, 1.0), lambda x: exec("x[0] += 1.0", {"x": x})):
        with pytest.raises(DTypeError, match=r"immutable.*x = x\.at\[i\]\.set\(value\).*ll\.Variable"):
            write(X)
    with pytest.raises(TypeError, match="immutable"):
        ll.function(lambda x: x.__setitem__(0, 1.0))(X)
    assert "call .set(v)" in repr(X.at[0])


# --- gradients where places repeat


def gradients(function, *xs):
    tensors = [ll.constant(np.asarray(x, np.float64)) for x in xs]
    with ll.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return [None if g is None else g.tolist() for g in tape.gradient(y, tensors, output_gradients=ll.constant(WEIGHTS))]


WEIGHTS = np.array([1.0, 10.0, 100.0])


def test_the_last_of_several_updates_stays_and_has_the_gradient():
    x, u = gradients(lambda x, u: x.at[[1, 1, 0]].set(u), [1, 2, 3], [4, 5, 6])
    assert (x, u) == ([0.0, 0.0, 100.0], [0.0, 10.0, 1.0])


def test_factors_of_which_some_are_zero():
    x, u = gradients(lambda x, u: x.at[[1, 1, 0]].multiply(u), [1, 2, 3], [0, 5, 6])
    assert (x, u) == ([6.0, 0.0, 100.0], [100.0, 0.0, 1.0])


def test_equal_extremes_share_the_gradient():
    x, u = gradients(lambda x, u: x.at[[1, 1]].max(u), [1, 2, 3], [2, 2])
    np.testing.assert_allclose(x, [1, 10 / 3, 100])
    np.testing.assert_allclose(u, [10 / 3, 10 / 3])
    (data,) = gradients(lambda d: ll.segment_min(d, ll.constant([0, 1, 0, 2])), [2, 5, 2, 7])
    assert data == [0.5, 10.0, 0.5, 100.0]


def test_no_gradient_passes_an_empty_segment():
    (data,) = gradients(lambda d: ll.segment_max(d, ll.constant([0, 2, 2]), 3), [1, 2, 3])
    assert data == [1.0, 0.0, 100.0]
    (data,) = gradients(lambda d: ll.segment_mean(d, ll.constant([0, 2, 2]), 3), [1, 2, 3])
    assert data == [1.0, 50.0, 50.0]


def test_products_of_many_rows_with_zeros():
    """Against the product of the others, one by one; ids are out of order."""
    rng = np.random.default_rng(0)
    data, ids = rng.choice([-2.0, -1.0, 1.0], 40), np.full(40, 2)
    data[[3, 39]], ids[[3, 17, 30]] = 0, [1, 0, 1]  # one segment is nearly as long as all, with a zero at its end
    (found,) = gradients(lambda d: ll.segment_prod(d, ll.constant(ids), 3), data)
    others = [np.prod(data[(ids == ids[i]) & (np.arange(40) != i)]) * WEIGHTS[ids[i]] for i in range(40)]
    np.testing.assert_allclose(found, others)


# --- empty and unknown


def test_empty_segments_have_the_neutral_element():
    ids = ll.constant([0, 0])
    wanted = {"sum": 0, "mean": 0, "prod": 1, "max": -np.inf, "min": np.inf}
    for name, neutral in wanted.items():
        found = getattr(ll, f"segment_{name}")(ll.constant([1.0, 2.0]), ids, 2)
        assert found[1].item() == neutral, name
    assert ll.segment_max(ll.constant([1], dtype=ll.int8), ll.constant([1])).tolist() == [-128, 1]
    assert ll.segment_sum(ll.zeros((0, 2)), ll.zeros((0,), dtype=ll.int32)).shape == (0, 2)


def test_the_number_of_segments_may_be_known_only_at_run_time():
    F = ll.function(
        ll.segment_sum,
        input_signature=[ll.TensorSpec((None,)), ll.TensorSpec((None,), ll.int32)],
    )
    assert F(ll.ones(3), ll.constant([0, 4, 4])).tolist() == [1, 0, 0, 0, 2]
    assert F(ll.ones(1), ll.constant([0])).tolist() == [1]


@given(
    st.integers(0, 5), st.integers(1, 40), st.sampled_from([1, 3, 300]), st.sampled_from(["f4", "f8", "c8", "i4", "f2"])
)
@settings(max_examples=40, deadline=None)
def test_every_route_of_adding_rows_gives_the_same(seed, size, width, dtype):
    rng = np.random.default_rng(seed)
    places, rows = rng.integers(0, size, 30), rng.integers(-3, 4, (30, width)).astype(dtype)
    wanted = np.zeros((size, width), dtype)
    np.add.at(wanted, places, rows)
    found = add_rows(np, size, places, rows)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["max", "min", "prod"])
def test_many_wide_rows_are_reduced_like_few(name):
    rng = np.random.default_rng(2)
    rows, ids = rng.uniform(-2, 2, (70, 61)).astype(np.float32), rng.integers(0, 9, 70)
    rows[5, 7], ids[ids == 4] = np.nan, 3
    reduce = {"max": np.max, "min": np.min, "prod": np.prod}[name]
    found = getattr(ll, f"segment_{name}")(ll.constant(rows), ll.constant(ids), 10).numpy()
    few = getattr(ll, f"segment_{name}")(ll.constant(rows[:, :2]), ll.constant(ids), 10).numpy()
    np.testing.assert_array_equal(found[[4, 9], :2], few[[4, 9]])
    for i in set(ids.tolist()):
        np.testing.assert_allclose(found[i], reduce(rows[ids == i], axis=0), rtol=1e-5)


# --- what is refused

OUTSIDE = {
    "take": (lambda i: ll.take(X, i), "take.*index 7 is out of bounds for axis 0 with size 3 .at position 1 of"),
    "take_along_axis": (lambda i: ll.take_along_axis(X[:, 0], i, axis=0), "index 7.*size 3 .at position 1"),
    "index": (lambda i: X[i], "index 7.*axis 0 with size 3 .at position 1"),
    "second axis": (lambda i: X[:, i], "index 7.*axis 1 with size 2 .at position 1"),
    "update": (lambda i: X.at[i].set(0.0), "index_update.*index 7.*axis 0 with size 3 .at position 1"),
    "add": (lambda i: X.at[i].add(X[:2]), "index_add.*index 7.*position 1.*allowed: from -3 to 2"),
    "gather_nd": (lambda i: ll.gather_nd(X, i.reshape((2, 1))), "gather_nd.*index 7.*axis 0.*position 1"),
    "scatter": (lambda i: ll.scatter(i.reshape((2, 1)), ll.ones(2), (3,)), "scatter.*index 7.*axis 0.*position 1"),
    "put_along_axis": (lambda i: ll.put_along_axis(X[:, 0], i, 0.0, axis=0), "put_along_axis.*index 7.*position 1"),
    "segment": (lambda i: ll.segment_sum(ll.ones(2), i, 3), "segment_sum.*index 7.*size 3.*allowed: from 0 to 2"),
    "segment_max": (lambda i: ll.segment_max(ll.ones(2), i, 3), "segment_max.*index 7"),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTSIDE)
def test_an_index_out_of_bounds_is_named_with_its_position(case):
    function, words = OUTSIDE[case]
    for run in (function, ll.function(function)):
        with pytest.raises(OutOfBoundsError, match=words):
            run(ll.constant([0, 7]))
    with pytest.raises(OutOfBoundsError, match="index -1 "):
        ll.segment_sum(ll.ones(2), ll.constant([0, -1]), 3)
    with pytest.raises(OutOfBoundsError, match=r"at position \(1, 0\) of the indices"):
        ll.take(X, ll.constant([[0, 1], [-4, 1]]))


def test_a_position_that_a_tensor_tells_is_an_index_at_run_time():
    parts = lambda x, i: x[i], lambda x, i: x[0, i], lambda x, i: x[ll.constant(7)], lambda x, i: x.at[i].set(0.0)
    for part in parts:
        for run in (part, ll.function(part)):
            with pytest.raises(OutOfBoundsError, match="index 7 is out of bounds for axis"):
                run(X, ll.constant(7))


REFUSED = {
    "shape of updates": (lambda: X.at[0].set(ll.ones(3)), ShapeError, r"x.at.i..set.*\(2,\).*\(3,\)"),
    "wider updates": (lambda: X.at[0].set(ll.ones((2, 2))), ShapeError, "do not broadcast to the part"),
    "repeating the part": (lambda: X.at[:1, 0].set(ll.ones(2)), ShapeError, "do not broadcast to the part"),
    "kind of updates": (lambda: X.at[0].add(ll.constant([1, 2])), DTypeError, "ll.astype"),
    "scalar's kind": (lambda: ll.constant([1, 2]).at[0].add(0.5), DTypeError, "0.5 does not fit"),
    "static position": (lambda: X.at[3].set(0.0), ArgumentError, "index 3 is out of bounds for axis 0"),
    "too many": (lambda: X.at[0, 0, 0].set(0.0), ArgumentError, "too many indices"),
    "segment shape": (lambda: ll.segment_sum(X, ll.constant([0, 1])), ShapeError, "an id for each row"),
    "segment scalar": (lambda: ll.segment_sum(X, ll.constant(0)), ShapeError, "an id for each row"),
    "floating ids": (lambda: ll.segment_sum(X, ll.ones(3)), DTypeError, "integer"),
    "negative number": (lambda: ll.segment_sum(X, ll.constant([0, 1, 2]), -1), ArgumentError, "negative"),
    "scatter depth": (lambda: ll.scatter(ll.constant([[0, 0]]), ll.ones(1), (3,)), ShapeError, "name 2 axes"),
    "scatter updates": (lambda: ll.scatter(ll.constant([[0]]), ll.ones(2), (3,)), ShapeError, r"need updates.*\(1,\)"),
    "put values": (lambda: ll.put_along_axis(X, ll.constant([[0, 0]]), ll.ones(3), axis=0), ShapeError, "broadcast"),
    "put rank": (lambda: ll.put_along_axis(X, ll.constant([0]), 0.0), ShapeError, "put_along_axis"),
    "top_k": (lambda: ll.top_k(X, 3), ShapeError, "k=3.*2 elements along axis 1"),
    "one_hot axis": (lambda: ll.one_hot(ll.constant([0]), 2, axis=2), IndexError, "one_hot"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why(case):
    function, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        function()
    with pytest.raises(error, match=words):
        ll.function(function)()
