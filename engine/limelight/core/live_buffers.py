"""Which buffers live, told at each birth and death, while somebody listens.

A buffer is the array that owns the memory; views share it, and it is told of once. What lived before is taken in when
the first listener comes (`memory` walks the tensors then), so that at each event births less deaths are the bytes
alive. Without a listener nothing of this runs.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

from limelight import events
from limelight.core.devices import Device
from limelight.user_code.source_line import Source


def base(data: Any) -> Any:
    """The array that owns the memory of a view."""
    while getattr(data, "base", None) is not None and hasattr(data.base, "nbytes"):
        data = data.base
    return data


_live: Final[dict[int, weakref.ref[Any]]] = {}
"""References whose callbacks report a death, by the id of the buffer. (weakref.finalize costs far more.)"""


def born(handle: Any, data: Any, device: Device, line: Source | None = None, *, told: bool = True) -> None:
    """Reports the birth of the buffer of `data`, if it is a new one, and later its death.

    Args:
        handle: the tensor that has it: where a buffer takes no weak references (NumPy's scalars), it dies with this.
        data: the payload.
        device: where it is.
        line: the user's line that made it.
        told: whether its birth is an event; its death is one in any case.
    """
    buffer = base(data)
    key = id(buffer)
    if key in _live:
        return
    nbytes, name = int(getattr(buffer, "nbytes", 0)), device.short

    def freed(reference: weakref.ref[Any]) -> None:
        if _live.get(key) is reference:
            del _live[key]
            if events.wanted(events.Freed):
                events.emit(events.Freed(name, nbytes, key))

    try:
        _live[key] = weakref.ref(buffer, freed)
    except TypeError:
        _live[key] = weakref.ref(handle, freed)
    if told:
        events.emit(events.Allocated(name, nbytes, key, line))


def forget() -> None:
    """Nobody listens any more."""
    _live.clear()
