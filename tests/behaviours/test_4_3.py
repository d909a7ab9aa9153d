"""Section 4.3, state: behaviours 79 to 84, which are about variables."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import DeadVariableError, DTypeError, ShapeError

both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])


# 79 A variable owns its storage


def test_079_variables_of_one_name_are_two() -> None:
    a, b = ll.Variable(1.0, name="w"), ll.Variable(2.0, name="w")
    a.assign(5.0)
    assert (a.numpy(), b.numpy(), a.name, b.name) == (5.0, 2.0, "w", "w")


@pytest.mark.slow  # collects garbage
def test_079_storage_dies_with_the_variable_even_if_a_graph_mentions_it() -> None:
    held = [ll.Variable(np.ones(1000, "float32"))]
    f = ll.function(lambda a: a * held[0])
    f(ll.ones((1000,)))
    storage = weakref.ref(held[0]._data)
    gc.collect()
    gc.disable()
    try:
        before = ll.memory_info().current
        held.clear()
        assert storage() is None
        assert before - ll.memory_info().current == 4000
    finally:
        gc.enable()


@pytest.mark.slow  # a thousand models
def test_079_a_thousand_models_do_not_grow() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = ll.Variable(np.ones((100, 100), "float32"))
            self.step = ll.function(lambda a: a * self.w)

    step = ll.function(lambda a, w: a * w)
    x = ll.ones((100,))
    for i in range(1010):
        if i == 10:
            gc.collect()
            before = ll.memory_info().current
        model = Model()
        step(x, model.w)
        if i % 100 == 0:
            model.step(x)
        del model
    gc.collect()
    assert ll.memory_info().current == before
    assert step.trace_count == 1


# 80 Graphs refer to variables by identity


def test_080_calling_after_the_variable_was_deleted_names_it() -> None:
    held = [ll.Variable(3.0, name="weights")]
    f = ll.function(lambda a: a * held[0])
    outer = ll.function(lambda a: f(a) + 1)
    x = ll.constant(2.0)
    assert outer(x).item() == 7.0
    concrete = f.get_concrete_function(x)
    held[0] = ll.Variable(100.0, name="another")
    for call in (f, concrete, outer):
        with pytest.raises(DeadVariableError, match="the variable 'weights', which has been deleted") as caught:
            call(x)
        assert "test_4_3.py line" in str(caught.value)
    f.clear_cache()
    assert f(x).item() == 200.0


def test_080_a_new_variable_in_the_same_place_is_not_mistaken_for_the_old_one() -> None:
    x = ll.constant(2.0)
    for _ in range(50):  # sooner or later Python hands out the same address again
        held = [ll.Variable(3.0)]
        f = ll.function(lambda a, held=held: a * held[0])
        f(x)
        address = id(held.pop())
        fresh = [ll.Variable(100.0) for _ in range(20)]
        with pytest.raises((DeadVariableError, IndexError)):
            f(x)
        if any(id(v) == address for v in fresh):
            return
    pytest.fail("no address was used twice: the test shows nothing")


# 81 Assignment


@both
def test_081_assignments_return_the_new_value(stage: Callable[..., Any]) -> None:
    v = ll.Variable([1.0, 2.0])

    @stage
    def f() -> Any:
        return v.assign([3.0, 4.0]) * 1, v.assign_add(1.0) * 1, v.assign_sub(ll.constant([0.5, 0.5])) * 1

    assert [t.tolist() for t in f()] == [[3.0, 4.0], [4.0, 5.0], [3.5, 4.5]]
    assert v.numpy().tolist() == [3.5, 4.5]


@both
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1.0, 2.0, 3.0], ShapeError, r"a value of shape \(3,\) does not fit a variable of shape \(2,\)"),
        (1.0, ShapeError, r"a value of shape \(\) does not fit"),
        (np.ones((2, 2), "float32"), ShapeError, r"\(2, 2\)"),
        (np.ones(2), DTypeError, r"a value of float64 does not fit a variable of float32; write ll\.astype"),
        (np.ones(2, "int32"), DTypeError, "a value of int32 does not fit a variable of float32"),
        ([1j, 2j], DTypeError, "complex values would lose information as float32"),
        ("abc", DTypeError, "cannot make a tensor"),
        (None, DTypeError, "cannot make a tensor"),
    ],
)
def test_081_a_value_that_does_not_fit_is_refused(
    stage: Callable[..., Any], value: Any, error: type[Exception], message: str
) -> None:
    v = ll.Variable([1.0, 2.0])
    with pytest.raises(error, match=message) as caught:
        stage(lambda: v.assign(value))()
    assert "test_4_3.py line" in str(caught.value)
    assert v.numpy().tolist() == [1.0, 2.0]


@both
def test_081_integer_variables_refuse_fractions_and_large_numbers(stage: Callable[..., Any]) -> None:
    v = ll.Variable(1)
    for write, value in ((v.assign, 0.5), (v.assign_add, 0.5), (v.assign_sub, 2**40)):
        with pytest.raises(DTypeError, match=r"int32"):
            stage(lambda w=write, x=value: w(x))()
    assert v.numpy() == 1


@both
def test_081_updates_broadcast_to_the_variable_only(stage: Callable[..., Any]) -> None:
    v = ll.Variable(np.zeros((2, 2), "float32"))
    stage(lambda: v.assign_add([1.0, 2.0]))()
    assert v.numpy().tolist() == [[1.0, 2.0]] * 2
    with pytest.raises(ShapeError, match="does not broadcast"):
        stage(lambda: v.assign_add(ll.ones((3, 2, 2))))()


@both
def test_081_open_sizes_accept_other_shapes(stage: Callable[..., Any]) -> None:
    v = ll.Variable([1.0, 2.0], shape=(None,))
    f = stage(lambda: ll.sum(v) * 1)
    assert f().item() == 3.0
    v.assign([1.0, 2.0, 3.0])
    assert f().item() == 6.0
    with pytest.raises(ShapeError, match=r"a value of shape \(2, 2\) does not fit"):
        v.assign(ll.ones((2, 2)))


@both
def test_081_assigning_a_view_of_the_variable_itself(stage: Callable[..., Any]) -> None:
    v = ll.Variable([1.0, 2.0, 3.0])
    stage(lambda: v.assign(v[::-1]))()
    assert v.numpy().tolist() == [3.0, 2.0, 1.0]
    stage(lambda: v.assign_add(v[::-1]))()
    assert v.numpy().tolist() == [4.0, 4.0, 4.0]
    w = ll.Variable(np.arange(4.0).reshape(2, 2))
    stage(lambda: w.assign(w.read_value().T))()
    assert w.numpy().tolist() == [[0.0, 2.0], [1.0, 3.0]]


# 82 Reads are snapshots


@both
def test_082_reads_are_snapshots(stage: Callable[..., Any]) -> None:
    v = ll.Variable([1.0, 2.0])

    @stage
    def f() -> Any:
        before = v.read_value()
        v.assign_add([10.0, 10.0])
        between = v.read_value()
        v.assign([0.0, 0.0])
        return before, between, v.read_value()

    assert [t.tolist() for t in f()] == [[1.0, 2.0], [11.0, 12.0], [0.0, 0.0]]


def test_082_a_read_saved_on_a_tape_keeps_its_value() -> None:
    v = ll.Variable([3.0])
    with ll.GradientTape() as tape:
        y = v * v
        v.assign([100.0])
    assert tape.gradient(y, v).tolist() == [6.0]


def test_082_arrays_given_and_taken_are_not_the_storage() -> None:
    mine = np.ones(2, "float32")
    v = ll.Variable(mine)
    mine[0] = 9
    seen = v.numpy()
    assert not seen.flags.writeable
    v.assign_add(1.0)
    assert seen.tolist() == [1.0, 1.0]
    given = np.full(2, 5.0, "float32")
    v.assign(given)
    given[0] = 9
    assert v.numpy().tolist() == [5.0, 5.0]


# 83 Construction


def test_083_variables_are_made_of_values_tensors_arrays_and_functions() -> None:
    for given in (2.0, [2.0], ll.constant(2.0), np.float32(2.0), lambda: 2.0, lambda: ll.constant(1.0) + 1):
        v = ll.Variable(given)
        assert v.dtype == "float32"
        assert float(v) == 2.0
    assert ll.Variable(np.ones(2)).dtype == "float64"
    assert ll.Variable(1, dtype="float64").dtype == "float64"
    assert ll.Variable(ll.constant(1.0), dtype="float64").dtype == "float64"
    assert ll.Variable(1.0, trainable=False).trainable is False


def test_083_what_cannot_be_an_initial_value_is_refused() -> None:
    with pytest.raises(DTypeError, match="would lose information as int32"):
        ll.Variable(0.5, dtype="int32")
    with pytest.raises(DTypeError, match="an initial value of float32 does not fit a variable of int32"):
        ll.Variable(ll.constant(0.5), dtype="int32")
    with pytest.raises(ShapeError, match=r"initial value of shape \(2,\) for a variable of shape \(3,\)"):
        ll.Variable([1.0, 2.0], shape=(3,))
    with pytest.raises(DTypeError, match="cannot make a tensor"):
        ll.Variable(None)


def test_083_copies_have_storage_of_their_own(cpus: list[Any]) -> None:
    v = ll.Variable([1.0, 2.0], name="w", trainable=False, shape=(None,))
    for clone in (copy.deepcopy(v), copy.copy(v)):
        assert (clone.name, clone.trainable, clone.dtype, clone.shape) == ("w", False, v.dtype, (None,))
        clone.assign([9.0])
        assert v.numpy().tolist() == [1.0, 2.0]
    with ll.device(cpus[1]):
        far = ll.Variable(1.0)
    assert copy.deepcopy(far).device is cpus[1]
    shared = {"a": v, "again": v}
    cloned = copy.deepcopy(shared)
    assert cloned["a"] is cloned["again"]
    assert cloned["a"] is not v


def test_083_repr_shows_the_value_and_never_raises(cpus: list[Any]) -> None:
    assert repr(ll.Variable(1.5, name="w")) == "ll.Variable(1.5, name='w', shape=(), dtype=float32)"
    with ll.device("cpu:1"):
        assert repr(ll.Variable(1.5)).startswith("ll.Variable(1.5,")
    shown: list[str] = []
    v = ll.Variable(1.5, name="w")
    ll.function(lambda: shown.append(repr(v)))()
    assert "name='w'" in shown[0]


def test_083_variables_read_as_their_values() -> None:
    v = ll.Variable([[1.0, 2.0]])
    assert (v + 1).tolist() == [[2.0, 3.0]]
    assert (2 * v @ v.T).tolist() == [[10.0]]
    assert v.sum().item() == 3.0
    assert v[0, 1].item() == 2.0
    assert np.asarray(v).tolist() == [[1.0, 2.0]]
    assert len(v) == 1
    assert (v == ll.constant([[1.0, 5.0]])).tolist() == [[True, False]]
    with pytest.raises(TypeError, match=r"v\.ref\(\)"):
        hash(v)
    with pytest.raises(AttributeError, match="a variable has no attribute 'nothing'"):
        v.nothing  # noqa: B018
    assert v.ref() == v.ref() != ll.Variable(1.0).ref()


# 84 Staged code sees the current value


def test_084_staged_code_sees_the_current_value_without_a_retrace() -> None:
    v = ll.Variable(1.0)
    holder = {"v": [v]}
    inner = ll.function(lambda a: a * holder["v"][0])
    f = ll.function(lambda a: inner(a) + v)
    x = ll.constant(10.0)
    found = []
    for value in (1.0, 2.0, 3.0):
        v.assign(value)
        found.append(f(x).item())
    assert found == [11.0, 22.0, 33.0]
    assert (f.trace_count, inner.trace_count) == (1, 1)
