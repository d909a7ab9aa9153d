"""Parts of keys: their forms are equal, and a trace with unknown sizes serves what its parts cover, nothing else."""

from __future__ import annotations

import copy
import datetime
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.staging.key_parts import TensorPart, ValuePart

pytestmark = pytest.mark.usefixtures("retraces_are_meant")
OPEN = ll.TensorSpec((None, 3))


class Thing:
    """Something that is keyed by identity."""


@pytest.fixture
def two_devices() -> None:
    ll.config.set_virtual_devices(CPU=2)


def ones(*shape: int, dtype: str = "float32") -> ll.Tensor:
    return ll.ones(shape, dtype=dtype)


def opened(*others: Any, spec: ll.TensorSpec = OPEN) -> Any:
    """A function with one trace, for tensors of the spec beside the others: which it serves is for `covers` to say."""
    f = ll.function(lambda x, *more: x)
    f.get_concrete_function(spec, *others)
    assert f.trace_count == 1
    return f


def is_served(f: Any, *args: Any) -> bool:
    """Whether a call finds one of the traces there are."""
    before = f.trace_count
    f(*args)
    return bool(f.trace_count == before)


# Open sizes


def test_an_open_size_takes_any() -> None:
    f = opened()
    assert all(is_served(f, ones(n, 3)) for n in (0, 1, 7))


@pytest.mark.parametrize(
    "x",
    [ones(2, 4), ones(2), ones(2, 3, 1), ones(2, 3, dtype="float64"), ones(2, 3, dtype="int32")],
    ids=["another size", "fewer axes", "more axes", "another float", "whole numbers"],
)
def test_an_open_size_does_not_take(x: ll.Tensor) -> None:
    assert not is_served(opened(), x)


@pytest.mark.usefixtures("two_devices")
def test_a_tensor_on_another_device_has_another_trace() -> None:
    f, x = opened(), ones(2, 3)
    assert not is_served(f, x.to("CPU:1"))
    assert f(x.to("CPU:1")).device.short == "CPU:1"
    assert is_served(f, x)


@pytest.mark.usefixtures("two_devices")
def test_relaxing_is_within_one_device() -> None:
    f = ll.function(lambda x: x + 1, reduce_retracing=True)
    for x in (ones(1, 3), ones(2, 3), ones(3, 3)):
        f(x)
    assert [entry.signature for entry in f.trace_cache] == ["x: f32[1,3]", "x: f32[?,3]"]
    for rows, is_traced in ((4, True), (5, True), (6, False)):
        assert is_served(f, ones(rows, 3).to("CPU:1")) is not is_traced
    assert [entry.signature for entry in f.trace_cache][2:] == ["x: f32[4,3] on CPU:1", "x: f32[?,3] on CPU:1"]
    assert is_served(f, ones(9, 3))


def test_relaxing_is_within_one_dtype() -> None:
    f = ll.function(lambda x: x + 1, reduce_retracing=True)
    for x in (ones(1, 3), ones(2, 3, dtype="float64")):
        f(x)
    assert [entry.signature for entry in f.trace_cache] == ["x: f32[1,3]", "x: f64[2,3]"]


def test_a_number_is_no_tensor() -> None:
    """Its part is ("value", float, "1.5"): a dtype is equal to `float`, and the text is as long as the rank."""
    assert not is_served(opened(spec=ll.TensorSpec((None, None, None), "float64")), 1.5)


@pytest.mark.parametrize(
    "given", [ll.Variable(np.ones((2, 3), np.float32)), "abc", Thing()], ids=["variable", "text", "object"]
)
def test_nothing_but_a_tensor_is_one(given: Any) -> None:
    assert not TensorPart.of(ones(1).dtype, (None, 3)).covers(ll.function(lambda x: x)._call((given,), {}).key.parts[0])


# What stands beside a tensor of unknown sizes

KEPT = Thing()
PAIRS: dict[str, tuple[Any, Any]] = {
    "int, float": (1, 1.0),
    "int, bool": (1, True),
    "float, bool": (1.0, True),
    "zeros": (0.0, -0.0),
    "texts": ("relu", "tanh"),
    "dates": (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)),
    "objects": (KEPT, Thing()),
    "a value for an object": (KEPT, None),
    "variables": (ll.Variable(1.0), ll.Variable([1.0])),
    "dtypes of variables": (ll.Variable(1.0), ll.Variable(1.0, dtype="float64")),
}


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS.keys())
def test_other_parts_are_covered_by_equal_ones_alone(before: Any, after: Any) -> None:
    f = opened(before)
    assert is_served(f, ones(2, 3), before)
    assert not is_served(f, ones(2, 3), after)


