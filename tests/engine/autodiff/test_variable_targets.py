"""A variable that is asked for as a target: to be asked for is to be read, so it is its own derivative."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
SHAPES = st.sampled_from([(), (3,), (2, 3), (0,)])


def _identity(shape: tuple[int, ...]) -> list[Any]:
    n = int(ll.ones(shape).spec.size)
    return ll.reshape(ll.eye(n), (*shape, *shape)).tolist()


@settings(max_examples=8)
@given(SHAPES, st.booleans(), st.booleans(), st.sampled_from(["float32", "float64", "complex64"]))
def test_by_itself(shape: tuple[int, ...], persistent: bool, staged: bool, dtype: str) -> None:
    v = ll.Variable(ll.full(shape, 3.0, dtype="float64").astype(dtype))

    def asked() -> Any:
        with ll.GradientTape(persistent=persistent) as tape:
            alias = v
        by = tape.gradient(alias, v)
        with ll.GradientTape(persistent=persistent) as tape:
            y = v * 2.0
        several = tape.gradient({"v": v, "y": [y, alias]}, [v])[0]
        with ll.GradientTape(persistent=persistent) as tape:
            pass
        return by, several, tape.jacobian(v, v)

    by, several, jacobian = ll.function(asked)() if staged else asked()
    ones = ll.ones(shape)
    assert ll.real(by).tolist() == ones.tolist()
    assert by.dtype.name == dtype
    assert ll.real(several).tolist() == (4.0 * ones).tolist()
    assert ll.real(jacobian).tolist() == _identity(shape)


def test_weighted_and_example_by_example() -> None:
    v = ll.Variable([[1.0, 2.0]])
    with ll.GradientTape(persistent=True) as tape:
        pass
    assert tape.gradient(v, v, ll.constant([[5.0, 7.0]])).tolist() == [[5.0, 7.0]]
    assert tape.batch_jacobian(v, v).tolist() == [[[1.0, 0.0], [0.0, 1.0]]]
    assert tape.watched_variables() == (v,)


def test_after_an_assignment_and_from_a_function() -> None:
    v = ll.Variable(3.0)
    with ll.GradientTape() as tape:
        v.assign(v * v)
    assert tape.gradient(v, v).item() == 1.0
    with ll.GradientTape() as tape:
        r = ll.function(lambda: v)()
    assert tape.gradient(r, v).item() == 1.0


@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
def test_derivatives_as_functions(stage: Any) -> None:
    v = ll.Variable(3.0)
    of_variables: dict[str, Any] = {"argnums": None, "variables": [v]}
    value, (slope,) = stage(ll.value_and_grad(lambda: v, **of_variables))()
    assert (value.item(), slope.item()) == (3.0, 1.0)
    assert stage(ll.grad(lambda: v, **of_variables))()[0].item() == 1.0
    assert ll.grad(stage(lambda: v), **of_variables)()[0].item() == 1.0
    assert ll.grad(lambda: (v, "aux"), has_aux=True, **of_variables)()[0][0].item() == 1.0
    assert stage(lambda: ll.jacobian(lambda x: x)(v))().item() == 1.0
    assert stage(lambda: ll.vjp(lambda x: [x, v], v)[1]([ll.constant(2.0), ll.constant(5.0)]))()[0].item() == 7.0
    assert ll.jvp(lambda x: x, (v,), (ll.constant(5.0),))[1].item() == 5.0
    by_examples = ll.vectorize(ll.grad(lambda x: v, 0, variables=[v]))(ll.constant([1.0, 2.0]))
    assert [g.tolist() for g in (by_examples[0], *by_examples[1])] == [[0.0, 0.0], [1.0, 1.0]]


def test_a_tape_around_sees_a_constant() -> None:
    v = ll.Variable(3.0)
    with ll.GradientTape() as outer:
        with ll.GradientTape() as inner:
            pass
        one = inner.gradient(v, v)
        y = one * v
    assert outer.gradient(y, v).item() == 1.0


def test_one_that_no_tape_watches_has_none() -> None:
    fixed, v, x = ll.Variable(1.0, trainable=False), ll.Variable(1.0), ll.constant(1.0)
    with ll.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        pass
    for each in (fixed, v, x):
        assert tape.gradient(each, each) is None
        assert ll.explain.why_none(tape, each, each).cause != "connected"
    with ll.GradientTape(persistent=True) as tape:
        tape.watch([fixed, x])
    for each in (fixed, v, x):
        assert ll.explain.why_none(tape, each, each).cause == "connected"
        assert tape.gradient(each, each).item() == 1.0
    with ll.ForwardAccumulator(v, ll.constant(5.0)) as forward:
        assert forward.jvp([v, fixed, {"v": v}])[2]["v"].item() == 5.0


def test_a_tape_that_is_over_keeps_no_value_that_it_read():
    v = ll.Variable(np.ones(3, np.float32))
    with ll.GradientTape(persistent=True) as tape:
        y = ll.sum(v * 2.0)
    before = weakref.ref(v._data.array)
    v.assign(np.zeros(3, np.float32))
    gc.collect()
    assert before() is None
    assert tape.gradient(y, v).tolist() == [2.0, 2.0, 2.0]
