"""Calls that users of NumPy, JAX and Keras try: each refusal says what was given, and what to write."""

from __future__ import annotations

import timeit
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, CallError, DTypeError, ShapeError, SignatureError, SymbolicValueError


class Sparse:
    def toarray(self) -> Any:
        raise AssertionError


def deletes() -> None:
    x = ll.ones(3)
    del x[0]


def adds_to_place() -> None:
    x = ll.ones(3)
    x.at[0] += 1.0


def sets_place() -> None:
    x = ll.ones(3)
    x.at[0] = 1.0


def adds_to_place_of_variable() -> None:
    v = ll.Variable([1.0])
    v.at[0] += 1.0


def sets_schedule() -> None:
    ll.optim.SGD(0.1).learning_rate = ll.optim.schedules.Constant(0.1)


def freezes() -> None:
    ll.Variable(1.0, name="w").trainable = False


def stores_in_array() -> Any:
    @ll.function
    def fill(x):
        out = np.zeros(3)
        out[0] = x * 2
        return out

    return fill(ll.constant(1.0))


two = [ll.TensorSpec((2,)), ll.TensorSpec((2,))]
nest = {"a": {"b": ll.ones(2)}}


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: ll.sum(np.ma.masked_array([1.0, 2.0], [0, 1])), DTypeError, r"mask would be lost: write x\.filled"),
        (lambda: ll.constant(Sparse()), DTypeError, r"a sparse Sparse: write x\.toarray\(\)"),
        (lambda: ll.sum({"a": 1.0}), DTypeError, r"a dict, which holds several: .*ll\.tree\.map"),
        (lambda: ll.sum([{"a": 1.0}]), DTypeError, "a list with a dict, which holds several"),
        (lambda: ll.sum(x for x in [1.0]), DTypeError, r"a generator, which has no places: write list\(x\)"),
        (lambda: ll.sum({1.0, 2.0}), DTypeError, r"a set, which has no places: write list\(x\)"),
        (lambda: ll.sum(ll.ones), DTypeError, "a function, which is to be called first"),
        (lambda: ll.sum(types.SimpleNamespace()), DTypeError, "an object of type SimpleNamespace"),
        (lambda: ll.map_fn(lambda g: g, [ll.random.Generator(1)]), DTypeError, "a Generator, which is state"),
        (lambda: ll.optim.clip_by_global_norm(nest, 1.0), ArgumentError, r"ll\.tree\.leaves\(gradients\)"),
        (lambda: ll.optim.Adam(0.1).apply(nest, nest), ArgumentError, r"apply\(ll\.tree\.leaves\(gradients\), ll"),
        (sets_schedule, ArgumentError, r"given when the optimiser is made, ll\.optim\.SGD\(schedule\)"),
        (deletes, DTypeError, r"immutable.*ll\.concat"),
        (adds_to_place, ArgumentError, r"write x = x\.at\[i\]\.add\(v\)"),
        (sets_place, ArgumentError, r"write x = x\.at\[i\]\.set\(v\)"),
        (adds_to_place_of_variable, ArgumentError, r"write v\.at\[i\]\.assign\(v\[i\] \+ x\)"),
        (lambda: ll.ones(3).at[0].get(None), AttributeError, r"no method 'get': write x\[i\]"),
        (lambda: ll.ones(3).at[0].divide(2.0), AttributeError, r"write x\.at\[i\]\.multiply\(1\.0 / v\)"),
        (lambda: ll.ones(3).at[0].sort(None), AttributeError, "it has set, add, multiply, min, max"),
        (lambda: ll.Variable([1.0]).at[0].divide(2.0), AttributeError, r"write v\.at\[i\]\.assign\(f\(v\[i\]\)\)"),
        (lambda: ll.ones(3).at(0), CallError, "stands in brackets"),
        (freezes, AttributeError, r"said when it is made: what no optimiser is handed stays as it is"),
        (lambda: ll.Variable(1, name="n").assign_add(1.0), DTypeError, "variable 'n', .*: floating values would lose"),
        (lambda: ll.arange(6) ** -1, ArgumentError, r"pow: integers to a negative power.*1\.0 / x"),
        (
            lambda: ll.nn.softmax_cross_entropy(ll.ones((4, 3)), ll.constant([[1], [2], [0], [1]])),
            ShapeError,
            r"labels of shape \(4,\), got i32\[4,1\]",
        ),
        (
            lambda: ll.nn.softmax_cross_entropy(ll.ones((4, 3)), ll.constant([[1, 2, 0, 1]])),
            ShapeError,
            r"labels of shape \(4,\), got i32\[1,4\]",
        ),
        (
            lambda: ll.py_func(lambda x: (x, None), [ll.ones(2)], two),
            SignatureError,
            r"returned, as result \[1\], None",
        ),
        (stores_in_array, SymbolicValueError, r"assignment into a NumPy array .*\.at\[i\]\.set\(x\)"),
    ],
)
def test_what_users_of_other_libraries_try_is_refused_in_words_that_help(
    call: Callable[[], Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_python_types_as_dtypes_are_those_that_equal_them():
    x = ll.constant(np.array([0.1]))
    assert x.dtype == float
    assert x.astype(float).dtype == float
    assert x.astype(float).tolist() == [0.1]
    for kind in (bool, int, float, complex):
        assert ll.zeros(2, dtype=kind).dtype == kind == ll.TensorSpec((), kind).dtype


def test_an_array_without_masked_elements_is_an_array():
    assert ll.sum(np.ma.masked_array([1.0, 2.0])).item() == 3.0


def test_a_schedule_called_by_hand_widens_nothing():
    schedule = ll.optim.schedules.Cosine(0.1, steps=10)
    assert schedule(3).dtype == ll.float32
    assert schedule(ll.constant(3)).dtype == ll.float32
    assert schedule(ll.constant(3.0, ll.float64)).dtype == ll.float64
    assert (ll.ones(2) - schedule(3) * ll.ones(2)).dtype == ll.float32


@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max"])
def test_an_update_of_a_part_that_is_dropped_warns_at_its_line(how: str) -> None:
    scope = {"x": ll.ones(3)}
    with pytest.warns(ll.errors.LostChangeWarning, match=rf"x stays as it is, .*write x = x\.at\[i\]\.{how}\(v\)"):
        exec(f"x.at[0].{how}(5.0)", scope)
    exec(f"y = x.at[0].{how}(5.0)", scope)


def test_a_sort_that_is_dropped_warns_at_its_line() -> None:
    scope = {"x": ll.ones(3)}
    with pytest.warns(ll.errors.LostChangeWarning, match=r"this one stays as it is, .*write x = x\.sort\(\)"):
        exec("x.sort()", scope)
    exec("y = x.sort()", scope)


def test_a_sort_that_is_not_meant_in_place_does_not_warn() -> None:
    """NumPy's function returns an array, as ours does; who measures time drops what is computed."""
    scope = {"ll": ll, "x": ll.ones(3)}
    exec("ll.sort(x)", scope)
    timeit.timeit("x.sort()", number=1, globals=scope)
    timeit.timeit("x.at[0].set(2.0)", number=1, globals=scope)
