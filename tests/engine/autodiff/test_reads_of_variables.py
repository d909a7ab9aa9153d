"""A variable that is an operand several times is one read to a tape, until it is assigned to."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight import errors, events

X = ll.constant([[0.5, 1.5], [2.5, -0.5]])
USES: dict[str, Callable[[Any], Any]] = {
    "left": lambda v: v * X,
    "right": lambda v: X - v,
    "twice": lambda v: v * v,
    "number": lambda v: v * 2.0,
    "reflected": lambda v: 2.0 / v,
    "function": ll.exp,
    "parameters": lambda v: ll.sum(v, 0),
    "where": lambda v: ll.where(X > 0.0, v, 1.0),
    "matmul": lambda v: X @ v,
    "negative": lambda v: -v,
    "absolute": abs,
    "slice": lambda v: v[0],
    "method": lambda v: v.sum(1),
    "property": lambda v: v.T,
    "comparison": lambda v: ll.where(v > 1.5, v, X),
    "power": lambda v: v**2,
}


def made() -> ll.Variable:
    return ll.Variable([[1.0, 2.0], [3.0, 4.0]])


def reads(tape: ll.GradientTape) -> int:
    return sum(entry.op == "read_variable" for entry in tape.entries)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", USES)
def test_many_uses_are_one_read_and_have_the_gradient_of_a_value_read_once(name, depth):
    def run(once: bool) -> tuple[list[int], list[list[float]]]:
        v = made()
        tapes = [ll.GradientTape() for _ in range(depth)]
        with ExitStack() as blocks:
            for tape in tapes:
                blocks.enter_context(tape)
            value = v.read_value() if once else v
            y = sum([ll.sum(USES[name](value) * k) for k in (1.0, 0.3, 0.7)])
        return [reads(tape) for tape in tapes], [tape.gradient(y, v).tolist() for tape in tapes]

    counts, gradients = run(once=False)
    assert counts == [1] * depth
    assert gradients == run(once=True)[1]  # to the bit


def test_views_of_ops_count_one_read_as_well():
    v, ran = made(), []
    listening = events.listen(lambda event: ran.append(event.op), events.OpRan)
    with ll.GradientTape() as tape:
        assert (-(v * X + v)).shape == (2, 2)
    listening.close()
    assert ran.count("read_variable") == reads(tape) == 1


def assigned(v: ll.Variable) -> None:
    v.assign(v._value_now() + 1.0)


def assigned_by_a_thread(v: ll.Variable) -> None:
    thread = threading.Thread(target=assigned, args=[v])
    thread.start()
    thread.join()


def assigned_by_a_function(v: ll.Variable) -> None:
    ll.function(lambda: v.assign_add(ll.ones_like(v)))()


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("assign", [assigned, assigned_by_a_thread, assigned_by_a_function])
@pytest.mark.parametrize("name", USES)
def test_what_follows_an_assignment_reads_the_new_value(name, assign, depth):
    v, use = made(), USES[name]
    before, after = use(v), use(v.read_value() + 1.0)
    with ExitStack() as blocks:
        tapes = [blocks.enter_context(ll.GradientTape(persistent=True)) for _ in range(depth)]
        first = use(v)
        assign(v)
        second, third = use(v), use(v)
    assert first.tolist() == before.tolist()
    assert second.tolist() == third.tolist() == after.tolist()
    for tape in tapes:
        assert reads(tape) == 2
        expected = tape.gradient(first, v).numpy() + 2 * tape.gradient(second, v).numpy()
        np.testing.assert_allclose(tape.gradient([first, second, third], v).numpy(), expected, rtol=1e-6)


def test_a_pause_of_one_tape_leaves_its_uses_to_the_other():
    v = made()
    with ll.GradientTape() as outer, ll.GradientTape() as inner:
        a = v * 2.0
        with outer.stop_recording():
            b = v * 3.0
            c = -v
        with inner.stop_recording():
            d = v * 5.0
        with outer.stop_recording(), inner.stop_recording():
            e = v[...] * 7.0
        f = v * 11.0
    y = (a, b, c, d, e, f)
    assert outer.gradient(y, v).tolist() == [[18.0] * 2] * 2
    assert inner.gradient(y, v).tolist() == [[15.0] * 2] * 2


@pytest.mark.parametrize("name", USES)
def test_tapes_in_and_around_a_trace_have_the_same_gradients(name):
    v, use = made(), USES[name]

    def both() -> tuple[ll.Tensor, ll.Tensor]:
        with ll.GradientTape(persistent=True) as tape:
            y = use(v) + use(v)
        return y, tape.gradient(y, v)

    with ll.GradientTape() as around:
        first = use(v)
        y, inside = ll.function(both)()
        last = use(v)
    assert inside.tolist() == both()[1].tolist()
    np.testing.assert_allclose(around.gradient([first, y, last], v).numpy(), 2 * inside.numpy(), rtol=1e-6)


def test_a_read_under_one_tape_is_none_of_a_tape_that_begins_later():
    v = made()
    with ll.GradientTape() as outer:
        a = v * 2.0
        with ll.GradientTape() as inner:
            b = v * 3.0 + v * 4.0
        c = v * 5.0
    assert reads(inner) == 1
    assert outer.gradient([a, b, c], v)[0, 0].item() == 14.0
    assert inner.gradient([a, b, c], v)[0, 0].item() == 7.0


@pytest.mark.parametrize("depth", [1, 2])
def test_a_variable_that_is_watched_later_is_read_again(depth):
    v = made()
    with ExitStack() as blocks:
        tapes = [blocks.enter_context(ll.GradientTape(watch_accessed_variables=False)) for _ in range(depth)]
        unseen = v * 2.0
        tapes[0].watch(v)
        seen = v * 3.0 - v
    assert tapes[0].gradient([unseen, seen], v)[0, 0].item() == 2.0
    for tape in tapes[1:]:
        assert tape.gradient([unseen, seen], v) is None


def test_a_tape_that_was_reset_reads_again():
    v = made()
    with ll.GradientTape() as outer, ll.GradientTape() as inner:
        a = v * 2.0
        outer.reset()
        b = v * 3.0
        inner.reset()
        c = v * 5.0
    assert outer.gradient([a, b, c], v)[0, 0].item() == 8.0
    assert inner.gradient([a, b, c], v)[0, 0].item() == 5.0


def test_accumulators_and_batches_between_tapes_see_each_read():
    v = made()
    with ll.GradientTape() as tape:
        a = v * v
        with ll.ForwardAccumulator(v, ll.ones((2, 2))) as forward:
            b = v * v + (-v) * a
        with ll.GradientTape() as inner, ll.ForwardAccumulator(v, ll.ones((2, 2))) as later:
            c = v * v
        rows = ll.vectorize(lambda x: ll.sum(x * v[0] - v[1]))(X)
    value = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(forward.jvp(b).numpy(), 2 * value - value**2)
    np.testing.assert_allclose(later.jvp(c).numpy(), 2 * value)
    np.testing.assert_allclose(inner.gradient(c, v).numpy(), 2 * value)
    np.testing.assert_allclose(tape.gradient(rows, v).numpy(), [[3.0, 1.0], [-2.0, -2.0]])


@pytest.mark.parametrize("paused", [False, True])
def test_an_old_value_goes_with_the_assignment_and_the_tape_keeps_none(paused):
    v = made()
    old = weakref.ref(v._data.array)
    with ll.GradientTape() as tape:
        v + X  # of which no rule saves anything
        with tape.stop_recording() if paused else ExitStack():
            v.assign(ll.zeros((2, 2)))
        assert old() is None
        v + X
    storage = weakref.ref(v._data)
    assert not tape._reads
    tape = None
    del v
    gc.collect()
    assert storage() is None


ARGUMENTS: list[tuple[Any, ...]] = [(), (0,), ((2, 2),), (ll.float32,), (X,), ((0, 1),), ("CPU:0",), (0, 1)]


def test_the_read_that_serves_several_ops_is_handed_out_by_no_method():
    v = made()
    with ll.GradientTape() as tape:
        v * X
        for name in dir(ll.Tensor):
            if name.startswith("_"):
                continue
            found = [member := getattr(v, name)]
            for arguments in ARGUMENTS if callable(member) else ():
                try:
                    found.append(getattr(v, name)(*arguments))
                except (errors.LimelightError, TypeError, ValueError, AttributeError, IndexError):
                    continue
            shared = tape._reads.get(v._data)
            assert shared is not None
            assert all(x is not shared for x in found), name
