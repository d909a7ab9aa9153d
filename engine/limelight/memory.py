"""How many bytes of tensors live on a device.

Nothing is counted while ops run: that would cost every op. A question walks the tensors that exist, so the answer is
exact, views are counted once, and only asking costs. (An open devices view listens to the events `Allocated` and
`Freed`, which are sent only then.)
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from limelight import events
from limelight.core import devices, live_buffers
from limelight.core.device_copies import recent_copies
from limelight.core.devices import Device
from limelight.core.tensor import Tensor
from limelight.core.variable import Storage

__all__ = ["MemoryInfo", "memory_info", "recent_copies"]


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """Bytes of tensors and variables on one device: `current`, and `peak`, the most that any question has found."""

    device: str
    current: int
    peak: int
    tensors: int


_peaks: dict[str, int] = {}


def memory_info(device: str | Device = "CPU:0", reset_peak: bool = False) -> MemoryInfo:
    """The live bytes on `device`, views of one buffer counted once.

    `peak` is the highest `current` that any call so far has seen on this device; `reset_peak=True` starts it anew.
    Raises DeviceError for an unknown device.

    >>> import limelight as ll
    >>> x = ll.zeros((256, 1024))
    >>> ll.memory_info("cpu:0").current >= x.nbytes
    True
    """
    place = devices.find(device)
    buffers: dict[int, int] = {}
    count = 0
    for _, data in _payloads(place):
        count += 1
        base = live_buffers.base(data)
        buffers[id(base)] = int(getattr(base, "nbytes", 0))
    current = sum(buffers.values())
    peak = current if reset_peak else max(current, _peaks.get(place.name, 0))
    _peaks[place.name] = peak
    return MemoryInfo(place.short, current, peak, count)


def _payloads(device: Device) -> Iterator[tuple[Any, Any]]:
    """Tensors and storages on a device, with their payloads."""
    for x in gc.get_objects():
        kind = type(x)
        if kind is Tensor and x._device is device:
            yield x, x._data
        elif kind is Storage and x.device is device:
            yield x, x.array


@functools.partial(events.on_interest, events.Allocated)
def _on_interest(interested: bool) -> None:
    """Takes in what lives already, so that its death is told as well."""
    if not interested:
        live_buffers.forget()
        return
    for place in devices.list_devices():
        for handle, data in _payloads(place):
            live_buffers.born(handle, data, place, told=False)
