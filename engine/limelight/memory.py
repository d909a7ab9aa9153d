"""How many bytes of tensors live on a device.

Nothing is counted while ops run: that would cost every op. A question walks the tensors that exist, so the answer is
exact, views are counted once, and only asking costs. (An open devices view keeps a tally, which counts while it is
open; a listener to the events `Allocated` and `Freed` hears of each buffer.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from limelight import events
from limelight.core import backends, device_counts, devices, dispatch, heap, live_buffers
from limelight.core.buffer_lifetimes import Lifetimes
from limelight.core.collector import collector_paused
from limelight.core.device_copies import forget_copies, recent_copies
from limelight.core.device_counts import Tally
from limelight.core.devices import Device
from limelight.core.storage import Storage
from limelight.core.tensor import Tensor

__all__ = ["DeviceWatch", "MemoryInfo", "memory_info", "recent_copies", "reset"]


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """Bytes of tensors and variables on one device: `current`, and `peak`, the most that there are known to have been.

    Nothing is counted while nobody asks, so `peak` knows the moments of the questions, and every moment, temporaries
    included, while a `DeviceWatch` or an open devices view counted.

    On a GPU they are whole blocks of CuPy's memory pool, which has given out `in_use` (to whomever: the difference is
    not limelight's) and holds `reserved` of the device's memory; both are None elsewhere.
    """

    device: str
    current: int
    peak: int
    tensors: int
    in_use: int | None = None
    reserved: int | None = None


_peaks: dict[str, int] = {}


def memory_info(device: str | Device = "CPU:0", reset_peak: bool = False) -> MemoryInfo:
    """The live bytes on `device`, views of one buffer counted once.

    `peak` is the highest `current` that any call so far has seen on this device, or that a `ll.memory.DeviceWatch` or
    an open devices view has counted: temporaries between two questions are in it only where one of these was open.
    `reset_peak=True` starts it anew. Raises DeviceError for an unknown device.

    >>> import limelight as ll
    >>> x = ll.zeros((256, 1024))
    >>> ll.memory_info("cpu:0").current >= x.nbytes
    True
    >>> with ll.memory.DeviceWatch():
    ...     y = ll.sum(x + 1.0)
    >>> ll.memory_info("cpu:0").peak >= 2 * x.nbytes
    True
    """
    place = devices.find(device)
    buffers: dict[int, int] = {}
    count = 0
    for _, data in _payloads(place):
        count += 1
        base = live_buffers.base(data)
        buffers[id(base)] = live_buffers.block_bytes(base)
    current = sum(buffers.values())
    if reset_peak:
        device_counts.forget_peak(place.short)
        _peaks.pop(place.name, None)
    peak = max(current, _peaks.get(place.name, 0), device_counts.peak(place.short))
    _peaks[place.name] = peak
    return MemoryInfo(place.short, current, peak, count, *_pool_bytes(place))


def _pool_bytes(place: Device) -> tuple[int | None, int | None]:
    """What the pool of a device's library has given out and reserved; None where it has none, or nobody has used it.

    A view of all devices is no reason to import JAX, which takes a second.
    """
    if not backends.is_imported(place.backend):
        return None, None
    ask: Callable[[], tuple[int, int]] | None = getattr(backends.load(place.backend), "pool_bytes", None)
    return (None, None) if ask is None else ask()


def reset() -> None:
    """Begins the peaks of all devices anew, at what lives now, and forgets the copies noted so far.

    >>> import limelight as ll
    >>> x = ll.ones(3).to("cpu:0")
    >>> ll.memory.reset()
    >>> ll.memory.recent_copies()
    ()
    """
    for place in devices.list_devices():
        memory_info(place, reset_peak=True)
    forget_copies()


class DeviceWatch:
    """Counts, from when it is made until it is closed, the most bytes alive on each device, and notes who made them.

    Meanwhile peaks are exact, temporaries of staged calls included, and `ll.explain.live_tensors` knows the line of
    each buffer made, and with `watch=` what was alive at a moment that has passed. It costs each op some 3 µs, and
    14 µs for each buffer. A `with` block closes it.

    >>> import limelight as ll
    >>> with ll.memory.DeviceWatch() as watch:
    ...     x = ll.zeros((256, 1024))
    ...     peak = watch.peaks()["CPU:0"]
    >>> peak >= x.nbytes
    True
    """

    def __init__(self) -> None:
        self._peaks: dict[str, int] = {}
        self._tally: Tally | None = keep_tally()
        self.lifetimes = Lifetimes()

    def peaks(self) -> dict[str, int]:
        """The most bytes that were alive at once since it was made, by the devices' short names."""
        if self._tally is not None:
            for name, (counts, live) in self._tally.take().items():
                self._peaks[name] = max(self._peaks.get(name, 0), counts.peak, live)
        return dict(self._peaks)

    def close(self) -> None:
        """Counts no longer; `peaks` stays as it is. May be repeated."""
        if self._tally is not None:
            self.peaks()
            tally, self._tally = self._tally, None
            self.lifetimes.close()
            drop_tally(tally)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _payloads(device: Device) -> Iterator[tuple[Any, Any]]:
    """Tensors and storages on a device, with their payloads."""
    for x in heap.living({Tensor: "_uid", Storage: "uid"}):
        kind = type(x)
        if kind is Tensor and x._device is device:
            yield x, x._data
        elif kind is Storage and x.device is device:
            yield x, x.array


@functools.partial(events.on_interest, events.Allocated)
def _on_interest(interested: bool) -> None:
    """Takes in what lives already, so that its death is told as well."""
    if not interested:
        if not device_counts.kept:
            live_buffers.forget()
        return
    _take_in()


def _take_in() -> None:
    for place in devices.list_devices():
        for handle, data in _payloads(place):
            live_buffers.born(handle, data, place, told=False)


def _tell_followed() -> None:
    for hook in live_buffers.on_follower:
        hook(True)


def keep_tally() -> Tally:
    """Counts from now on what runs and lives on all devices, until `drop_tally`: for views that are open.

    It costs each op 2 to 3 µs: ops leave the hot path, and buffers are followed by weak references.
    """
    tally = Tally()
    with collector_paused():
        # In `active` first and out of it last: staged calls that find as many there as are kept take their shortcut.
        for places in (dispatch.active, dispatch.scopes, device_counts.kept):
            places.append(tally)
        _tell_followed()
        _take_in()
    tally.take()
    return tally


def drop_tally(tally: Tally) -> None:
    """Counts for it no longer."""
    tally.take()  # its peak stays known
    for places in (device_counts.kept, dispatch.scopes, dispatch.active):
        if tally in places:
            places.remove(tally)
    _tell_followed()
    if not device_counts.kept and not events.wanted(events.Allocated):
        live_buffers.forget()
