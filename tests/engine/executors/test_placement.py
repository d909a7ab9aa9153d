"""Graphs over several devices: where each node runs, and what is copied for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import limelight as ll
from limelight import events
from limelight.core import devices
from limelight.core.devices import CPU0, Device
from limelight.errors import DeviceError
from limelight.executors import step
from limelight.executors.placement import place
from limelight.executors.plan import plan
from limelight.graph import Graph, parse

X = np.array([1.0, -2.0, 3.0], dtype=np.float32)


@pytest.fixture
def cpus(monkeypatch: pytest.MonkeyPatch) -> list[Device]:
    """Three virtual CPU devices, for this test only."""
    monkeypatch.setattr(devices, "_local", list(devices._local))
    monkeypatch.setattr(devices, "_in_use", False)
    devices.set_virtual_devices(CPU=3)
    return [devices.find(f"CPU:{i}") for i in range(3)]


@pytest.fixture
def copies() -> Iterator[list[tuple[str, str, int, str]]]:
    """The copies that were made, as (from, to, bytes, why)."""
    seen: list[tuple[str, str, int, str]] = []
    note = lambda e: seen.append((e.source_device, e.target_device, e.nbytes, e.cause))  # noqa: E731
    with events.listen(note, events.Copied):
        yield seen


def graph(*lines: str, inputs: str = "  input %0: f32[3]  x\n", more: str = "") -> Graph:
    return parse(f"graph g\n{inputs}" + "".join(f"  {line}\n" for line in lines) + more, runner=plan.build)


def test_on_one_device_nothing_is_changed(cpus: list[Device], copies: list[object]) -> None:
    one = graph("%1: f32[3] = tanh(%0)  @CPU:0", "return %1")
    placed, outputs, _ = place(one, [CPU0], CPU0, plan.build)
    assert placed is one
    assert outputs == (CPU0,)
    assert plan.build(one)(X)[0].tolist() == np.tanh(X).tolist()
    assert copies == []


def test_operands_come_to_the_node(cpus: list[Device], copies: list[object]) -> None:
    run = plan.build(graph("%1: f32[3] = tanh(%0)  @CPU:1  # model.py:3", "%2: f32[3] = exp(%1)", "return %1, %2, %0"))
    first, second, same = run(X)
    assert run.output_devices == (cpus[1], cpus[1], cpus[0])
    assert np.array_equal(first, np.tanh(X))
    assert np.array_equal(second, np.exp(np.tanh(X)))
    assert same is X
    assert copies == [("CPU:0", "CPU:1", 12, "operand of tanh")]


def test_the_users_line_is_told(cpus: list[Device]) -> None:
    seen: list[events.Copied] = []
    with events.listen(seen.append, events.Copied):
        plan.build(graph("%1: f32[3] = tanh(%0)  @CPU:1  # model.py:3", "return %1"))(X)
    assert (seen[0].source.label, seen[0].source.line) == ("model.py", 3)


def test_a_value_is_copied_once_to_each_device(cpus: list[Device], copies: list[object]) -> None:
    plan.build(
        graph(
            "%1: f32[3] = tanh(%0)  @CPU:1",
            "%2: f32[3] = exp(%0)  @CPU:1",
            "%3: f32[3] = sin(%0)  @CPU:2",
            "return %1, %2, %3",
        )
    )(X)
    assert [(copy[0], copy[1]) for copy in copies] == [("CPU:0", "CPU:1"), ("CPU:0", "CPU:2")]


def test_nodes_follow_their_first_operand(cpus: list[Device], copies: list[object]) -> None:
    two = "  input %0: f32[3]  x\n  input %1: f32[3]  y\n"
    one = graph("%2: f32[3] = add(%0, %1)", "return %2", inputs=two)
    run = plan.build(one, [cpus[2], cpus[0]])
    assert run(X, X)[0].tolist() == (X + X).tolist()
    assert run.output_devices == (cpus[2],)
    assert copies == [("CPU:0", "CPU:2", 12, "operand of add")]


def test_nodes_follow_their_variable(cpus: list[Device], copies: list[object]) -> None:
    both = "  input %0: f32[3]  x\n  capture %1: var f32[3]  v\n"
    one = graph(
        "!0 %2: f32[3] = assign_add(%1, %0)  @CPU:2",
        "%3: f32[3] = read_variable(%1)  after !0",
        "return %3",
        inputs=both,
    )
    with ll.device("cpu:1"):
        v = ll.Variable(X)
    run = plan.build(one, [CPU0, cpus[1]])
    copies.clear()
    assert run(X, v._data)[0].tolist() == (2 * X).tolist()
    assert run.output_devices == (cpus[1],)
    assert copies == [("CPU:0", "CPU:1", 12, "operand of assign_add")]


def test_variables_on_two_devices_do_not_meet(cpus: list[Device]) -> None:
    from limelight.core.op import Op
    from limelight.core.spec import TensorSpec, VariableSpec
    from limelight.graph import Node, Value

    swap = Op("swap", inputs="a:var b:var", infer=lambda a, b: TensorSpec(()), kernel=print, why_no_gradient="a test")
    a, b = (Value(VariableSpec((), ll.float32)) for _ in range(2))
    node = Node(swap, (a, b), (), [TensorSpec(())])
    with pytest.raises(DeviceError, match=r"swap: its variables live on different devices: .* on CPU:0, .* on CPU:1"):
        plan.build(Graph("g", [a, b], [node], []), [cpus[0], cpus[1]])


def test_to_device_is_a_copy_and_nothing_more(cpus: list[Device], copies: list[object]) -> None:
    run = plan.build(graph('%1: f32[3] = to_device(%0)  {device=device("CPU:1")}', "return %1"))
    result = run(X)[0]
    assert result is not X
    assert not np.shares_memory(result, X)
    assert run.output_devices == (cpus[1],)
    assert copies == [("CPU:0", "CPU:1", 12, ".to()")]
    copies.clear()
    there = plan.build(graph('%1: f32[3] = to_device(%0)  {device=device("CPU:1")}', "return %1"), [cpus[1]])
    assert there(X)[0] is X
    assert copies == []


def test_literals_are_wherever_they_are_wanted(cpus: list[Device], copies: list[object]) -> None:
    run = plan.build(
        graph(
            "%1: f32[3] = constant()  {value=f32[3] [1.0, 2.0, 3.0]}",
            "%2: f32[3] = add(%0, %1)  @CPU:1",
            "%3: f32[3] = add(%2, %1)",
            "return %3, %1",
        )
    )
    first, literal = run(X)
    assert first.tolist() == (X + 2 * literal).tolist()
    assert run.output_devices == (cpus[1], cpus[0])
    assert len(copies) == 1


INNER = """
graph inner
  input %0: f32[3]  x
  %1: f32[3] = tanh(%0)
  %2: f32[3] = exp(%1)  @CPU:2
  return %2, %1
