"""Calls that go straight to a compiled program: when they do, and that all others find their own way."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import limelight as ll
from compiled import jax_only  # beside this file
from limelight.errors import DeadVariableError

pytestmark = jax_only
DEVICES = ("CPU:0", "XLA:0")


def tensor(value: Any, device: str) -> ll.Tensor:
    return ll.constant(np.asarray(value, "float32")).to(device)


def is_direct(f: Any, *args: Any) -> bool:
    """Whether the direct call of `f` takes these arguments: then it has run."""
    from limelight.staging.direct_call import MISSED

    direct = f._cache.by_types.direct
    return direct is not None and direct(args) is not MISSED


@pytest.mark.parametrize("device", DEVICES)
def test_a_call_is_direct_from_the_third_on_and_counts_as_a_hit(device):
    f = ll.function(lambda x, y: x * y + 1.0, jit_compile=True)
    x, y = tensor([1.0, 2.0], device), tensor([3.0, 4.0], device)
    for n in range(4):
        result = f(x, y)
        assert (result.device.short, result.tolist()) == (device, [4.0, 9.0])
        assert f.trace_cache[0].hits == n
    assert is_direct(f, x, y)
    assert f.trace_count == 1


def test_a_result_that_is_on_the_host_stays_there():
    f = ll.function(lambda x: ll.constant(2.0), jit_compile=True)
    x = tensor([1.0], "XLA:0")
    for _ in range(4):
        result = f(x)
        assert (result.device.short, type(result._data)) == ("CPU:0", np.ndarray)


@pytest.mark.parametrize("device", DEVICES)
def test_what_it_was_not_made_for_takes_another_way(device):
    f = ll.function(lambda x, y=2.0: x * y, jit_compile=True)
    x = tensor([1.0, 2.0], device)
    for _ in range(12):  # often enough that a few traces are no reason to warn
        f(x)
    assert is_direct(f, x)
    other = "XLA:0" if device == "CPU:0" else "CPU:0"
    others = [(tensor([[1.0]], device),), (x.astype("float64"),), (tensor([1.0, 2.0], other),), (x, x), (x, 3.0), ()]
    assert not any(is_direct(f, *args) for args in others)
    assert f(x, 3.0).tolist() == [3.0, 6.0]
    assert f(x, y=4.0).tolist() == [4.0, 8.0]
    assert f(tensor([[1.0]], device)).tolist() == [[2.0]]
    assert f(tensor([1.0, 2.0], other)).device.short == other
    with pytest.raises(TypeError):
        f()
    f.clear_cache()
    assert not is_direct(f, x)


@pytest.mark.parametrize("device", DEVICES)
def test_tapes_listeners_and_traces_see_the_call(device):
    f = ll.function(lambda x: x * x, jit_compile=True)
    x = tensor([1.0, 3.0], device)
    for _ in range(3):
        f(x)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).tolist() == [2.0, 6.0]
    heard: list[Any] = []
    with ll.events.listen(heard.append, ll.events.CacheHit):
        f(x)
    assert len(heard) == 1
    assert ll.function(lambda x: f(x) + 1.0)(x).tolist() == [2.0, 10.0]


@pytest.mark.parametrize("device", DEVICES)
def test_variables_are_assigned_by_direct_calls_and_reads_are_snapshots(device):
    with ll.device(device):
        v, w = ll.Variable([0.0, 0.0]), ll.Variable(1.0)

    def step(x: Any) -> Any:
        before = v.read_value()
        v.assign_add(x)
        w.assign(w * 2.0)
        return before + w

    f = ll.function(step, jit_compile=True)
    x = tensor([1.0, 10.0], device)
    seen = []
    for n in range(5):
        seen.append(v.read_value())
        assert f(x).tolist() == [n + 2.0 ** (n + 1), 10.0 * n + 2.0 ** (n + 1)]
    assert [s.tolist() for s in seen] == [[n, 10.0 * n] for n in range(5)]
    assert (v.numpy().tolist(), float(w)) == ([5.0, 50.0], 32.0)
    told: list[Any] = []
    with ll.events.listen(told.append, ll.events.VariableAssigned):
        f(x)
    assert len(told) == 2
    assert v.device.short == device


@pytest.mark.parametrize("draws", [False, True])
def test_a_listener_to_assignments_may_assign_by_such_a_call(draws):
    v, n = ll.Variable(1.0), ll.Variable(0.0)
    generator = ll.random.Generator(1)

    def step(x: Any) -> Any:
        return v.assign_add(x + generator.uniform(()) if draws else x)

    f = ll.function(step, jit_compile=True)
    count = ll.function(lambda x: n.assign_add(x) + 0.0, jit_compile=True)
    one = ll.constant(1.0)
    for _ in range(3):
        f(one)
        count(one)

    def heard(event: Any) -> None:
        if event.variable_id == v._uid:
            count(one)

    def call() -> None:
        with ll.events.listen(heard, ll.events.VariableAssigned):
            f(one)

    thread = threading.Thread(target=call, daemon=True)  # which would hang
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert float(n) == 4.0


def test_a_variable_that_is_gone_is_an_error():
    kept = [ll.Variable(1.0)]
    f = ll.function(lambda x: x + kept[0], jit_compile=True)
    x = tensor([1.0], "CPU:0")
    for _ in range(3):
        assert f(x).tolist() == [2.0]
    assert is_direct(f, x)
    kept[0] = ll.Variable(2.0)
    gc.collect()
    with pytest.raises(DeadVariableError, match="deleted"):
        f(x)


def test_no_update_of_another_thread_is_lost():
    v = ll.Variable(np.zeros(4, "float32"))
    f = ll.function(lambda x: v.assign_add(x).sum(), jit_compile=True)
    one = ll.constant(np.ones(4, "float32"))
    for _ in range(3):
        f(one)
    threads = [threading.Thread(target=lambda: [f(one) for _ in range(200)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        v.assign_add(one)
    for thread in threads:
        thread.join()
    assert v.numpy().tolist() == [803.0] * 4


def test_a_call_that_was_under_way_does_not_bring_back_what_was_cleared():
    def before(x: Any) -> Any:
        return x + 1.0

    def after(x: Any) -> Any:
        return x + 2.0

    f = ll.function(before, jit_compile=True)
    x = tensor([1.0], "CPU:0")
    for _ in range(3):
        f(x)
    f._cache.clear_shortcuts()  # so that the next call looks its trace up by its key

    def exchange(event: Any) -> None:  # as another thread may do between the look-up and the end of the call
        before.__code__ = after.__code__
        f.get_concrete_function(x)

    with ll.events.listen(exchange, ll.events.CacheHit):
        f(x)
    assert [f(x).tolist() for _ in range(3)] == [[3.0]] * 3


def test_what_a_program_raises_is_explained_by_the_usual_way():
    f = ll.function(lambda x: x + 1.0, jit_compile=True, name="broken")
    x = tensor([1.0], "CPU:0")
    for _ in range(3):
        f(x)
    run = f.trace_cache[0].function.run

    def fails(*arrays: Any) -> Any:
        raise RuntimeError("no memory")

    run.program = run._only = fails
    with pytest.raises(ll.errors.RunError, match=r"broken, as a program of XLA,.*no memory"):
        f(x)
