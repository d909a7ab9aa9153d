"""Python and NumPy values as tensors: which dtype they become, wherever they are given."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight.core import dtypes
from limelight.errors import DTypeError, ShapeError

loose: Any = ll
THIRD = 1 / 3
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")]
INTEGERS = [np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]
COMPLEX = [np.dtype(name) for name in ("complex64", "complex128")]


def nested(of: np.dtype[Any]) -> st.SearchStrategy[Any]:
    """Rows of two, each an array, a list of NumPy's numbers, one of Python's, or a mixed one; one at least has `of`."""
    number = {"f": 0.5, "c": 0.5j}.get(of.kind, 1)
    rows = st.sampled_from([np.ones(2, of), [of.type(1), of.type(0)], [number, of.type(1)], (of.type(1), number)])
    others = st.lists(st.one_of(rows, st.just([number, number])), max_size=3)
    return st.tuples(rows, others, st.integers(0, 3)).map(lambda r: [*r[1][: r[2]], r[0], *r[1][r[2] :]])


@given(st.sampled_from([*FLOATS, *INTEGERS, *COMPLEX]).flatmap(lambda of: st.tuples(st.just(of), nested(of))))
def test_numpy_values_in_lists_keep_their_dtype(drawn: tuple[Any, Any]) -> None:
    of, rows = drawn
    converters = (ll.constant, ll.asarray, lambda value: ll.Variable(value).read_value(), ll.abs, ll.stack, ll.concat)
    for convert in converters:
        result = convert(rows)
        assert result.dtype == (np.abs(np.zeros(1, of)).dtype if convert is ll.abs else of)
    assert np.array_equal(ll.constant(rows).numpy(), np.array(rows).astype(of))


@given(st.lists(st.sampled_from([*FLOATS, *INTEGERS, *COMPLEX, np.dtype(bool)]), min_size=1, max_size=4))
def test_numpy_values_meet_in_lists_as_tensors_do(given_dtypes: list[np.dtype[Any]]) -> None:
    values = [of.type(1) for of in given_dtypes]
    try:
        expected = ll.stack([ll.constant(value) for value in values]).dtype
    except DTypeError:
        with pytest.raises(DTypeError, match="are never converted silently"):
            ll.constant(values)
    else:
        assert expected == dtypes.promote(*given_dtypes)
        assert ll.constant(values).dtype == expected
        assert ll.constant([np.ones(2, of) for of in given_dtypes]).dtype == expected


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize(
    "join",
    [
        lambda x: x * [THIRD],
        lambda x: [THIRD] * x,
        lambda x: ll.stack([x[0], THIRD])[1:],
        lambda x: ll.concat([x, [THIRD]])[1:],
        lambda x: ll.constant([x[0], THIRD])[1:],
        lambda x: ll.asarray([x[0], THIRD])[1:],
        lambda x: ll.einsum("i,i->i", x, [THIRD]),
        lambda x: ll.diff(x * 0.0, append=[THIRD]),
        lambda x: ll.where(x > 0, [THIRD], x),
    ],
)
def test_pythons_numbers_are_rounded_once(join: Any, staged: bool) -> None:
    join = ll.function(join) if staged else join
    assert join(ll.constant(np.ones(1))).tolist() == [THIRD]


def test_lists_that_hold_tensors_are_tensors_with_gradients() -> None:
    v = ll.Variable(2.0)

    def total() -> ll.Tensor:
        return ll.sum(ll.constant([[v, 1], [3.0 * v, ll.square(v)]]))

    for call in (total, ll.function(total)):
        with ll.GradientTape() as tape:
            y = call()
        assert y.item() == 13.0
        assert tape.gradient(y, v).item() == 8.0
    assert ll.constant([ll.constant(1.0), 2], dtype="float64").dtype == ll.float64


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([np.int64(1), 0.5], "Python float and int64 values.* write dtype="),
        ([np.float32(1), True], "Python bool and float32"),
        ([np.int8(1), 300], "int8"),
        ([np.float64(1), None], "cannot make a tensor of None"),
        ([np.float64(1), "a"], "cannot make a tensor of text"),
    ],
)
def test_what_does_not_meet_is_refused(value: Any, words: str) -> None:
    with pytest.raises(DTypeError, match=words):
        ll.constant(value)


def test_a_dtype_that_is_asked_for_decides() -> None:
    assert ll.constant([np.int64(1), 0.5], dtype="float32").dtype == ll.float32
    assert ll.asarray([np.float64(1.5)], dtype="int32").tolist() == [1]
    assert ll.constant([np.uint64(2**63 + 1), 1]).tolist() == [2**63 + 1, 1]


def test_numpy_values_in_lists_are_not_rounded_where_float32_is_wanted() -> None:
    values, v = [np.float64(THIRD)], ll.Variable([1.0])
    with pytest.raises(DTypeError, match=r"write ll\.astype"):
        v.assign(values)
    with pytest.raises(DTypeError, match="returned float64"):
        ll.py_func(lambda: values, [], ll.TensorSpec((1,)))
    assert ll.py_func(lambda: values, [], ll.TensorSpec((1,), "float64")).tolist() == values
    assert v.assign([0.5]).tolist() == [0.5]


def test_a_mask_is_lost_nowhere():
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    for data in (masked, [masked, masked], [[masked]], (np.ones(2), masked), [masked[0], 1.0]):
        for make in (ll.constant, ll.sum, lambda x: ll.constant(x, ll.float32), ll.function(ll.sum)):
            with pytest.raises(ll.errors.DTypeError, match="whose mask would be lost"):
                make(data)
    assert ll.constant([np.ma.masked_array([1.0, 2.0])]).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1, 2], np.array([3, 4]), [1, 2, 3]], "x[0] has 2 elements, and x[2] has 3 elements; fill rows up"),
        ([np.array([3, 4]), (1, 2), [1]], "x[0] has 2 elements, and x[2] has 1 element; fill rows up"),
        ([[1, 2], range(3)], "x[0] has 2 elements, and x[1] has 3 elements; fill rows up"),
        (deque([[1, 2], range(2), deque([1])]), "x[0] has 2 elements, and x[2] has 1 element; fill rows up"),
        ([[], [1]], "x[0] has 0 elements, and x[1] has 1 element; fill rows up"),
        ([[1, 2], 3], "x[0] has 2 elements, and x[1] is a number; fill rows up"),
        ([np.float32(1), [1]], "x[0] is a number, and x[1] has 1 element; fill rows up"),
        ([np.True_, [True]], "x[0] is a number, and x[1] has 1 element; fill rows up"),
        ([[1, 2], np.array(3)], "x[0] has 2 elements, and x[1] is a number; fill rows up"),
        ([[1, 2], None], "x[0] has 2 elements, and x[1] is None; give numbers, or rows of numbers"),
        ([None, [1, 2]], "x[0] is None, and x[1] has 2 elements; give numbers, or rows of numbers"),
        ([[1, 2], "ab"], "x[0] has 2 elements, and x[1] is a str; give numbers, or rows of numbers"),
        ([[1, 2], {1: 2}], "x[0] has 2 elements, and x[1] is a dict; give numbers, or rows of numbers"),
        ([[1, 2], OrderedDict()], "x[0] has 2 elements, and x[1] is an OrderedDict; give numbers, or rows of numbers"),
        ([[1, [2, None]], [1, 2]], "x[0][0] is a number, and x[0][1] has 2 elements; fill rows up"),
        ([[[1, 2], [3, 4]], [[1, 2, 3], [4, 5, 6]]], "x[0] has the shape (2, 2), and x[1] has the shape (2, 3); fill"),
        ([[[1, 2], [3, 4]], [1, 2]], "x[0] has the shape (2, 2), and x[1] has the shape (2,); fill rows up"),
        ([np.ones((2, 3)), [[1.0, 2.0, 3.0]]], "x[0] has 2 rows, and x[1] has 1 row; fill rows up"),
        ([np.ones((2, 3)), np.ones((2, 4))], "x[0] has the shape (2, 3), and x[1] has the shape (2, 4); fill rows up"),
    ],
)
def test_rows_that_differ_are_told_by_their_places(rows: Any, said: str) -> None:
    with pytest.raises(ShapeError, match=f"^a tensor must be rectangular: {re.escape(said)}"):
        loose.constant(rows)
