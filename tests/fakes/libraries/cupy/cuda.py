"""What `cupy.cuda` has, of the pretended device."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from . import _hardware as hardware

Event, Stream, MemoryPool = hardware.Event, hardware.Stream, hardware.MemoryPool
get_current_stream = hardware.get_current_stream

Stream.null = hardware._null[0]


class CUDARuntimeError(RuntimeError):
    """What a driver complains of."""


class Device:
    """A device by its number; its block runs there."""

    def __init__(self, device=None):
        self.id = hardware.local.device if device is None else int(device)
        self._outer = []

    def use(self):
        hardware.local.device = self.id

    def __enter__(self):
        self._outer.append(hardware.local.device)
        self.use()
        return self

    def __exit__(self, *exc):
        hardware.local.device = self._outer.pop()

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self):
        return hash(self.id)

    def synchronize(self):
        hardware.counts["waits"] += 1
        for stream in list(hardware._streams.values()):
            if stream.device_id == self.id:
                hardware.learn(stream.clock)

    @property
    def mem_info(self):
        total = 1 << 34
        with self:
            return total - hardware.pool.total_bytes(), total


def _device_count():
    return hardware.DEVICES


runtime = SimpleNamespace(
    getDeviceCount=_device_count,
    CUDARuntimeError=CUDARuntimeError,
    memGetInfo=lambda: Device().mem_info,
    getDeviceProperties=lambda device: {"name": b"Pretended GPU", "totalGlobalMem": 1 << 34},
    streamLegacy=1,
)


def alloc_pinned_memory(nbytes):
    return np.zeros(nbytes, np.uint8).view(hardware.PinnedArray)
