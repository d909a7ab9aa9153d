"""Arrays to and from other libraries: asarray and its copies, DLPack both ways, devices; tensors stay as they are."""

from __future__ import annotations

from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import limelight as ll
from limelight.core.eager.numpy_interop import KNOWS_DLPACK_1
from limelight.errors import ArgumentError, DeviceError, DTypeError


def test_asarray_copies_what_can_be_written_to() -> None:
    array = np.ones(3)
    for copied in (ll.asarray(array), ll.asarray(array, copy=True), ll.asarray(array, dtype="float32")):
        array[0] = 7
        assert copied[0].item() == 1.0
        array[0] = 1
    shared = ll.asarray(array, copy=False)
    array[0] = 7
    assert shared[0].item() == 7.0


def test_asarray_without_a_copy_says_why_it_needs_one() -> None:
    for value, more in (([1, 2], {}), (np.ones(2), {"dtype": "float32"}), (ll.ones(2), {"dtype": "int32"})):
        with pytest.raises(ArgumentError, match="copy=False, but this needs a copy"):
            ll.asarray(value, copy=False, **more)
    x = ll.ones(2)
    assert ll.asarray(x) is x
    assert ll.asarray(x, copy=False, dtype="float32") is x


def test_asarray_joins_lists_of_tensors_with_gradients() -> None:
    x = ll.asarray(2.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.asarray([[x, x * x], [x, x]])
    assert y.tolist() == [[2.0, 4.0], [2.0, 2.0]]
    assert tape.gradient(y, x).item() == 7.0


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex128"])
def test_dlpack_gives_numpy_a_copy_and_lends_when_asked(dtype: str) -> None:
    x = ll.ones((2, 3), dtype=dtype)
    found = np.from_dlpack(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x.numpy())
    assert not np.shares_memory(found, x.numpy())
    if KNOWS_DLPACK_1:
        lent = np.from_dlpack(x, copy=False)
        assert np.shares_memory(lent, x.numpy())
        assert not lent.flags.writeable


def test_a_library_without_the_mark_for_read_only_gets_a_copy() -> None:
    class Old:
        """What an array's `__dlpack__` was before version 1."""

        def __dlpack__(self, **options: Any) -> Any:
            return x.__dlpack__()

        def __dlpack_device__(self) -> Any:
            return x.__dlpack_device__()

    x = ll.ones(3)
    found = np.from_dlpack(Old())
    assert not np.shares_memory(found, x.numpy())
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_from_others() -> None:
    array = np.arange(6.0).reshape(2, 3)[:, ::2]
    x = ll.from_dlpack(array)
    assert x.tolist() == [[0.0, 2.0], [3.0, 5.0]]
    assert np.shares_memory(x.numpy(), array)
    assert not np.shares_memory(ll.from_dlpack(array, copy=True).numpy(), array)
    assert ll.from_dlpack(strict.arange(3)).tolist() == [0, 1, 2]
    assert ll.from_dlpack(x) is x
    assert ll.from_dlpack(array, device="cpu").device.short == "CPU:0"


def test_staged_functions_take_what_came_by_dlpack() -> None:
    x = ll.from_dlpack(np.arange(3.0))
    F = ll.function(lambda a: a * 2)
    assert F(x).tolist() == [0.0, 2.0, 4.0]
    assert F(ll.asarray(np.ones(3))).tolist() == [2.0, 2.0, 2.0]
    assert F.trace_count == 1


MAKERS = {
    "zeros": lambda **kw: ll.zeros((2, 3), **kw),
    "ones": lambda **kw: ll.ones((2, 3), **kw),
    "empty": lambda **kw: ll.empty((2, 3), **kw),
    "full": lambda **kw: ll.full((2, 3), 7, **kw),
    "zeros_like": lambda **kw: ll.zeros_like(ll.ones((2, 3)), **kw),
    "ones_like": lambda **kw: ll.ones_like(ll.ones((2, 3)), **kw),
    "empty_like": lambda **kw: ll.empty_like(ll.ones((2, 3)), **kw),
    "full_like": lambda **kw: ll.full_like(ll.ones((2, 3)), 7, **kw),
    "arange": lambda **kw: ll.arange(1, 5, **kw),
    "linspace": lambda **kw: ll.linspace(0, 1, 3, **kw),
    "eye": lambda **kw: ll.eye(2, 3, k=1, **kw),
    "asarray": lambda **kw: ll.asarray([1, 2], **kw),
    "asarray of a tensor": lambda **kw: ll.asarray(ll.ones(2), **kw),
    "from_dlpack": lambda **kw: ll.from_dlpack(np.arange(3.0), **kw),
    "astype": lambda **kw: ll.astype(ll.ones(3), "float64", **kw),
}


@pytest.mark.parametrize("name", MAKERS)
def test_everything_can_be_made_on_a_device(name: str) -> None:
    ll.config.set_virtual_devices(CPU=max(2, len([d for d in ll.list_devices() if d.kind == "CPU"])))
    usual = MAKERS[name]()
    assert usual.device.short == "CPU:0"
    for device in ("CPU:1", ll.list_devices()[1]):
        found = MAKERS[name](device=device)
        assert found.device.short == "CPU:1"
        assert found.dtype is usual.dtype
        assert found.tolist() == usual.tolist()
        assert found.to_device("cpu:0").device.short == "CPU:0"
    with pytest.raises(DeviceError, match="does not exist here"):
        MAKERS[name](device="CPU:99")


def test_to_device_knows_no_streams() -> None:
    with pytest.raises(ArgumentError, match="stream=3: transfers are not queued on streams"):
        ll.ones(2).to_device("cpu", stream=3)


def test_tensors_are_immutable() -> None:
    x = before = ll.asarray([1.0, 2.0])
    with pytest.raises(DTypeError, match=r"tensors are immutable, and so is this f32\[2\]"):
        x[0] = 3.0
    x += 1.0
    assert (x.tolist(), before.tolist()) == ([2.0, 3.0], [1.0, 2.0])
    with pytest.raises(DTypeError, match="tensors are immutable"):
        ll.function(lambda a: a.__setitem__(0, 1.0))(before)
