"""Section 4.1, eager execution: behaviours 1 to 8."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import Here

import limelight as ll
from limelight.errors import DTypeError, ShapeError

x3 = ll.constant(3.0)


# 1 Eager ops return data


def test_001_eager_ops_run_at_once_and_show_value_shape_and_dtype() -> None:
    y = ll.matmul(ll.constant([[1.0, 2.0]]), ll.constant([[3.0], [4.0]])) + 1
    assert repr(y) == "ll.Tensor(\n[[12.]], shape=(1, 1), dtype=float32)"


@pytest.mark.parametrize(
    ("shape", "shown"), [((), "ll.Tensor(0., shape=()"), ((0, 3), "shape=(0, 3)"), ((2000, 2000), "...")]
)
def test_001_scalars_empty_and_huge_tensors_print(shape: tuple[int, ...], shown: str) -> None:
    text = repr(ll.zeros(shape))
    assert shown in text
    assert len(text) < 2000


def test_001_repr_obeys_numpys_print_options() -> None:
    with np.printoptions(precision=2):
        assert "0.33" in repr(ll.constant(1 / 3))
        assert "0.333" not in repr(ll.constant(1 / 3))


def test_001_repr_without_a_value_does_not_raise() -> None:
    shown = []

    @ll.function
    def f(a: Any) -> Any:
        b = a * 2
        shown.extend([repr(a), str(b), f"{b}"])
        return b

    f(ll.ones((2,)))
    assert shown[0] == "<symbolic f32[2]: the argument `a` in f>"
    assert shown[1].startswith("<symbolic f32[2]: the result of multiply in f, made at test_4_1.py line")


# 2 The NumPy bridge


def test_002_tensors_copy_what_they_are_made_of() -> None:
    mine = np.arange(3.0)
    t = ll.constant(mine)
    mine[0] = 99
    assert t.tolist() == [0.0, 1.0, 2.0]


def test_002_what_numpy_returns_is_read_only() -> None:
    t = ll.constant([1.0, 2.0])
    for view in (t.numpy(), np.asarray(t)):
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 9
    assert memoryview(t.numpy()).readonly
    assert t.tolist() == [1.0, 2.0]


def test_002_conversions_to_numpy() -> None:
    t = ll.constant([1.5, 2.5])
    assert np.asarray(t, dtype="float64").dtype == np.float64
    assert np.asarray(t, dtype="int32").tolist() == [1, 2]
    copied = np.array(t)
    copied[0] = 9
    assert t.tolist() == [1.5, 2.5]
    assert np.ones(2).astype("float32") + t == pytest.approx([2.5, 3.5])


def test_002_a_value_saved_on_a_tape_cannot_be_written_to() -> None:
    mine = np.array([3.0], "float32")
    x = ll.constant(mine)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    mine[0] = 100
    assert tape.gradient(y, x).tolist() == [6.0]


def test_002_an_array_argument_is_not_held_by_the_trace() -> None:
    mine = np.ones(2, "float32")
    f = ll.function(lambda a: a * 1)
    kept = f(mine)
    mine[0] = 7
    assert kept.tolist() == [1.0, 1.0]
    assert f(mine).tolist() == [7.0, 1.0]


# 3 Default dtypes


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.0, "float32"),
        (1, "int32"),
        (True, "bool"),
        (1j, "complex64"),
        (2**40, "int64"),
        (-(2**31), "int32"),
        (2**31, "int64"),
        ([1, 2.5], "float32"),
        ([], "float32"),
        (np.float64(1), "float64"),
        (np.int8(1), "int8"),
        (np.ones(2), "float64"),
    ],
)
def test_003_default_dtypes(value: Any, dtype: str) -> None:
    assert ll.constant(value).dtype == dtype


def test_003_arrays_in_fortran_order_keep_their_logical_order() -> None:
    array = np.asfortranarray(np.arange(6).reshape(2, 3))
    assert ll.constant(array).tolist() == array.tolist()
    assert ll.function(lambda a: a + 0)(array).tolist() == array.tolist()


# 4 Strict mixing of dtypes


@pytest.mark.parametrize(
    "mix",
    [
        lambda i, f: i + f,
        lambda i, f: i + 0.5,
        lambda i, f: 0.5 * i,
        lambda i, f: ll.where(i > 0, i, f),
        lambda i, f: ll.maximum(f, i),
        lambda i, f: i @ f,
        lambda i, f: (i > 0) + i,
        lambda i, f: ll.concat([i, f], axis=0),
        lambda i, f: ll.sqrt(i),
        lambda i, f: ll.constant(0.5, dtype="int32"),
        lambda i, f: i + 2**40,
    ],
)
def test_004_mixing_kinds_is_refused_alike_eager_and_staged(mix: Callable[..., Any], here: Here) -> None:
    i, f = ll.constant([1, 2]), ll.constant([1.0, 2.0])
    messages = []
    for run in (mix, ll.function(mix)):
        with pytest.raises(TypeError) as caught:
            run(i, f)
        assert isinstance(caught.value, DTypeError)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "test_4_1.py line" in messages[0]


def test_004_numbers_adapt_within_their_kind() -> None:
    f = ll.constant([1.0, 2.0])
    for run in (lambda t: t + 1, ll.function(lambda t: t + 1)):
        assert run(f).dtype == "float32"
        assert run(ll.astype(f, "float16")).dtype == "float16"
        assert run(ll.constant([1, 2])).dtype == "int32"


@pytest.mark.parametrize(("value", "dtype"), [(300, "uint8"), (-1, "uint8"), ([1, 2**40], "int32"), (2**63, "int64")])
def test_004_a_number_that_does_not_fit_is_refused(value: Any, dtype: str) -> None:
    with pytest.raises(DTypeError, match=f"does not fit into {dtype}"):
        ll.constant(value, dtype=dtype)


# 5 Equality


def test_005_equality_is_elementwise_and_broadcasts() -> None:
    assert (ll.constant([[1.0], [2.0]]) == ll.constant([1.0, 2.0])).tolist() == [[True, False], [False, True]]
    nan = ll.constant(float("nan"))
    assert (nan == nan).tolist() is False  # noqa: PLR0124  # that is the question
    assert (nan != nan).tolist() is True  # noqa: PLR0124  # the same


def test_005_tensors_are_not_hashable_but_have_references() -> None:
    a, b = ll.constant(1.0), ll.constant(1.0)
    with pytest.raises(TypeError, match=r"t\.ref\(\)"):
        hash(a)
    known = weakref.WeakKeyDictionary({a.ref(): "a"})
    assert len(known) == 0  # the key was the reference itself, which has died
    refs = {a.ref(): "a", b.ref(): "b"}
    assert refs[a.ref()] == "a"
    assert refs[b.ref()] == "b"
    assert a.ref().deref() is a
    assert a.ref() != b.ref()


def test_005_membership_follows_numpys_ambiguity() -> None:
    t = ll.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="one element"):
        assert t in [ll.constant([1.0, 3.0])]
    assert ll.constant(1.0) in [ll.constant(2.0), ll.constant(1.0)]


# 6 Conversions to Python


def test_006_scalars_convert() -> None:
    assert bool(ll.constant([[2.0]]))
    assert int(ll.constant([2.7])) == 2
    assert float(ll.constant(2)) == 2.0
    assert complex(ll.constant(2.0)) == 2 + 0j
    assert [10, 20][ll.constant(1)] == 20
    assert len(ll.ones((3, 2))) == 3
    assert [row.tolist() for row in ll.ones((2, 1))] == [[1.0], [1.0]]
    assert f"{ll.constant(1 / 3):.2f}" == "0.33"


@pytest.mark.parametrize("convert", [bool, int, float, complex])
def test_006_only_one_element_converts(convert: Callable[..., Any]) -> None:
    with pytest.raises(ShapeError, match=r"one element, this one is f32\[2\]"):
        convert(ll.ones((2,)))


def test_006_scalars_have_no_length_and_only_integers_index() -> None:
    for ask in (len, list, iter):
        with pytest.raises(TypeError, match="no axes"):
            ask(ll.constant(1.0))
    for t in (ll.constant(1.0), ll.constant([1])):
        with pytest.raises(TypeError, match="index"):
            [0, 1][t]


# 7 Indexing


KEYS: list[Any] = [
    0,
    -1,
    slice(None, None, -1),
    slice(5, 2),
    slice(10, 20),
    (slice(None), slice(0, 0)),
    (..., 0),
    (None, 1, ...),
    (slice(None), None, 2),
    (0, slice(None, None, -2)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_007_indexing_agrees_with_numpy(key: Any) -> None:
    array = np.arange(12.0).reshape(4, 3)
    t = ll.constant(array)
    unknown = ll.function(lambda v: v[key], input_signature=[ll.TensorSpec((None, 3), "float64")])
    for run in (lambda v: v[key], ll.function(lambda v: v[key]), unknown):
        assert np.array_equal(run(t).numpy(), array[key])
    with ll.GradientTape() as tape:
        tape.watch(t)
        y = t[key]
    expected = np.zeros_like(array)
    expected[key] = 1
    assert np.array_equal(tape.gradient(y, t).numpy(), expected)


def test_007_tensors_index() -> None:
    array = np.arange(12).reshape(4, 3)
    where = np.array([3, 0, 0])
    for run in (lambda v, i: v[i], ll.function(lambda v, i: v[i])):
        assert np.array_equal(run(ll.constant(array), ll.constant(where)).numpy(), array[where])


# 8 One set of operations (the op cases multiply this by every op; here are the shapes of results)


@pytest.mark.parametrize(
    "ask",
    [
        lambda v: ll.split(v, 3),
        lambda v: ll.split(v, 1),
        lambda v: [],
        lambda v: [v],
        lambda v: {"b": v + 1, "a": (v, None)},
        lambda v: ll.unstack(v, axis=0),
    ],
)
def test_008_results_have_the_same_structure_eager_and_staged(ask: Callable[..., Any]) -> None:
    v = ll.constant([1.0, 2.0, 3.0])
    eager, staged = ask(v), ll.function(ask)(v)
    assert type(eager) is type(staged)
    leaves, structure = ll.nest.flatten(eager)
    staged_leaves, staged_structure = ll.nest.flatten(staged)
    assert structure == staged_structure
    for a, b in zip(leaves, staged_leaves, strict=True):
        assert (a is None) == (b is None)
        assert a is None or (a.dtype == b.dtype and a.tolist() == b.tolist())
