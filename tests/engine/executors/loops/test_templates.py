"""Nodes of one pattern have the instructions of the first one, and no others do."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors import base
from limelight.executors.loops import lowering, stretch, templates
from limelight.executors.loops.instructions import Instruction, Instructions, NotLowered, new_array
from limelight.executors.loops.layout import Buffer
from limelight.executors.loops.traced_array import TracedArray

X = np.random.default_rng(0).standard_normal((6, 5)).astype("f4")


def by(executor: str, function: Any) -> bytes:
    with base.chosen.override(executor), ll.config.optimiser(0):
        return b"".join(x.numpy().tobytes() for x in ll.function(function)(ll.constant(X)))


def layouts(x: Any) -> Any:
    """Sums, products and copies of arrays that differ in their layout alone, each twice."""
    y = ll.tanh(x)
    square = x @ ll.transpose(y)
    parts = [x, ll.transpose(y), y[1:], y[:, 1:4], square, ll.transpose(square), ll.broadcast_to(y[:1], (6, 5))]
    return [f(part) for part in parts for f in (lambda z: ll.sum(z, axis=0), lambda z: z * 2.0, ll.exp) for _ in "ab"]


def numbers(x: Any) -> Any:
    """Literals that are equal, or nearly, and do different things."""
    y = ll.abs(x)
    powers = [y**p for p in (0.5, 2.0, 0.5, -1.5)]
    zeros = [ll.maximum(x * 0.0, zero) for zero in (0.0, -0.0, 0.0)]
    filled = [ll.full((2,), value) * x[0, 0] for value in (0.0, -0.0)]
    return [*powers, *zeros, *filled, x * x, y * y, x * y, y * x]


def parameters(x: Any) -> Any:
    return [ll.sum(x, axis=a, keepdims=k) for a in (0, 1, 0) for k in (True, False)] + [x[:1] + x, x[1:2] + x]


@pytest.mark.parametrize("function", [layouts, numbers, parameters])
def test_patterns_are_told_apart(function: Any) -> None:
    assert by("loops", function) == by("plan", function)


def test_a_second_node_of_a_pattern_is_not_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[str] = []
    original = stretch.lowered

    def noted(node: Any, *args: Any) -> Any:
        traced.append(node.op.name)
        return original(node, *args)

    monkeypatch.setattr(stretch, "lowered", noted)
    templates.forget()
    by("loops", lambda x: [ll.sin(ll.sin(ll.sin(ll.sin(x))))])
    assert traced == ["sin"]


def test_what_no_table_can_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that tables do not know is traced for the first node of its pattern only."""
    traced: list[str] = []
    original = lowering.called

    def noted(call: Any, node: Any, *args: Any) -> Any:
        traced.append(node.op.name)
        return original(call, node, *args)

    monkeypatch.setattr(lowering, "called", noted)
    templates.forget()
    function = lambda x: [ll.sort(ll.sort(x) * 2.0) + 1.0, ll.sort(x[:3])]  # noqa: E731
    with base.chosen.override("loops"), ll.config.optimiser(0):
        f = ll.function(function)
        f(ll.constant(X))
    assert traced.count("sort") == 2, "one for each layout"
    lines = [line for node, line in base.get("loops").code(f.trace_cache[0].optimised) if node.op.name == "sort"]
    assert len(lines) == 3
    assert all(line.endswith("# plan: tables do not know NumPy's `sort`") for line in lines)


def test_a_kernel_that_asks_for_a_number_is_known_to_have_asked() -> None:
    """It may get that of a literal where it does not get that of a result, which lies the same: no refusal is kept."""
    to = Instructions()
    with pytest.raises(NotLowered, match="looks at the numbers"):
        TracedArray(new_array((), np.dtype("f4")), to).item()
    assert to.looked_at == 1
    assert TracedArray(to.constant(np.float32(2)), to).item() == 2
    assert to.looked_at == 2


def test_later_graphs_have_the_patterns_of_earlier_ones() -> None:
    """A graph of known patterns traces no kernel."""
    templates.forget()
    function = lambda x: [ll.cos(x) * ll.sum(x, axis=0), x[1:], x[:1] + 1.0]  # noqa: E731
    wanted = by("loops", function)
    kept = dict(templates._known)
    assert kept
    assert by("loops", function) == wanted == by("plan", function)
    assert templates._known == kept


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # each round stages its functions anew
def test_templates_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST_KEPT", 4)
    templates.forget()
    for n in range(1, 7):
        assert by("loops", lambda x, n=n: [ll.sin(x[:n]) * 2.0]) == by("plan", lambda x, n=n: [ll.sin(x[:n]) * 2.0])
        assert len(templates._known) <= 4


def test_a_runnable_keeps_no_instructions() -> None:
    """What a table was made from takes more memory than the table."""

    def instructions() -> int:
        gc.collect()
        return sum(type(x) is Instruction for x in gc.get_objects())

    before = instructions()
    with base.chosen.override("loops"):
        f = ll.function(lambda x: ll.sin(ll.cos(ll.tanh(x)) * x))
        f(ll.constant(X))
    assert f.trace_cache[0].tier == "loops"
    assert instructions() <= before


def test_templates_keep_no_large_constants() -> None:
    def large() -> int:
        gc.collect()
        return sum(type(x) is Buffer and x.array is not None and x.nbytes > 1 << 14 for x in gc.get_objects())

    templates.forget()
    before = large()
    assert by("loops", lambda x: [ll.eye(129) * x[0, 0]]) == by("plan", lambda x: [ll.eye(129) * x[0, 0]])
    assert large() <= before