"""


def test_called_functions_run_where_the_call_is(cpus: list[Device], copies: list[object]) -> None:
    one = graph("%1: f32[3], %2: f32[3] = call(%0)  {function=@inner}  @CPU:1", "return %2, %1", more=INNER)
    run = plan.build(one)
    second, first = run(X)
    assert np.array_equal(first, np.exp(np.tanh(X)))
    assert np.array_equal(second, np.tanh(X))
    assert run.output_devices == (cpus[1], cpus[2])
    assert [(copy[0], copy[1]) for copy in copies] == [("CPU:0", "CPU:1"), ("CPU:1", "CPU:2")]


def test_called_functions_may_ask_for_devices_alone(cpus: list[Device], copies: list[object]) -> None:
    one = graph("%1: f32[3], %2: f32[3] = call(%0)  {function=@inner}", "return %1", more=INNER)
    run = plan.build(one)
    run(X)
    assert run.output_devices == (cpus[2],)
    assert [(copy[0], copy[1]) for copy in copies] == [("CPU:0", "CPU:2")]


def test_results_can_be_delivered(cpus: list[Device], copies: list[object]) -> None:
    one = graph("%1: f32[3] = tanh(%0)  @CPU:1", "return %1, %0, %1")
    run = plan.build(one, deliver=cpus[2])
    results = run(X)
    assert run.output_devices == (cpus[2],) * 3
    assert results[0] is results[2]
    assert [(copy[0], copy[1], copy[3]) for copy in copies] == [
        ("CPU:0", "CPU:1", "operand of tanh"),
        ("CPU:1", "CPU:2", "result of a call"),
        ("CPU:0", "CPU:2", "result of a call"),
    ]


def test_steps_show_the_copies(cpus: list[Device], copies: list[object]) -> None:
    steps = step.run(graph("%1: f32[3] = tanh(%0)  @CPU:1", "return %1"), [X])
    names = [node.op.name for node, _ in steps]
    assert names == ["copy_between_devices", "tanh"]
    assert steps.outputs[0].tolist() == np.tanh(X).tolist()
    assert steps.output_devices == (cpus[1],)
    assert len(copies) == 1
