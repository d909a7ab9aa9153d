"""An array of NumPy's that a traced function would change in place stays as it is, and that is said at the line."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import LostChangeWarning


def added(x):
    x += 1.0
    return x


def another_name(x):
    y = x
    y *= 2.0
    return y


def part(x):
    y = x[1:]
    y -= 1.0
    return y


def rows(x):
    for row in x:
        row /= 2.0  # noqa: PLW2901
    return x


def reshaped(x):
    y = x.T.reshape(-1)[None]
    y **= 2.0
    return y


def item(xs):
    xs["a"] += 1.0
    return xs["a"]


def helped(x):
    return added(x * 1.0) + added(x)


def told(f: Any, *args: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        f(*args)
    for one in heard:
        assert one.category is LostChangeWarning
        assert one.filename == __file__
    lines = inspect.getsource(inspect.getmodule(told)).splitlines()
    return [lines[one.lineno - 1].strip() for one in heard]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (added, "x += 1.0"), (another_name, "y *= 2.0"), (part, "y -= 1.0"), (rows, "row /= 2.0  # noqa: PLW2901"),
        (reshaped, "y **= 2.0"), (helped, "x += 1.0"),
    ],
)  # fmt: skip
def test_a_change_in_place_is_told_at_its_line(body: Any, line: str) -> None:
    f = ll.function(body)
    tensor, array = ll.ones((2, 2), dtype=ll.float64), np.ones((2, 2))
    assert told(f, tensor) == []
    assert told(f, array) == [line]  # of a trace that was made for a tensor
    assert told(f.clone(), array) == [line]
    assert told(f, tensor) == []
    assert np.array_equal(array, np.ones((2, 2)))


def test_an_array_in_a_container_is_told():
    f = ll.function(item)
    assert told(f, {"a": ll.ones(2)}) == ['xs["a"] += 1.0']  # the dictionary has another tensor then
    assert told(f.clone(), {"a": np.ones(2)}) == ['xs["a"] += 1.0'] * 2


def test_new_arrays_are_no_business_of_the_callers():
    @ll.function
    def f(x, y):
        z = x * 2.0
        z += y
        w = x[0]
        w += 1.0  # a number, which is no view
        return z, w, x + y

    assert told(f, np.ones(2), ll.ones(2, dtype=ll.float64)) == []


def test_declared_arguments_are_told_of_too():
    f = ll.function(added, input_signature=[ll.TensorSpec((None,))])
    assert told(f, ll.ones(2)) == []
    assert told(f, np.ones(2, np.float32)) == ["x += 1.0"]
    assert told(f, [1.0, 2.0]) == []  # a list has no `+=` of numbers
    nested = ll.function(item, input_signature=[{"a": ll.TensorSpec((2,))}])
    assert told(nested, {"a": np.ones(2, np.float32)}) == ['xs["a"] += 1.0'] * 2


def counted(x, n):
    for i in ll.arange(n):
        x += ll.astype(i, x.dtype)
    return x


def while_small(x, n):
    while x.sum() < 10.0:
        for _ in ll.arange(n):
            y = x[:1]
            y += 1.0
        x = x + 1.0
    return x


def in_a_branch(x, n):
    def changed():
        y = x[1:]
        y += 1.0
        return y

    return ll.cond(n > 2, changed, lambda: x[1:])


def made_anew(x, n):
    for _ in ll.arange(n):
        x = x * 2.0
        x += 1.0
    return x


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (counted, ["x += ll.astype(i, x.dtype)"]), (while_small, ["y += 1.0"]), (in_a_branch, ["y += 1.0"]),
        (made_anew, []),
    ],
)  # fmt: skip
def test_a_change_in_staged_control_flow_is_told(body: Any, lines: list[str]) -> None:
    f = ll.function(body, autograph=True)
    assert told(f, ll.ones(2), ll.constant(3)) == []
    assert told(f.clone(), np.ones(2, np.float32), ll.constant(3)) == lines


def test_a_staged_function_that_changes_its_argument_is_told_of_through_another():
    inner = ll.function(added)
    f = ll.function(lambda x: inner(x[0]) + inner(x * 2.0)[0])
    assert told(f, np.ones((2, 2))) == ["x += 1.0"]
    assert told(f.clone(), ll.ones((2, 2), dtype=ll.float64)) == []


def test_raised_as_an_error_it_leaves_no_trace():
    f = ll.function(added)
    with warnings.catch_warnings(), pytest.raises(LostChangeWarning, match="`x` in place"):
        warnings.simplefilter("error")
        f(np.ones(2))
    assert len(f.trace_cache) == 0
