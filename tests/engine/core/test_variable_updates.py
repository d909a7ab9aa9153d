"""Updates of parts of a variable: rows given by integers, and parts given by an index."""

from __future__ import annotations

import threading
from sys import getswitchinterval, setswitchinterval

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import limelight as ll

UFUNCS = {
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_max": np.maximum,
    "scatter_min": np.minimum,
}
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "uint8", "complex64")


@st.composite
def updates(draw):
    """A value, places of rows in it, some twice, and what to change them by."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    indices = draw(
        hnp.arrays(
            np.int64, draw(hnp.array_shapes(max_dims=2, max_side=3)), elements=st.integers(-shape[0], shape[0] - 1)
        )
    )
    numbers = st.integers(0, 3).map(float)
    value = draw(hnp.arrays(np.float64, shape, elements=numbers))
    return value, indices, draw(hnp.arrays(np.float64, (*indices.shape, *shape[1:]), elements=numbers))


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
@given(method=st.sampled_from(list(UFUNCS)), staged=st.booleans(), update=updates(), dtype=st.sampled_from(DTYPES))
def test_rows_change_by_a_ufunc(method, staged, update, dtype):
    value, indices, by = update
    if dtype == "complex64" and method in ("scatter_max", "scatter_min"):
        dtype = "float32"
    v = ll.Variable(ll.constant(value, dtype=ll.float64).astype(dtype))
    expected = v.numpy().copy()
    by = ll.constant(by, dtype=ll.float64).astype(dtype)
    UFUNCS[method].at(expected, indices, by.numpy())
    before = v.read_value()
    kept = before.tolist()

    def step(indices, by):
        return getattr(v, method)(indices, by)

    result = (ll.function(step) if staged else step)(ll.constant(indices), by)
    assert result.tolist() == v.numpy().tolist() == expected.tolist()
    assert before.tolist() == kept


@pytest.mark.parametrize("method", ["scatter_mul", "scatter_max", "scatter_min"])
def test_errors_of_rows_are_those_of_the_others(method):
    v = ll.Variable([1.0, 2.0])
    with pytest.raises(ll.errors.OutOfBoundsError):
        getattr(v, method)([2], [1.0])
    with pytest.raises(ll.errors.ShapeError, match=method):
        getattr(v, method)([0], [1.0, 2.0])
    with pytest.raises(ll.errors.DTypeError, match="does not fit a variable of float32"):
        getattr(v, method)([0], ll.constant([1]))
    with pytest.raises(ll.errors.ShapeError, match="is a scalar"):
        getattr(ll.Variable(1.0), method)([0], [1.0])
    assert v.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("method", UFUNCS)
def test_a_bool_variable_is_no_number(method):
    with pytest.raises(ll.errors.DTypeError, match=f"{method}: a bool variable"):
        getattr(ll.Variable([True, False]), method)([0], [True])


@pytest.mark.parametrize("method", ["scatter_max", "scatter_min"])
def test_complex_numbers_have_no_order(method):
    with pytest.raises(ll.errors.DTypeError, match="no order"):
        getattr(ll.Variable([1j]), method)([0], [1j])


def test_the_greatest_keeps_nan():
    v = ll.Variable([1.0, float("nan")])
    assert np.isnan(v.scatter_max([0, 1], [float("nan"), 5.0]).numpy()).all()


CHANGES = {
    "scatter_mul": lambda v: v.scatter_mul([0], [-1.0]),
    "at[0].assign_add": lambda v: v.at[0].assign_add(1.0),
    "at[0].assign_sub": lambda v: v.at[:1].assign_sub([1.0]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_no_update_of_several_threads_is_lost(name):
    v, times = ll.Variable(np.ones(2000)), 101

    def change():
        for _ in range(times):
            CHANGES[name](v)

    interval = getswitchinterval()
    setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=change) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        setswitchinterval(interval)
    expected = {"scatter_mul": -1.0, "at[0].assign_add": 304.0, "at[0].assign_sub": -302.0}
    assert v.numpy()[0] == expected[name]


# v.at[...]

KEYS = {
    "int": 1,
    "negative": -1,
    "slice": slice(1, 3),
    "step": slice(None, None, -2),
    "ints": (1, 2),
    "ellipsis": (..., 0),
    "slice and int": (slice(None), 1),
    "rows": [2, 0],
    "mask": np.array([True, False, True]),
    "new axis": (None, 1),
    "rows and columns": ([0, 1], [1, 2]),
    "array of rows": np.array([[0, 1], [1, 2]]),
}
STEPS = {"assign": lambda a, b: b, "assign_add": np.add, "assign_sub": np.subtract}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("method", STEPS)
@pytest.mark.parametrize("key", KEYS)
def test_a_part_is_changed(key, method, staged):
    index = KEYS[key]
    v = ll.Variable(np.arange(9.0).reshape(3, 3))
    expected = v.numpy().copy()
    part = np.full(expected[index].shape, 10.0)
    if method == "assign":
        expected[index] = part
    else:
        STEPS[method].at(expected, index, part)

    def change(x):
        return getattr(v.at[index], method)(x)

    result = (ll.function(change) if staged else change)(ll.constant(part))
    assert result.tolist() == v.numpy().tolist() == expected.tolist()


def test_positions_may_be_tensors():
    v = ll.Variable([[1.0, 2.0], [3.0, 4.0]])

    @ll.function
    def change(i, j):
        v.at[i].assign_add(10.0)
        v.at[i, j].assign(0.0)

    change(ll.constant(1), ll.constant(0))
    assert v.numpy().tolist() == [[1.0, 2.0], [0.0, 14.0]]


def test_the_functional_updates_leave_the_variable_as_it_is():
    v = ll.Variable([1.0, 2.0])
    with ll.GradientTape() as tape:
        y = v.at[0].set(5.0)
    assert (y.tolist(), v.numpy().tolist()) == ([5.0, 2.0], [1.0, 2.0])
    assert tape.gradient(y, v).tolist() == [0.0, 1.0]


def test_a_part_takes_what_fits():
    v = ll.Variable([1.0, 2.0])
    with pytest.raises(ll.errors.ShapeError, match=r"v\.at\[\.\.\.\]\.assign_add"):
        v.at[0].assign_add([1.0, 2.0])
    for index in (0, [0], np.array([True, False])):
        with pytest.raises(ll.errors.DTypeError, match="variable of float32"):
            v.at[index].assign(ll.constant(1.0, dtype=ll.float64))
    with pytest.raises(ll.errors.AxisError, match="out of bounds"):
        v.at[2].assign(1.0)
    with pytest.raises(ll.errors.OutOfBoundsError):
        v.at[[2]].assign(1.0)
    with pytest.raises(ll.errors.DTypeError, match="bool variable"):
        ll.Variable([True]).at[0].assign_add(True)
    assert v.numpy().tolist() == [1.0, 2.0]
    assert "variable 'variable'" in repr(v.at[0])


@pytest.mark.parametrize("method", STEPS)
def test_the_error_of_a_read_part_prints_the_line_to_write(method):
    v = ll.Variable([[1.0, 2.0]])
    with pytest.raises(AttributeError) as caught:
        {"assign": lambda: v[0, 1:].assign(3.0),
         "assign_add": lambda: v[0, 1:].assign_add(3.0),
         "assign_sub": lambda: v[0, 1:].assign_sub(3.0)}[method]()  # fmt: skip
    assert f"write v.at[0, 1:].{method}(value)" in str(caught.value)
    part = v[0]
    with pytest.raises(AttributeError, match=rf"v\.at\[i\]\.{method}\(value\)"):
        getattr(part, method)
