"""Section 4.4, devices, as far as virtual CPU devices reach: behaviours 105 to 109."""

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
from behaving import both, where

import limelight as ll
from limelight import events
from limelight.core import device_scopes, dispatch
from limelight.core.devices import Device
from limelight.errors import ArgumentError, DeviceError

pytestmark = pytest.mark.usefixtures("cpus")
Copies = list[tuple[str, str, int, str]]


# 105 list_devices


def in_a_fresh_process(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=500,
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


@pytest.mark.parametrize("name", [*MALFORMED, 3, 1.5, ("cpu",)], ids=str)
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
                assert device_scopes.requested_device() is None
        found.append(here())
    assert found == ["CPU:1", "CPU:2", "CPU:1", "CPU:0", "CPU:1"]
    assert device_scopes.requested_device() is None
    assert dispatch.active == []


def test_108_scopes_left_out_of_order_raise_and_leave_nothing() -> None:
    a, b = ll.device("cpu:1"), ll.device("cpu:2")
    a.__enter__()
    b.__enter__()
    with pytest.raises(DeviceError, match="reverse order of entering"):
        a.__exit__(None, None, None)
    assert device_scopes.requested_device() == "cpu:2"
    b.__exit__(None, None, None)
    assert device_scopes.requested_device() is None
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
    assert device_scopes.requested_device() is None


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
    assert device_scopes.requested_device() is None


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
