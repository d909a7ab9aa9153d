"""The registry of executors, and what one that registers itself is held to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError
from limelight.executors import base, step
from limelight.executors.base import Peak
from limelight.graph import Graph, parse

GRAPH = """\
graph g
  input %0: f32[2]  x
  %1: f32[2] = exp(%0)
  %2: f32[2] = log(%1)
  return %2
"""
X = np.array([1.0, 2.0], dtype=np.float32)


class Counted:
    """A runnable that notes its calls."""

    source: str | None = None

    def __init__(self, graph: Graph, devices: Any, deliver: Any, calls: list[str]) -> None:
        self._graph = graph
        self._run = step.build(graph, devices, deliver=deliver)
        self._calls = calls
        self.output_devices = self._run.output_devices

    def __call__(self, *payloads: Any) -> tuple[Any, ...]:
        self._calls.append(self._graph.name)
        return self._run(*payloads)

    def memory(self) -> Peak:
        return Peak(0, None, False)


class Stub:
    name = "stub"

    def __init__(self) -> None:
        self.calls: list[str] = []

    def build(self, graph: Graph, devices: Any = (), *, deliver: Any = None) -> Counted:
        return Counted(graph, devices, deliver, self.calls)

    def code(self, graph: Graph) -> list[Any]:
        return [(node, f"stub {node.op}") for node in graph.nodes]

    def node_at(self, tb: Any) -> None:
        return None


@pytest.fixture
def stub() -> Iterator[Stub]:
    made = Stub()
    base.register(made)
    yield made
    base.unregister("stub")


def training(v: Any) -> Any:
    def helper(x: Any) -> Any:
        return ll.tanh(x * v)

    inner = ll.function(helper)

    def step_(x: Any) -> Any:
        with ll.GradientTape() as tape:
            y = ll.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + inner(s)), (ll.constant(0), x))[1]
            loss = ll.cond(ll.sum(y) > 0, lambda: ll.sum(y * y), lambda: ll.sum(y))
        v.assign_sub(0.1 * tape.gradient(loss, v))
        return loss, y

    return step_


@pytest.mark.parametrize("name", [*base.names(), "stub"])
def test_a_staged_function_runs_the_same_on_each_executor(name: str, stub: Stub) -> None:
    x = ll.constant([0.5, -0.25, 2.0])
    eager_v, v = ll.Variable(1.5), ll.Variable(1.5)
    expected = [training(eager_v)(x) for _ in range(2)]
    staged = ll.function(training(v))
    with base.chosen.override(name):
        results = [staged(x)]
    results.append(staged(x))  # what is traced stays with its executor
    for got, wanted in zip(results, expected, strict=True):
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    assert v.item() == pytest.approx(eager_v.item(), rel=1e-5)
    entry = staged.trace_cache[0]
    assert (entry.hits, staged.trace_count) == (1, 1)
    assert entry.tier == name or (name == "xla" and "while_forward" in entry.tier_reason)
    assert stub.calls.count("step_") == (2 if name == "stub" else 0)
    assert any(called != "step_" for called in stub.calls) == (name == "stub"), "branches and bodies run on it, too"


def test_a_function_runs_on_what_is_chosen() -> None:
    f = ll.function(lambda x: x + 1.0)
    f(ll.constant([1.0, 2.0]))
    assert f.trace_cache[0].tier == base.chosen.get()
    assert "add" in f.trace_cache[0].function.run.source


def test_elsewhere_it_is_asked_as_well(stub: Stub) -> None:
    ll.config.set_virtual_devices(CPU=2)
    f = ll.function(lambda x: x * 2.0, name="doubled")
    with base.chosen.override("stub"):
        y = f(ll.constant([1.0, 2.0]).to("CPU:1"))
    assert (y.device, y.numpy().tolist()) == (ll.constant(0.0).to("CPU:1").device, [2.0, 4.0])
    assert stub.calls == ["doubled"]


@pytest.mark.usefixtures("retraces_are_meant")
def test_a_deep_nest_of_calls_keeps_what_a_runnable_says_of_itself(stub: Stub) -> None:
    f: Any = ll.function(lambda x: x + 1.0)
    for _ in range(25):
        f = ll.function(lambda x, f=f: f(x))
    with base.chosen.override("stub"):
        assert f(ll.constant(1.0)).item() == 2.0
    run = f.trace_cache[0].function.run
    assert (run.source, run.memory(), len(run.output_devices)) == (None, Peak(0, None, False), 1)


def test_names_are_known_and_taken(stub: Stub) -> None:
    assert {"plan", "step", "stub"} <= set(base.names())
    assert base.get("stub") is stub
    with pytest.raises(ArgumentError, match=f"there is no executor 'plane'; there are {', '.join(base.names())}"):
        base.get("plane")
    with pytest.raises(ArgumentError, match="there is an executor 'stub' already"):
        base.register(Stub())
    base.register(stub)  # once more changes nothing
    f = ll.function(lambda x: x + 1.0)
    with (
        base.chosen.override("nowhere"),
        pytest.raises(ArgumentError, match=r"no executor 'nowhere'; there are .*test_base\.py line"),
    ):
        f(ll.constant(1.0))


@pytest.mark.parametrize("name", base.names())
def test_each_says_what_runs_each_node_and_what_it_needs(name: str) -> None:
    executor, graph = base.get(name), parse(GRAPH)
    run = executor.build(graph)
    np.testing.assert_allclose(run(X)[0], X, rtol=1e-6)
    assert [device.short for device in run.output_devices] == ["CPU:0"]
    assert [(node.op.name, "exp" in code or "log" in code) for node, code in executor.code(graph)] == [
        ("exp", True),
        ("log", True),
    ]
    assert run.source is None or "exp" in run.source or name == "xla"  # which knows that these two cancel
    peak = run.memory()
    assert (peak.nbytes, peak.exact) == ({"plan": 8, "step": 16}.get(name, peak.nbytes), True)
