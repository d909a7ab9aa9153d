"""Copies between devices: each is noted with its cause, its tensor and its line, and refused where rules say so."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "behaviours"))

import accelerator

import limelight as ll
from limelight.core import device_copies, devices
from limelight.core.devices import Device
from limelight.errors import ArgumentError, DeviceCopyWarning, DeviceError


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Device:
    """Two CPU devices and an accelerator."""
    monkeypatch.setattr(devices, "_local", devices.list_devices())
    ll.config.set_virtual_devices(CPU=max(2, len([d for d in ll.list_devices() if d.kind == "CPU"])))
    device = accelerator.install(monkeypatch)
    ll.memory.reset()
    return device


def noted() -> list[tuple[str, str, int, str, str]]:
    """The copies since this was asked last: from, to, bytes, cause, tensor."""
    found = [(c.source_device, c.target_device, c.nbytes, c.cause, c.tensor) for c in ll.memory.recent_copies()]
    ll.memory.reset()
    return found


# Causes


def test_each_cause_is_told_with_the_tensor_and_the_line() -> None:
    x = ll.ones(2)
    far = x.to("gpu:0")
    assert noted() == [("CPU:0", "GPU:0", 8, ".to()", "x")]
    far + x
    assert noted() == [("CPU:0", "GPU:0", 8, "operand of add", "x")]
    ll.maximum(x, far)
    assert noted() == [("CPU:0", "GPU:0", 8, "operand of maximum", "x")]
    far.numpy()
    assert noted() == [("GPU:0", "CPU:0", 8, ".numpy()", "far")]
    far.tolist()
    assert noted() == [("GPU:0", "CPU:0", 8, ".numpy()", "far")]
    np.asarray(far)
    assert noted() == [("GPU:0", "CPU:0", 8, "conversion to a NumPy array", "far")]
    str(far)
    assert noted() == [("GPU:0", "CPU:0", 8, "print", "far")]
    float(far[0])
    assert noted()[-1] == ("GPU:0", "CPU:0", 4, "float()", "far[0]")
    with ll.device("gpu:0"):
        ll.constant([1.0, 2.0])
    assert noted() == [("CPU:0", "GPU:0", 8, "value from the host", "")]
    with ll.device("gpu:0"):
        v = ll.Variable([1.0, 2.0], name="weights")
    noted()
    repr(v)
    assert noted() == [("GPU:0", "CPU:0", 8, "print", "weights")]


def test_sizes_that_the_op_reads_on_the_host_are_told_on_whichever_device_it_runs() -> None:
    x, sizes = ll.ones((2, 3)).to("gpu:0"), ll.constant([3, 2]).to("gpu:0")
    f = ll.function(lambda x, sizes: x.reshape(sizes))
    for reshaped in (lambda: x.reshape(sizes), lambda: f(x, sizes)):
        noted()
        assert reshaped().device.short == "GPU:0"
        told = [(cause, nbytes) for *_, nbytes, cause, _ in noted()]
        assert told == [("host argument of reshape_dynamic", 8)]
        with ll.config.copies("error"), pytest.raises(DeviceError, match="host argument of reshape_dynamic"):
            reshaped()


def test_the_line_is_the_users_and_the_time_is_measured() -> None:
    far = ll.ones(2).to("gpu:0")
    far.numpy()  # the line
    copy = ll.memory.recent_copies()[-1]
    assert copy.source is not None
    assert copy.source.text == "far.numpy()  # the line"
    assert copy.seconds > 0


def test_a_staged_function_tells_captures_and_arguments_by_name() -> None:
    table = ll.ones(2)
    f = ll.function(lambda inputs: inputs * table)
    far = ll.ones(2).to("gpu:0")
    noted()
    f(far)
    assert noted() == [("CPU:0", "GPU:0", 8, "captured tensor, operand of multiply", "capture0")]
    g = ll.function(lambda inputs, near: inputs * near)
    g(far, table)
    assert noted() == [("CPU:0", "GPU:0", 8, "operand of multiply", "near")]


def test_devices_of_the_cpu_share_the_hosts_memory() -> None:
    near = ll.ones(2).to("cpu:1")
    noted()
    near.numpy(), repr(near), float(near[0])
    assert noted() == []


# The grouped answer


def test_copies_are_grouped_with_the_fix() -> None:
    x, far = ll.ones((3, 4)), ll.ones((3, 4)).to("gpu:0")
    ll.memory.reset()
    for _ in range(3):
        far * x
    for _ in range(2):
        float(ll.sum(far))
    assert "1." in str(far)
    found = ll.explain.copies()
    assert [(one.tensor, one.times, one.nbytes, one.cause) for one in found.records] == [
        ("x", 3, 144, "operand of multiply"),
        ("far", 1, 48, "print"),
        ("ll.sum(far)", 2, 8, "float()"),
    ]
    first, shown, decided = found.records
    assert str(first).startswith("3 copies of `x` from CPU:0 to GPU:0, 144 bytes")
    assert 'move it once, before the loop, with .to("GPU:0")' in str(first)
    assert "ll.where(condition, a, b)" in decided.fix
    assert shown.fix == ""


# Rules


def test_implicit_copies_can_be_errors_at_their_line() -> None:
    x, far = ll.ones(2), ll.ones(2).to("gpu:0")
    f = ll.function(lambda a: a * x)
    with ll.config.copies("error"):
        for run in (lambda: far + x, lambda: f(far), lambda: float(far[0]), lambda: np.asarray(far)):
            with pytest.raises(DeviceError, match="copies are forbidden here") as caught:
                run()
            assert "test_device_copies.py line" in str(caught.value)
        assert far.to("cpu:0").tolist() == [1.0, 1.0]
        assert "1." in repr(far)
    assert (far + x).device == "gpu:0"


def test_a_budget_is_raised_at_the_copy_that_goes_beyond_it() -> None:
    far = ll.ones(256).to("gpu:0")
    with ll.config.copies(budget="2KB") as rules:
        far.numpy()
        assert repr(rules) == "<copies: allow, 976 bytes left>"
        with pytest.raises(DeviceError, match=r"\.numpy\(\): `far`, .* of the 2,000 bytes .* here 976 are left"):
            far.numpy()
        assert len(repr(far)) > 100  # to look is allowed
    for _ in range(2):  # each block has all of it
        with ll.config.copies(budget=1024):
            far.numpy()


def test_rules_hold_in_the_whole_process_or_in_their_block() -> None:
    x, far = ll.ones(2), ll.ones(2).to("gpu:0")
    ll.config.copies("error")
    try:
        with pytest.raises(DeviceError):
            far + x
        with ll.config.copies():
            far + x
    finally:
        ll.config.copies()
    far + x


def test_implicit_copies_can_warn() -> None:
    x, far = ll.ones(2), ll.ones(2).to("gpu:0")
    with ll.config.copies("warn"), pytest.warns(DeviceCopyWarning, match="operand of add: `x`, .* is copied") as caught:
        far + x
    assert caught[0].filename == __file__
    with ll.config.copies("warn"), warnings.catch_warnings():
        warnings.simplefilter("error")
        far.numpy()


@pytest.mark.parametrize("given", ["many", "-1", -1, 1.5, None, "3 apples"])
def test_a_budget_is_a_size(given: Any) -> None:
    with pytest.raises(ArgumentError, match="is no size"):
        device_copies.size_of(given)
    assert [device_copies.size_of(one) for one in (7, "7", "2KB", "1.5MiB")] == [7, 7, 2000, 1572864]


def test_a_rule_is_one_of_three() -> None:
    with pytest.raises(ArgumentError, match='"allow", "warn" or "error", got \'never\''):
        ll.config.copies("never")


def test_a_copy_that_fails_leaves_its_bytes_in_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ll.ones(2)

    def fail(*_: Any) -> None:
        raise MemoryError

    with ll.config.copies("allow", budget=8):
        with monkeypatch.context() as patch:
            patch.setattr(device_copies.backends, "moved", fail)
            with pytest.raises(MemoryError):
                x.to("gpu:0")
        x.to("gpu:0")
        with pytest.raises(DeviceError, match="of the 8 bytes that may be copied here 0 are left"):
            x.to("gpu:0")


def test_an_index_without_arrays_is_no_operand_to_be_copied() -> None:
    far = ll.ones(2).to("gpu:0")
    value = ll.ones(()).to("gpu:0")
    noted()
    ll.index_update(far, 1, value)
    assert noted() == []
