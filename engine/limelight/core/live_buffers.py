"""Which buffers live, told at each birth and death, while somebody listens.

A buffer is the array that owns the memory; views share it, and it is told of once. What lived before is taken in when
the first listener comes (`memory` walks the tensors then), so that at each event births less deaths are the bytes
alive. Who needs totals alone keeps a tally (`device_counts`). Without either nothing of this runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from limelight import events
from limelight.core import device_counts
from limelight.core.device_counts import CPU0
from limelight.core.device_counts import kept as tallies
from limelight.core.device_counts import live as bytes_alive
from limelight.core.devices import Device
from limelight.events import _listeners as listeners
from limelight.user_code.source_line import Source


def base(data: Any) -> Any:
    """The array that owns the memory of a view."""
    while getattr(data, "base", None) is not None and hasattr(data.base, "nbytes"):
        data = data.base
    return data


def block_bytes(buffer: Any) -> int:
    """The bytes that its allocator has given for a buffer: on a GPU whole blocks of CuPy's pool, else its elements."""
    if isinstance(buffer, np.ndarray):  # NumPy's `data` raises for bfloat16, which has no buffer protocol
        return buffer.nbytes
    memory = getattr(getattr(buffer, "data", None), "mem", None)
    return int(getattr(buffer, "nbytes", 0) if memory is None else memory.size)


class _Life(weakref.ref[Any]):
    """A reference to a buffer that knows what its death takes away: no closure is made for each, nor a `finalize`."""

    __slots__ = ("device", "key", "nbytes")

    key: int
    device: str
    nbytes: int


def _freed(life: Any) -> None:
    """Reports a death, unless the buffer's id has been another's since."""
    known: Any = _live.get(life.key)
    if known is not life:
        return
    del _live[life.key]
    if _lines:
        _lines.pop(life.key, None)
    bytes_alive[life.device] -= life.nbytes  # not `moved`, nor `wanted` below: each death of a counted op comes here
    if events.Freed in listeners:
        events.emit(events.Freed(life.device, life.nbytes, life.key))


_live: Final[dict[int, _Life]] = {}
"""References whose callbacks report a death, by the id of the buffer."""


_lines: Final[dict[int, Source]] = {}
"""The lines that made them, where somebody listened, by the id of the buffer."""


def line_of(data: Any) -> Source | None:
    """The user's line that made the buffer of `data`, where somebody listened when it did."""
    return _lines.get(id(base(data)))


def born(handle: Any, data: Any, device: Device, line: Source | None = None, *, told: bool = True) -> None:
    """Reports the birth of the buffer of `data`, if it is a new one, and later its death.

    Args:
        handle: the tensor that has it: where a buffer takes no weak references (NumPy's scalars), it dies with this.
        data: the payload.
        device: where it is.
        line: the user's line that made it.
        told: whether its birth is an event; its death is one in any case.
    """
    buffer = data if type(data) is np.ndarray and data.base is None else base(data)
    key = id(buffer)
    if key in _live:
        return
    nbytes, name = int(buffer.nbytes) if type(buffer) is np.ndarray else block_bytes(buffer), device.short
    device_counts.moved(name, nbytes)
    try:
        life = _Life(buffer, _freed)
    except TypeError:
        life = _Life(handle, _freed)
    life.key, life.device, life.nbytes = key, name, nbytes
    _live[key] = life
    if line is not None:
        _lines[key] = line
    if told and events.wanted(events.Allocated):
        events.emit(events.Allocated(name, nbytes, key, line))


def counted(handle: Any, data: Any, seconds: float) -> Any:
    """`handle`, the result of one op on CPU:0, counted with its buffer: what an open view costs each of them.

    All in one: between ops of a program its code and data leave the processor's caches, so that each function more
    takes some four times what it takes back to back.
    """
    buffer = data if type(data) is np.ndarray and data.base is None else base(data)
    key = id(buffer)
    now = 0
    if key not in _live:
        try:
            life = _Life(buffer, _freed)
        except TypeError:
            life = _Life(handle, _freed)
        life.key, life.device = key, CPU0
        nbytes = life.nbytes = buffer.nbytes if type(buffer) is np.ndarray else int(getattr(buffer, "nbytes", 0))
        _live[key] = life
        now = bytes_alive[CPU0] = bytes_alive.get(CPU0, 0) + nbytes
    for tally in tallies:
        counts = tally.cpu0
        counts.ops += 1
        counts.seconds += seconds
        if now > counts.peak:  # noqa: PLR1730  (`max` is one call more)
            counts.peak = now
    return handle


def counted_results(handles: Sequence[Any], seconds: float, most: int, exact: bool) -> None:
    """The same for the results of a staged call on CPU:0.

    Args:
        handles: the tensors that it gave.
        seconds: how long its plan ran.
        most: bytes of intermediates and results that it held at once, by its plan.
        exact: whether that is known.
    """
    now = bytes_alive.get(CPU0, 0)
    peak = now + most
    for handle in handles:
        data = handle._data
        buffer = data if type(data) is np.ndarray and data.base is None else base(data)
        key = id(buffer)
        if key in _live:
            continue
        nbytes = int(getattr(buffer, "nbytes", 0))
        try:
            life = _Life(buffer, _freed)
        except TypeError:
            life = _Life(handle, _freed)
        life.key, life.device, life.nbytes = key, CPU0, nbytes
        _live[key] = life
        now = bytes_alive[CPU0] = bytes_alive.get(CPU0, 0) + nbytes  # read anew: others may have died meanwhile
        if now > peak:  # noqa: PLR1730  (as above)
            peak = now
    for tally in tallies:
        counts = tally.cpu0
        counts.calls += 1
        counts.seconds += seconds
        counts.exact &= exact
        if peak > counts.peak:  # noqa: PLR1730  (`max` is one call more)
            counts.peak = peak


def followed() -> bool:
    """Whether anybody listens to births, or counts."""
    return bool(device_counts.kept) or events.wanted(events.Allocated)


on_follower: Final[list[Callable[[bool], None]]] = []
"""Called where somebody begins or ceases to count."""


def on_follow(hook: Callable[[bool], None]) -> None:
    """Calls `hook` where somebody begins or ceases to listen to births, or to count."""
    on_follower.append(hook)
    events.on_interest(events.Allocated, hook)


def forget() -> None:
    """Nobody listens any more, and nobody counts."""
    _live.clear()
    _lines.clear()
    device_counts.live.clear()
