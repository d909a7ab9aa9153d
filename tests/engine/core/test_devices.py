"""Device names and scopes, as parts; tests/behaviours/test_4_4.py has what they mean for tensors and functions."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight.core import device_scopes, devices, dispatch
from limelight.core.devices import CPU0, Device, DeviceName, find, parse
from limelight.errors import DeviceError


@pytest.fixture
def cpus(monkeypatch: pytest.MonkeyPatch) -> list[Device]:
    """Three logical CPU devices, for this test only."""
    monkeypatch.setattr(devices, "_local", list(devices._local))
    monkeypatch.setattr(devices, "_in_use", False)
    ll.config.set_virtual_devices(CPU=3)
    return [d for d in ll.list_devices() if d.kind == "CPU"]


# --- Names


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("cpu", (None, None, "CPU", None)),
        ("GPU:1", (None, None, "GPU", 1)),
        ("/gpu:0", (None, None, "GPU", 0)),
        ("/device:XLA:0", (None, None, "XLA", 0)),
        ("/job:worker", ("worker", None, None, None)),
        ("/job:worker/task:3", ("worker", 3, None, None)),
        ("/task:3/cpu", (None, 3, "CPU", None)),
        ("/job:localhost/task:0/device:CPU:12", ("localhost", 0, "CPU", 12)),
    ],
)
def test_names_have_parts(name: str, parts: tuple[Any, ...]) -> None:
    assert parse(name) == DeviceName(*parts)
    assert parse(str(parse(name))) == parse(name)


jobs = st.none() | st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
numbers = st.none() | st.integers(0, 10**6)
kinds = st.none() | st.sampled_from(["CPU", "GPU", "XLA"])


@pytest.mark.slow  # draws names
@given(jobs, numbers, kinds, numbers)
def test_every_name_can_be_written_and_read(
    job: str | None, task: int | None, kind: str | None, index: int | None
) -> None:
    name = DeviceName(job, task, kind, index if kind else None)
    if name == DeviceName():
        return
    assert parse(str(name)) == name
    assert parse(str(name).lower() if job is None else str(name)) == name


@given(st.text(alphabet="cpugxlCPUdevice:/job task0123456789-._ ", max_size=24))
def test_any_text_is_a_name_or_is_refused_as_one(text: str) -> None:
    try:
        name = parse(text)
    except DeviceError as error:
        message = str(error)
    else:
        assert name != DeviceName()
        return
    assert repr(text) in message
    assert "devices here: CPU:0" in message


names = st.builds(DeviceName, jobs, numbers, kinds, numbers)


@given(names, names)
def test_merging_fills_what_is_open(inner: DeviceName, outer: DeviceName) -> None:
    merged = inner.merged(outer)
    assert merged.job == (inner.job or outer.job)
    assert merged.kind == (inner.kind or outer.kind)
    assert merged.task == (outer.task if inner.task is None else inner.task)
    if inner.index is not None:
        assert merged.index == inner.index
    elif inner.kind in (None, outer.kind):
        assert merged.index == outer.index
    else:
        assert merged.index is None  # the number of another kind of device means nothing here
    assert inner.merged(inner) == inner


# --- Devices


def test_devices_are_found_by_name_and_are_one_object_each(cpus: list[Device]) -> None:
    assert find("cpu") is find("CPU:0") is find(CPU0) is cpus[0] is CPU0
    assert find("/device:cpu:2") is cpus[2]
    assert [find(d.name) for d in ll.list_devices()] == ll.list_devices()
    assert find(DeviceName(kind="CPU", index=1)) is cpus[1]


def test_devices_equal_their_names_only(cpus: list[Device]) -> None:
    for device, name in itertools.product(
        cpus, ["cpu:0", "CPU:1", "/device:CPU:2", "/job:localhost/task:0/device:CPU:1"]
    ):
        assert (device == name) == (find(name) is device)
    assert CPU0 != "no device"
    assert CPU0 != 0
    assert len(set(cpus)) == 3


def test_devices_that_are_added_leave_the_others_alone(cpus: list[Device]) -> None:
    x = ll.constant(1.0).to("cpu:2")
    ll.config.set_virtual_devices(CPU=5)
    assert find("cpu:2") is cpus[2]
    assert (x + 1).device is cpus[2]
    with pytest.raises(DeviceError, match="5 CPU devices are in use already"):
        ll.config.set_virtual_devices(CPU=4)
    assert len(ll.list_devices()) >= 5


# --- Scopes


@given(st.lists(st.sampled_from(["cpu:0", "cpu", "/job:localhost", None]), max_size=5), st.permutations(range(5)))
def test_scopes_leave_nothing_behind_in_whatever_order_they_are_left(names: list[str | None], order: list[int]) -> None:
    scopes = [ll.device(name) for name in names]
    for scope in scopes:
        scope.__enter__()
    left: list[int] = []
    for i in [i for i in order if i < len(scopes)]:
        in_order = i == max(set(range(len(scopes))) - set(left))
        left.append(i)
        if in_order:
            scopes[i].__exit__(None, None, None)
        else:
            with pytest.raises(DeviceError, match="reverse order"):
                scopes[i].__exit__(None, None, None)
    assert dispatch.active == dispatch.scopes == []
    assert device_scopes.requested_device() is None


def test_one_scope_object_may_be_entered_on_several_threads(cpus: list[Device]) -> None:
    scope, found, meet = ll.device("cpu:1"), [], threading.Barrier(3, timeout=300)

    def work() -> None:
        with scope:
            meet.wait()
            found.append(ll.constant(1.0).device.short)
            meet.wait()
        found.append(ll.constant(1.0).device.short)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    meet.wait()
    assert ll.constant(1.0).device is CPU0
    meet.wait()
    for thread in threads:
        thread.join(300)
    assert sorted(found) == ["CPU:0", "CPU:0", "CPU:1", "CPU:1"]
    assert dispatch.active == []
