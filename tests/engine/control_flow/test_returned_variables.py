"""Variables that branches and recomputed functions return: the values of then, eagerly as in a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "cond": lambda x, v: ll.cond(ll.sum(x) > 0.0, lambda: v, lambda: x),
    "constant condition": lambda x, v: ll.cond(False, lambda: x, lambda: v),
    "nest": lambda x, v: ll.cond(ll.sum(x) > 0.0, lambda: {"a": [x, v]}, lambda: {"a": [x, x]})["a"][1],
    "switch": lambda x, v: ll.switch(ll.constant(1), [lambda: x, lambda: v]),
    "recompute": lambda x, v: ll.recompute_grad(lambda: v)(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("staged", [False, True])
def test_they_are_values(call: Any, staged: bool) -> None:
    v, x = ll.Variable([1.0, 2.0]), ll.ones(2)

    def run(x: Any) -> Any:
        result = call(x, v)
        v.assign_add(x)
        return result

    result = (ll.function(run) if staged else run)(x)
    assert type(result) is ll.Tensor
    assert result.tolist() == [1.0, 2.0]
    with ll.GradientTape() as tape:
        y = ll.sum(call(x, v) ** 2)
    assert tape.gradient(y, v).tolist() == [4.0, 6.0]


def test_what_holds_no_variable_is_returned_as_it_is() -> None:
    kept = [ll.ones(1)]
    assert ll.cond(True, lambda: kept, lambda: None) is kept


def test_numbers_of_numpy_are_results() -> None:
    numbers = np.float32(2), np.int64(3), np.bool_(True), np.complex64(1j)
    results = ll.function(lambda x: (x, *numbers))(ll.ones(1))[1:]
    assert [x.dtype.name for x in results] == ["float32", "int64", "bool", "complex64"]
    assert [x.item() for x in results] == [x.item() for x in numbers]


def test_arrays_are_tensors_as_those_that_stand_for_them_in_a_graph() -> None:
    array, words = np.ones(2, np.float32), np.array(["a"])
    result = ll.cond(ll.sum(ll.ones(2)) > 0.0, lambda: [array, array[0]], lambda: [array * 2, array[1]])
    assert [type(x) is ll.Tensor for x in result] == [True, True]
    assert type(ll.switch(ll.constant(0), [lambda: array, lambda: array])) is ll.Tensor
    assert ll.cond(True, lambda: words, lambda: array) is words