@pytest.mark.parametrize(
    "value", [float("nan"), datetime.date(2024, 1, 1), "relu", KEPT], ids=lambda x: type(x).__name__
)
def test_what_is_alike_is_covered(value: Any) -> None:
    assert is_served(opened(value), ones(2, 3), copy.copy(value) if value is not KEPT else value)


@pytest.mark.usefixtures("two_devices")
def test_a_variable_is_covered_where_it_is() -> None:
    with ll.device("CPU:1"):
        there = ll.Variable(1.0)
    assert not is_served(opened(ll.Variable(1.0)), ones(2, 3), there)


def test_variables_are_covered_by_pattern() -> None:
    one, two = ll.Variable(1.0), ll.Variable(2.0)
    f = opened(one, one)
    assert is_served(f, ones(2, 3), two, two)
    assert not is_served(f, ones(2, 3), one, two)


def test_a_variable_that_is_closed_over_is_covered_as_itself() -> None:
    inside, other = ll.Variable(1.0), ll.Variable(2.0)
    f = ll.function(lambda x, v: x * inside + v)
    f.get_concrete_function(OPEN, inside)
    assert is_served(f, ones(2, 3), inside)
    assert not is_served(f, ones(2, 3), other)
    assert f(ones(1, 3), other).tolist() == [[3.0, 3.0, 3.0]]


# Around the parts


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "more of them": (lambda *x: x[0], (OPEN,), (ones(2, 3), ones(2, 3))),
    "fewer of them": (lambda *x: x[0], (OPEN, OPEN), (ones(2, 3),)),
    "in another container": (lambda x: x[0], ([OPEN],), ((ones(2, 3),),)),
    "under another key": (lambda x: x, ({"a": OPEN},), ({"b": ones(2, 3)},)),
}


@pytest.mark.parametrize(("body", "specs", "args"), CALLS.values(), ids=CALLS.keys())
def test_arguments_are_covered_in_one_structure(body: Any, specs: tuple[Any, ...], args: tuple[Any, ...]) -> None:
    f = ll.function(body)
    f.get_concrete_function(*specs)
    assert not is_served(f, *args)


@pytest.mark.usefixtures("two_devices")
def test_calls_are_covered_within_one_scope() -> None:
    f, x = opened(), ones(2, 3)
    with ll.device("CPU:1"):
        assert not is_served(f, x)
    assert is_served(f, x)


# The two forms


def test_a_typed_key_is_found_by_a_bare_one() -> None:
    inside = ll.Variable(1.0)
    call = ll.function(lambda *x: x)._call((ones(2), 1, 1.5, "text", KEPT, inside, ll.TensorSpec((None,))), {}, True)
    key, bare = call.key, call.lookup
    assert key == bare
    assert hash(key) == hash(bare)
    assert {key: "found"}[bare] == {bare: "found"}[key] == "found"
    assert [type(part).__name__ for part in key.parts] == [
        "TensorPart", "ValuePart", "ValuePart", "ValuePart", "ObjectPart", "VariablePart", "TensorPart"
    ]  # fmt: skip
    assert [part.is_input for part in key.parts] == [True, False, False, False, False, True, True]
    assert [part.has_unknown_sizes for part in key.parts] == [False] * 6 + [True]


def test_parts_can_be_copied_and_pickled() -> None:
    part = TensorPart.of(ones(1).dtype, (None, 3))
    for same in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert (type(same), same, same.shape) == (TensorPart, part, (None, 3))


def test_words_of_parts() -> None:
    parts = ll.function(lambda *x: x)._call((ones(2), 0.5, "a" * 70, KEPT, ll.Variable(1.0)), {}).key.parts
    assert [part.describe() for part in parts] == ["f32[2]", "0.5", f"'{'a' * 60}'...", "Thing object", "var f32[] #0"]
    assert isinstance(parts[1], ValuePart)
    assert (parts[1].kind, parts[1].value, parts[1].is_words) == (float, "0.5", True)
