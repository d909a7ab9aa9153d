"""The device XLA:0, whose arrays are JAX's: dtypes, copies and errors are those of any device."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import limelight as ll
from limelight.errors import OutOfBoundsError
from limelight.staging.function import Function
from limelight_widgets.folds.devices import DevicesFold

HAS_JAX = importlib.util.find_spec("jax") is not None
pytestmark = pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed: pip install 'limelight[xla]'")
X = np.linspace(-1.0, 1.3, 15).reshape(5, 3)


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128", "float32", "bfloat16", "bool"])
def test_dtypes_stay_as_they_are(dtype):
    x = ll.astype(ll.constant(X), dtype)
    there = x.to("XLA:0")
    assert (there.device, there.dtype) == ("XLA:0", x.dtype)
    assert there.numpy().tobytes() == x.numpy().tobytes()
    doubled = ll.where(there, there, there) if dtype == "bool" else there + there
    assert (doubled.device, doubled.dtype, doubled._data.dtype) == ("XLA:0", x.dtype, x.dtype)


def test_results_stay_and_copies_are_noted_with_their_cause_and_line():
    ll.memory.reset()
    there = ll.constant(X, dtype="float32").to("XLA:0")
    y = ll.tanh(there) @ ll.ones((3, 2)).to("XLA:0")
    assert y.device == "XLA:0"
    mixed = there + ll.ones((5, 3))
    assert mixed.device == "XLA:0"
    copies = ll.memory.recent_copies()
    assert [(c.source_device, c.target_device, c.nbytes) for c in copies[:1]] == [("CPU:0", "XLA:0", 60)]
    assert [c.cause for c in copies] == [".to()", ".to()", "operand of add"]
    assert all(c.source is not None and c.source.file == __file__ for c in copies)


def test_what_lives_there_is_counted_and_shown():
    kept = ll.constant(X).to("XLA:0")
    info = ll.memory_info("XLA:0")
    assert info.current >= kept.nbytes
    assert "XLA:0" in [device.short for device in ll.list_devices()]
    fold = DevicesFold([(d.short, d.name, info.current, info.peak) for d in ll.list_devices()])
    assert "XLA:0" in [device["name"] for device in fold.state()["devices"]]


def test_an_index_that_is_not_there_is_an_error_as_on_the_cpu():
    there = ll.constant(X).to("XLA:0")
    for run in (lambda: there[ll.constant([1, 7]).to("XLA:0")], lambda: ll.take(there, ll.constant(9).to("XLA:0"))):
        with pytest.raises(OutOfBoundsError, match=r"index [79] is out of bounds"):
            run()


def test_a_function_is_compiled_whole_and_its_state_stays_there():
    with ll.device("XLA:0"):
        v = ll.Variable([1.0, 2.0])
    f = ll.function(lambda x: (v.assign_add(ll.tanh(x)), x * v)[1])
    x = ll.constant([0.5, 0.25]).to("XLA:0")
    first, second = f(x), f(x)
    assert (first.device, second.device, v.device, type(v._data.array)) == ("XLA:0",) * 3 + (type(x._data),)
    expected = np.array([1.0, 2.0]) + 2 * np.tanh([0.5, 0.25])
    np.testing.assert_allclose(v.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(second.numpy(), expected * [0.5, 0.25], rtol=1e-6)
    (entry,) = f.trace_cache
    assert (entry.hits, type(entry._run_elsewhere).__name__) == (1, "CompiledGraph")


def test_a_trace_serves_its_own_device_alone():
    f: Function = ll.function(lambda x: x * 2.0)
    here, there = ll.constant([1.0]), ll.constant([3.0]).to("XLA:0")
    for _ in range(3):
        assert f(here).device == "CPU:0"
        assert f(there).device == "XLA:0"
    assert f.trace_count == 2


def test_jax_keeps_its_own_setting_of_64_bits(tmp_path: Path):
    code = (
        "import limelight as ll, os, sys\n"
        "assert 'jax' not in sys.modules\n"
        "x = ll.constant([1, 2], dtype='int64').to('XLA:0') + 1\n"
        "f = ll.function(lambda x: x * 2, jit_compile=True)\n"
        "f(ll.constant([1, 2], dtype='int64'))\n"
        "import jax.numpy as jnp\n"
        "print(x.dtype, jnp.arange(3).dtype, os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["int64", "int32", "false"], done.stderr  # the last: a GPU's memory is not taken


def aligned(n):
    """Zeros that begin where XLA wants them to."""
    room = np.zeros(n + 16, "float32")
    start = -room.ctypes.data % 64 // 4
    return room[start : start + n]


def test_aligned_memory_is_shared_where_somebody_asks():
    array = aligned(16)
    there = ll.from_dlpack(array, device="XLA:0")
    assert (there.device, there._data.unsafe_buffer_pointer()) == ("XLA:0", array.ctypes.data)
    copied = ll.from_dlpack(array, device="XLA:0", copy=True)
    array[0] = 3.0
    assert (copied.device, float(copied[0]), np.asarray(there._data)[0]) == ("XLA:0", 0.0, 3.0)
    locked = ll.zeros(16)
    locked.numpy()
    assert ll.from_dlpack(locked, device="XLA:0").tolist() == [0.0] * 16
    with pytest.raises(BufferError):
        ll.from_dlpack(locked, device="XLA:0", copy=False)
    back = ll.from_dlpack(there)
    assert (back.device, ll.from_dlpack(there, device="CPU:0").device) == ("XLA:0", "CPU:0")
    assert np.from_dlpack(there)[0] == 3.0
