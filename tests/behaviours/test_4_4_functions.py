"""Section 4.4, functions over several devices: behaviours 112 to 122."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both, where

import limelight as ll
from limelight import events
from limelight.core import dispatch
from limelight.core.op import Op
from limelight.errors import DeviceError

pytestmark = pytest.mark.usefixtures("cpus")
Copies = list[tuple[str, str, int, str]]


# 112 State decides


@both
def test_112_ops_on_a_variable_run_where_it_lives(stage: Callable[..., Any]) -> None:
    with ll.device("cpu:1"):
        v = ll.Variable([1.0, 2.0])
    assert v.device == "cpu:1"

    @stage
    def f(a: Any) -> Any:
        with ll.device("cpu:2"):
            return v.assign_add(a), v.read_value()

    assert where(f(ll.constant([1.0, 1.0]))) == ("CPU:1", "CPU:1")
    assert v.numpy().tolist() == [2.0, 3.0]
    assert v.device == "cpu:1"


def test_112_variables_on_two_devices_do_not_meet_in_one_op() -> None:
    swap = Op(
        "swap",
        inputs="a:var b:var",
        infer=lambda a, b: a.value,
        kernel=lambda xp, a, b: a.array,
        why_no_gradient="a test",
    )
    a = ll.Variable(1.0, name="near")
    with ll.device("cpu:1"):
        b = ll.Variable(2.0, name="far")
    with pytest.raises(DeviceError, match=r"swap: .* different devices: near on CPU:0, far on CPU:1"):
        dispatch.apply(swap, (a, b))
    with pytest.raises(DeviceError, match=r"swap: .* different devices: near on CPU:0, far on CPU:1"):
        ll.function(lambda: dispatch.apply(swap, (a, b)))()
    assert (a + b).item() == 3.0  # their values may


# 113, 114 Functions under a scope


def test_113_functions_follow_the_device_of_the_call_and_explicit_scopes_override() -> None:
    @ll.function
    def f(a: Any) -> Any:
        free = a * 2
        with ll.device("cpu:3"):
            bound = a * 3
        with ll.device(None):
            cleared = a.to("cpu:0") * 4
        return free, bound, cleared

    x = ll.constant(1.0)
    for name in (None, "cpu:0", "cpu:1", "cpu:2", None, "cpu:1"):
        with ll.device(name):
            y = f(x)
        short = "CPU:0" if name is None else name.upper()
        assert where(y)[:2] == (short, "CPU:3")
        assert [t.item() for t in y] == [2.0, 3.0, 4.0]


def test_114_the_requested_device_is_part_of_the_key() -> None:
    f = ll.function(lambda a: a * 2)
    x = ll.constant(1.0)
    for name in (None, "cpu:1", None, "cpu:2", "cpu:1", "CPU:1", "/device:cpu:2"):
        with ll.device(name):
            f(x)
    assert [entry.device for entry in f.trace_cache] == [None, "CPU:1", "CPU:2"]
    assert [entry.hits for entry in f.trace_cache] == [1, 2, 1]
    assert f.trace_count == 3


# 115 Several devices in one function


def test_115_outputs_stay_with_their_producers_through_nested_calls() -> None:
    @ll.function
    def inner(a: Any, b: Any) -> Any:
        with ll.device("cpu:2"):
            return a + 1, b

    @ll.function
    def outer(a: Any, b: Any) -> Any:
        made, passed = inner(a, b)
        return made, passed, passed * 2, a

    near, far = ll.constant(1.0), ll.constant(1.0).to("cpu:3")
    for _ in range(2):
        assert where(outer(near, far)) == ("CPU:2", "CPU:3", "CPU:3", "CPU:0")
        assert where(outer(far, near)) == ("CPU:2", "CPU:0", "CPU:0", "CPU:3")
        assert where(outer(near, near)) == ("CPU:2", "CPU:0", "CPU:0", "CPU:0")
    assert outer.trace_count == 3


def test_115_captured_tensors_are_where_they_are(copies: Copies) -> None:
    far = ll.constant([1.0, 2.0]).to("cpu:1")
    copies.clear()
    f = ll.function(lambda a: (far * a, a * far, far))
    assert where(f(ll.constant([1.0, 1.0]))) == ("CPU:1", "CPU:0", "CPU:1")
    assert sorted(copies) == [
        ("CPU:0", "CPU:1", 8, "operand of multiply"),
        ("CPU:1", "CPU:0", 8, "captured tensor, operand of multiply"),
    ]


# 116 Variables made under a scope


def test_116_variables_of_a_first_call_land_on_the_device_of_the_call() -> None:
    made: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        if not made:
            made.append(ll.Variable(lambda: ll.ones((2,)) * 2))
            with ll.device("cpu:2"):
                made.append(ll.Variable(a * 3.0))
        return made[0] * a, made[1] * a

    with ll.device("cpu:1"):
        y = f(ll.constant([1.0, 2.0]))
    assert [v.device.short for v in made] == ["CPU:1", "CPU:2"]
    assert [v.numpy().tolist() for v in made] == [[2.0, 2.0], [3.0, 6.0]]
    assert [t.tolist() for t in y] == [[2.0, 4.0], [3.0, 12.0]]


# 118 Bodies


def test_118_branches_and_bodies_inherit_the_device() -> None:
    seen: list[str] = []

    def note(t: Any) -> None:
        ll.py_func(lambda u: seen.append(u.device.short), [t + 0], None)

    @ll.function
    def f(a: Any) -> Any:
        def branch() -> Any:
            note(a)
            return a * 2

        def body(i: Any, b: Any) -> Any:
            note(b)
            return i + 1, b + 1

        with ll.device("cpu:1"):
            b = ll.cond(a > 0, branch, lambda: a)
            return ll.while_loop(lambda i, b: i < 2, body, (0, b))[1]

    y = f(ll.constant(1.0))
    assert y.item() == 4.0
    assert y.device == "cpu:1"
    assert seen == ["CPU:1"] * 3


def test_118_the_branches_of_a_switch_and_the_body_of_a_scan_do_too() -> None:
    seen: list[str] = []

    def note(t: Any) -> Any:
        ll.py_func(lambda u: seen.append(u.device.short), [t + 0], None)
        return t

    @ll.function
    def f(k: Any, a: Any) -> Any:
        with ll.device("cpu:1"):
            b = ll.switch(k, [lambda: a, lambda: note(a * 2)])
            return ll.scan(lambda c, r: (note(c + r), note(c)), b, length=None, xs=ll.ones(2))

    a = ll.constant(1.0)
    with ll.GradientTape() as tape:
        tape.watch(a)
        last, all_ = f(ll.constant(1), a)
        y = last + ll.sum(all_)
    assert (last.item(), all_.tolist()) == (4.0, [2.0, 3.0])
    assert last.device == all_.device == "cpu:1"
    assert set(seen) == {"CPU:1"}
    gradient = tape.gradient(y, a)
    assert (gradient.item(), gradient.device.short) == (6.0, "CPU:0")


# 120 Gradients


@both
def test_120_backward_runs_where_forward_ran(stage: Callable[..., Any]) -> None:
    places: list[str] = []

    def rule(g: Any, x: Any) -> Any:
        ll.py_func(lambda u: places.append(u.device.short), [g * 1], None)
        return g * x * 2

    from limelight.core.eager import entry_point

    square = entry_point(Op("seen_square", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x * x, vjp={"x": rule}))

    @stage
    def f(a: Any) -> Any:
        with ll.device("cpu:2"):
            return square(a)

    x = ll.constant([1.0, 3.0])
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    g = tape.gradient(y, x)
    assert places == ["CPU:2"]
    assert g.tolist() == [2.0, 6.0]
    assert g.device == "cpu:0"  # where its source is


@both
def test_120_a_pair_built_under_one_scope_serves_another(stage: Callable[..., Any]) -> None:
    inner = ll.function(lambda a: a * a)
    f = stage(lambda a: inner(a) * 1)
    x = ll.constant(3.0)

    def slope() -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return y, tape.gradient(y, x)

    for name in ("cpu:1", None, "cpu:2", "cpu:1"):
        with ll.device(name):
            y, g = slope()
        assert y.device.short == ("CPU:0" if name is None else name.upper())
        assert g.item() == 6.0
        assert g.device == "cpu:0"


@both
@pytest.mark.parametrize("persistent", [False, True])
def test_120_each_op_of_a_gradient_runs_where_its_forward_op_did(stage: Callable[..., Any], persistent: bool) -> None:
    """Also where that took an operand from another device, of which the tape has saved the original."""
    a, b = ll.Variable(np.eye(3, dtype="float32")), ll.Variable(np.ones((3, 2), "float32"))

    @stage
    def step(x: Any) -> Any:
        with ll.GradientTape(persistent=persistent) as tape:
            with ll.device("cpu:1"):
                h = ll.tanh(x @ a.read_value())
            with ll.device("cpu:2"):
                y = ll.sum(ll.sin(h @ b.read_value()))
        return tape.gradient(y, [a, b])

    x = ll.ones((4, 3))
    copies: list[Any] = []
    with ll.events.listen(copies.append, ll.events.Copied), ll.explain.Placements() as log:
        gradients = step(x)
    assert [g.device.short for g in gradients] == ["CPU:0", "CPU:0"]  # where the variables are
    placed = ll.explain.placements(step) if hasattr(step, "trace_cache") else log
    text = "\n".join(map(str, placed.records))
    assert "cos on CPU:2" in text
    assert {line.split(":")[1][0] for line in text.splitlines() if line.startswith("matmul on")} == {"1", "2"}
    assert "multiply on CPU:0" not in text
    moved = {(copy.source_device[-5:], copy.target_device[-5:]) for copy in copies if copy.what == "f32[4,3]"}
    assert moved == {("CPU:0", "CPU:1"), ("CPU:1", "CPU:2"), ("CPU:2", "CPU:1")}


# 121 Memory


@pytest.mark.usefixtures("no_garbage")
@pytest.mark.slow  # looks through all objects of the process
def test_121_bytes_fall_when_tensors_die_and_views_count_once() -> None:
    before = ll.memory_info("cpu:1").current
    x = ll.zeros((1000,)).to("cpu:1")
    assert ll.memory_info("cpu:1").current - before == 4000
    view = x.reshape((10, 100))
    part = x[::2]
    assert ll.memory_info("cpu:1").current - before == 4000
    assert ll.memory_info("cpu:1").tensors >= 3
    del x
    assert ll.memory_info("cpu:1").current - before == 4000
    del view, part
    assert ll.memory_info("cpu:1").current == before
    with ll.device("cpu:1"):
        v = ll.Variable(np.zeros(500, "float32"))
    assert ll.memory_info("cpu:1").current - before == 2000
    del v
    assert ll.memory_info("cpu:1").current == before


@pytest.mark.usefixtures("no_garbage")
def test_121_the_peak_is_kept_until_it_is_reset() -> None:
    x = ll.zeros((1000,)).to("cpu:3")
    high = ll.memory_info("cpu:3").current
    del x
    assert ll.memory_info("cpu:3").peak >= high
    assert ll.memory_info("cpu:3", reset_peak=True).peak < high


# 122 What was placed where


@both
def test_122_the_log_of_placements_is_what_happened(stage: Callable[..., Any], copies: Copies) -> None:
    @stage
    def f(a: Any) -> Any:
        with ll.device("cpu:1"):
            b = ll.exp(a)
        with ll.device("cpu:2"):
            return ll.tanh(b)

    ran: list[Any] = []
    with events.listen(ran.append, events.OpRan):
        y = f(ll.constant([1.0, 2.0]))
    assert y.device == "cpu:2"
    assert copies == [("CPU:0", "CPU:1", 8, "operand of exp"), ("CPU:1", "CPU:2", 8, "operand of tanh")]
    if stage is ll.function:
        assert [(n.op.name, n.device.short) for n in f.trace_cache[0].graph.nodes] == [
            ("exp", "CPU:1"),
            ("tanh", "CPU:2"),
        ]
    else:
        assert [(e.op, e.device) for e in ran] == [("exp", "CPU:1"), ("tanh", "CPU:2")]
