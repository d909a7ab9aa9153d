"""NVIDIA GPUs: CuPy. Needs the `cuda` extra.

Work is launched on CuPy's current stream, which is the null stream unless a program enters another one
(`with cupy.cuda.Stream():`). A thread that changes streams has what it launches next wait, on the device, for what it
launched before, so its ops run in their order whatever it enters. Between threads with streams of their own a program
has to wait itself, as with CuPy alone.

Copies from the host go by CuPy's pool of pinned memory, and nobody waits for them. Copies to the host wait.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import cupy as xp
import numpy as np

from limelight.core import backends


class _LastStreams(threading.local):
    """The stream on which this thread launched last, by device."""

    def __init__(self) -> None:
        self.by_device: dict[int, Any] = {}


_last = _LastStreams()


class Gpu:
    """One GPU, by its number: see `Backend`."""

    xp = xp

    def __init__(self, index: int) -> None:
        self._index = index
        self._device = xp.cuda.Device(index)

    def _stream(self) -> Any:
        """The current stream, which knows of what this thread has launched so far. To be asked for on the device."""
        stream = xp.cuda.get_current_stream()
        last = _last.by_device.get(self._index)
        if last is not stream:
            last = xp.cuda.Stream.null if last is None else last
            if last != stream:
                stream.wait_event(last.record())
            _last.by_device[self._index] = stream
        return stream

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        """The array on this device, on its way: nobody waits. Raises DTypeError for a dtype that CuPy lacks."""
        with self._device:
            self._stream()
            try:
                return xp.asarray(array)
            except ValueError as error:
                if "dtype" not in str(error):
                    raise
                raise backends.lacking(array.dtype) from error

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        with self._device:
            self._stream()
            host_array: np.ndarray[Any, Any] = array.get()
            return host_array

    def copy(self, array: Any) -> Any:
        with self._device:
            self._stream()
            return xp.array(array, copy=True)

    def from_peer(self, array: Any, peer: Gpu) -> Any:
        """A copy of an array on another GPU; the streams of both wait for each other, and the host for none."""
        with peer._device:
            theirs = peer._stream()
            made = theirs.record()
        with self._device:
            ours = self._stream()
            ours.wait_event(made)
            copied = xp.array(array, copy=True)
            done = ours.record()
        with peer._device:
            theirs.wait_event(done)  # or its memory might be used again before it has been read
        return copied

    def from_dlpack(self, array: Any) -> Any:
        """An array of another library, in the memory that it has on this device."""
        with self._device:
            self._stream()
            return xp.from_dlpack(array)

    def prepared(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel with this device as the current one."""
        device, stream = self._device, self._stream

        @functools.wraps(kernel, updated=())
        def run(*operands: Any) -> Any:
            with device:
                stream()
                return kernel(*operands)

        return run

    @staticmethod
    def raising() -> AbstractContextManager[Any]:
        """A block in which solvers raise NumPy's LinAlgError; otherwise they give what they have, and say nothing."""
        import cupyx

        return cupyx.errstate(linalg="raise")  # type: ignore[no-any-return]  # CuPy has no types

    def pool_bytes(self) -> tuple[int, int]:
        """The bytes that CuPy's pool has given out on this device, to whomever, and those that it holds in all."""
        pool = xp.get_default_memory_pool()
        with self._device:
            return int(pool.used_bytes()), int(pool.total_bytes())

    def total_memory(self, index: int) -> int:
        """The bytes that this device, the one of that index, has in all."""
        return int(xp.cuda.Device(index).mem_info[1])


@functools.cache
def on_device(index: int) -> Gpu:
    """The backend of one GPU."""
    return Gpu(index)


def device_count() -> int:
    """The GPUs that CUDA reports; 0 where there is no driver."""
    try:
        return int(xp.cuda.runtime.getDeviceCount())
    except xp.cuda.runtime.CUDARuntimeError:
        return 0
