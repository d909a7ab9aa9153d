"""Section 4.4, devices: behaviours 105 to 118 and 120 to 122, as far as virtual CPU devices reach."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight import dispatch, events
from limelight.devices import Device
from limelight.errors import ArgumentError, DeviceError
from limelight.registry import Op

both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
Copies = list[tuple[str, str, int, str]]


@pytest.fixture(autouse=True)
def _four_cpus(cpus: list[Device]) -> list[Device]:
    return cpus


@pytest.fixture
def copies() -> Iterator[Copies]:
    """The copies between devices, as (from, to, bytes, why)."""
    seen: Copies = []
    note = lambda e: seen.append((e.source_device, e.target_device, e.nbytes, e.cause))  # noqa: E731
    with events.listen(note, events.Copied):
        yield seen


def where(tree: Any) -> Any:
    return ll.nest.map_structure(lambda t: t.device.short, tree)


# 105 list_devices


def in_a_fresh_process(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_105_at_start_there_is_cpu_0_and_each_accelerator() -> None:
    found = in_a_fresh_process("""
        import limelight as ll
        for d in ll.list_devices():
            print(d.name, d.kind, d.index)
    """).splitlines()
    assert found[0] == "/job:localhost/task:0/device:CPU:0 CPU 0"
    assert all(line.split()[1] in ("GPU", "XLA") for line in found[1:])


def test_105_splitting_the_cpu_and_what_cannot_be_undone() -> None:
    shown = in_a_fresh_process("""
        import limelight as ll
        ll.config.set_virtual_devices(CPU=4)
        print([d.short for d in ll.list_devices() if d.kind == "CPU"])
        ll.config.set_virtual_devices(CPU=2)  # nothing is on them yet
        x = ll.constant(1.0).to("cpu:1")
        ll.config.set_virtual_devices(CPU=3)  # more may be added at any time
        print(x.device.short, [d.short for d in ll.list_devices() if d.kind == "CPU"])
        try:
            ll.config.set_virtual_devices(CPU=1)
        except ll.errors.DeviceError as error:
            print(error)
    """).splitlines()
    assert shown[0] == "['CPU:0', 'CPU:1', 'CPU:2', 'CPU:3']"
    assert shown[1] == "CPU:1 ['CPU:0', 'CPU:1', 'CPU:2']"
    assert shown[2].startswith("3 CPU devices are in use already")
    assert "restart" in shown[2]


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, None])
def test_105_a_number_of_devices_is_a_number(n: Any) -> None:
    with pytest.raises(ArgumentError, match="at least 1, got"):
        ll.config.set_virtual_devices(CPU=n)


# 106 Names


@pytest.mark.parametrize(
    "name",
    [
        "cpu:1",
        "CPU:1",
        "Cpu:1",
        "/cpu:1",
        "/device:CPU:1",
        "/job:localhost/task:0/device:CPU:1",
        " cpu:1 ",
        "/task:0/cpu:1",
    ],
)
def test_106_names_of_one_device_are_equal(name: str, cpus: list[Device]) -> None:
    x = ll.constant(1.0).to(name)
    assert x.device is cpus[1]
    assert x.device == name
    assert x.device != "cpu:0"
    with ll.device(name) as entered:
        assert entered is cpus[1]
        assert ll.constant(1.0).device is cpus[1]


def test_106_device_objects_are_names_and_an_open_index_is_0(cpus: list[Device]) -> None:
    with ll.device(cpus[2]):
        assert ll.constant(1.0).device is cpus[2]
    for name in ("cpu", "/cpu", "/job:localhost"):
        assert ll.constant(1.0).to(name).device is cpus[0]
    assert cpus[0] == "cpu"
    assert str(cpus[3]) == "/job:localhost/task:0/device:CPU:3"
    assert len({cpus[0], cpus[0], cpus[1]}) == 2


MALFORMED = ["", " ", "/", "//", "cpu:-1", "cpu:x", "cpu:0:1", "device:", "cpu 0", "/job:/cpu:0", "cpu::1"]


USES: list[Callable[..., Any]] = [
    lambda n: ll.device(n).__enter__(),
    lambda n: ll.constant(1.0).to(n),
    lambda n: ll.memory_info(n).current,
]


@pytest.mark.parametrize("name", [*MALFORMED, 3, 1.5, object()], ids=str)
@pytest.mark.parametrize("use", USES, ids=["scope", "to", "memory_info"])
def test_106_malformed_names_are_refused(name: Any, use: Callable[..., Any]) -> None:
    with pytest.raises(DeviceError, match="is not a device name") as caught:
        use(name)
    assert "devices here: CPU:0, CPU:1, CPU:2, CPU:3" in str(caught.value)
    assert "test_4_4.py line" in str(caught.value)


@pytest.mark.parametrize("use", USES, ids=["scope", "to", "memory_info"])
def test_106_unknown_devices_are_refused_and_those_that_exist_are_listed(use: Callable[..., Any]) -> None:
    for name, message in {
        "cpu:9": r"'cpu:9' does not exist here; devices here: CPU:0, .* \(ll\.config\.set_virtual_devices",
        "/job:worker/cpu:0": "'/job:worker/cpu:0' does not exist here",
        "tpu": r"'tpu' names no known kind of device \(kinds: CPU, GPU, XLA\)",
        "cpux:1": "did you mean 'CPU:1'",
    }.items():
        with pytest.raises(DeviceError, match=message):
            use(name)
    if not any(d.kind == "GPU" for d in ll.list_devices()):
        with pytest.raises(DeviceError, match="'GPU:0' does not exist here"):
            ll.constant(1.0).gpu()
    assert dispatch.active == []


def test_106_partial_names_of_nested_scopes_meet(cpus: list[Device]) -> None:
    with ll.device("cpu:2"):
        with ll.device("/job:localhost") as merged:
            assert merged is cpus[2]
            assert ll.constant(1.0).device is cpus[2]
        with ll.device("cpu") as merged:
            assert merged is cpus[2]
        with ll.device("cpu:3") as merged:
            assert merged is cpus[3]
        with ll.device("/task:0/cpu:1") as merged:
            assert merged is cpus[1]


# 107 Tensors are handles on a device


def test_107_tensors_move_by_copies(copies: Copies) -> None:
    x = ll.constant([1.0, 2.0])
    y = x.to("cpu:1")
    assert (x.device, y.device) == ("/job:localhost/task:0/device:CPU:0", "/job:localhost/task:0/device:CPU:1")
    assert not np.shares_memory(x._data, y._data)
    assert y.tolist() == [1.0, 2.0]
    assert copies == [("CPU:0", "CPU:1", 8, ".to()")]
    assert y.to("cpu:1").tolist() == [1.0, 2.0]
    assert np.shares_memory(y.to("cpu:1")._data, y._data)
    assert len(copies) == 1
    assert y.cpu().device == "cpu:0"
    assert len(copies) == 2


@both
def test_107_a_result_says_where_it_is(stage: Callable[..., Any]) -> None:
    @stage
    def f(a: Any) -> Any:
        with ll.device("cpu:1"):
            b = a + 1
        return a, b, b * 2, b.to("cpu:2"), b.cpu(), ll.reshape(b, (1,))

    assert where(f(ll.constant(1.0))) == ("CPU:0", "CPU:1", "CPU:1", "CPU:2", "CPU:0", "CPU:1")
    assert where(f(ll.constant(1.0).to("cpu:3"))) == ("CPU:3", "CPU:1", "CPU:1", "CPU:2", "CPU:0", "CPU:1")


# 108 Scopes


def test_108_scopes_nest_are_reentrant_and_none_clears(cpus: list[Device]) -> None:
    scope = ll.device("cpu:1")
    here = lambda: ll.constant(1.0).device.short  # noqa: E731
    found = []
    with scope:
        found.append(here())
        with ll.device("cpu:2"):
            found.append(here())
            with scope:
                found.append(here())
            with ll.device(None) as cleared:
                found.append(here())
                assert cleared is None
                assert dispatch.requested_device() is None
        found.append(here())
    assert found == ["CPU:1", "CPU:2", "CPU:1", "CPU:0", "CPU:1"]
    assert dispatch.requested_device() is None
    assert dispatch.active == []


def test_108_scopes_left_out_of_order_raise_and_leave_nothing() -> None:
    a, b = ll.device("cpu:1"), ll.device("cpu:2")
    a.__enter__()
    b.__enter__()
    with pytest.raises(DeviceError, match="reverse order of entering"):
        a.__exit__(None, None, None)
    assert dispatch.requested_device() == "cpu:2"
    b.__exit__(None, None, None)
    assert dispatch.requested_device() is None
    assert dispatch.active == dispatch.scopes == []
    with pytest.raises(DeviceError, match="not entered"):
        b.__exit__(None, None, None)
    assert ll.constant(1.0).device == "cpu:0"


def test_108_a_generator_that_is_closed_late_does_not_disturb_others() -> None:
    def placed() -> Iterator[str]:
        with ll.device("cpu:1"):
            yield ll.constant(1.0).device.short

    generator = placed()
    assert next(generator) == "CPU:1"
    with ll.device("cpu:2"):
        with contextlib.suppress(DeviceError):
            generator.close()
        assert ll.constant(1.0).device == "cpu:2"
    assert dispatch.active == []
    assert dispatch.requested_device() is None


def test_108_scopes_belong_to_their_thread() -> None:
    found: list[str] = []
    with ll.device("cpu:1"):
        thread = threading.Thread(target=lambda: found.append(ll.constant(1.0).device.short))
        thread.start()
        thread.join()
        found.append(ll.constant(1.0).device.short)
    assert found == ["CPU:0", "CPU:1"]


def test_108_an_exception_leaves_the_scope() -> None:
    with pytest.raises(KeyError), ll.device("cpu:1"), ll.device("cpu:2"):
        raise KeyError
    assert dispatch.requested_device() is None


# 109 Transparent copies


@both
def test_109_operands_come_to_the_op_and_originals_stay(stage: Callable[..., Any], copies: Copies) -> None:
    @stage
    def f(a: Any, b: Any) -> Any:
        with ll.device("cpu:1"):
            return a * b + a

    a, b = ll.constant([1.0, 2.0]), ll.constant([3.0, 4.0]).to("cpu:2")
    copies.clear()
    y = f(a, b)
    assert (where(a), where(b), where(y)) == ("CPU:0", "CPU:2", "CPU:1")
    assert y.tolist() == [4.0, 10.0]
    # once for each op eagerly, once for each value in a graph
    assert sorted(set(copies)) == [
        *([("CPU:0", "CPU:1", 8, "operand of add")] if stage is not ll.function else []),
        ("CPU:0", "CPU:1", 8, "operand of multiply"),
        ("CPU:2", "CPU:1", 8, "operand of multiply"),
    ]


@both
def test_109_a_tensor_that_is_used_twice_in_an_op_is_copied_once(stage: Callable[..., Any], copies: Copies) -> None:
    @stage
    def f(a: Any) -> Any:
        with ll.device("cpu:1"):
            return a * a, ll.concat([a, a, a], axis=0)

    f(ll.constant([1.0, 2.0]))
    assert len([c for c in copies if c[3] == "operand of multiply"]) == 1
    assert len([c for c in copies if c[3] == "operand of concat"]) == (0 if stage is ll.function else 1)


def test_109_copies_name_the_users_line() -> None:
    seen: list[Any] = []

    def f(a: Any) -> Any:
        with ll.device("cpu:1"):
            return a * 2  # the line

    for run in (f, ll.function(f)):
        with events.listen(seen.append, events.Copied):
            run(ll.constant([1.0]))
    assert [e.source.text for e in seen] == ["return a * 2  # the line"] * 2


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
    with pytest.raises(DeviceError, match=r"swap: .* different devices: CPU:0, CPU:1"):
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
        ("CPU:1", "CPU:0", 8, "operand of multiply"),
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


# 120 Gradients


@both
def test_120_backward_runs_where_forward_ran(stage: Callable[..., Any]) -> None:
    places: list[str] = []

    def rule(g: Any, x: Any) -> Any:
        ll.py_func(lambda u: places.append(u.device.short), [g * 1], None)
        return g * x * 2

    from limelight.eager import entry

    square = entry(Op("seen_square", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x * x, vjp={"x": rule}))

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


# 121 Memory


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
