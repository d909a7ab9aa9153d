"""Which tensors live on the devices, by which names, since which line, and who holds them?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from limelight.autodiff import tape
from limelight.autodiff.tape_entries import saved_in
from limelight.core import devices, heap, live_buffers
from limelight.core.devices import Device
from limelight.core.storage import Storage
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.user_code import source_line
from limelight.user_code.holders import first_holder
from limelight.user_code.source_line import Source

_SECONDS: Final = 0.1
_IN_ALL: Final = 2.0
"""How long the holder of one buffer is looked for, and of all of them."""


class LiveTensor(NamedTuple):
    """A buffer that lives: who holds it, what it is, where, and its line, where known.

    `names` are those by which it can be got at, and the tapes that keep it; none where nothing was found. Of a buffer
    that several tensors share there is one record, with the largest spec.
    """

    names: tuple[str, ...]
    spec: str
    nbytes: int
    device: str
    line: Source | None

    def __str__(self) -> str:
        held = ", ".join(self.names) or "held by nothing with a name"
        return f"{self.nbytes:>14,} bytes  {self.device:6} {self.spec:18} {held}{source_line.at(self.line)}"


@dataclass(frozen=True)
class LiveTensors:
    """The largest buffers, and how many there are in all; `nbytes` is what all of them take."""

    records: tuple[LiveTensor, ...]
    count: int
    nbytes: int

    def __str__(self) -> str:
        left = self.count - len(self.records)
        more = [f"and {left:,} smaller ones"] if left else []
        head = f"{self.count:,} live {'buffer' if self.count == 1 else 'buffers'}, {self.nbytes:,} bytes"
        return "\n".join([head, *map(str, self.records), *more])

    __repr__ = __str__


def live_tensors(
    device: str | Device | None = None, top: int = 20, scope: Mapping[str, Any] | None = None
) -> LiveTensors:
    """The largest buffers that live, each with its names and the line that made it.

    A line is known of what was made while somebody listened to `ll.events.Allocated`, as an open devices view does.
    Names are those in `scope` (the notebook's, in `%devices --live`), variables' own, and else a way from one of the
    user's names, which is looked for during two seconds at most.

    Args:
        device: one device; None: all.
        top: how many are listed.
        scope: names that are looked at first.

    Raises:
        DeviceError: there is no such device.

    >>> import limelight as ll
    >>> x = ll.zeros((512, 1024))
    >>> found = ll.explain.live_tensors(top=3, scope={"x": x})
    >>> [(one.spec, one.nbytes) for one in found.records if "x" in one.names]
    [('f32[512,1024]', 2097152)]
    """
    place = None if device is None else devices.find(device)
    named: dict[int, list[str]] = {}
    for name, value in list((scope or {}).items()):
        if issubclass(type(value), Tensor) and not name.startswith("_"):
            named.setdefault(id(value._data), []).append(name)
    found: dict[int, list[tuple[Any, Any]]] = {}
    for handle, data in _payloads(place):
        found.setdefault(id(live_buffers.base(data)), []).append((handle, data))
    saved = _saved_by_tapes(scope or {})
    owners = {id(v._data): v.name for v in heap.living({Variable: "_data"}) if v.name}
    sizes = {key: int(getattr(live_buffers.base(handles[0][1]), "nbytes", 0)) for key, handles in found.items()}
    largest = sorted(found, key=lambda key: -sizes[key])[:top]
    end = time.perf_counter() + _IN_ALL
    records = [_record(found[key], sizes[key], named, owners, saved.get(key, ()), end) for key in largest]
    return LiveTensors(tuple(records), len(found), sum(sizes.values()))


def _payloads(place: Device | None) -> Iterator[tuple[Any, Any]]:
    for x in heap.living({Tensor: "_uid", Storage: "uid"}):
        if type(x) is Tensor and (place is None or x._device is place) and hasattr(x._data, "nbytes"):
            yield x, x._data
        elif type(x) is Storage and (place is None or x.device is place):
            yield x, x.array


def _saved_by_tapes(scope: Mapping[str, Any]) -> dict[int, tuple[str, ...]]:
    """What tapes keep for their rules, by the id of the buffer: in words, whose."""
    saved: dict[int, dict[str, None]] = {}
    for one in tape.alive():
        name = next((f" `{name}`" for name, value in list(scope.items()) if value is one), "")
        for x in saved_in(one._entries):
            if type(x) is Tensor:
                saved.setdefault(id(live_buffers.base(x._data)), {})[f"saved by gradient tape{name}"] = None
    return {key: tuple(said) for key, said in saved.items()}


def _record(
    handles: list[tuple[Any, Any]],
    nbytes: int,
    named: dict[int, list[str]],
    owners: dict[int, str],
    saved: tuple[str, ...],
    end: float,
) -> LiveTensor:
    """A record for one buffer.

    Args:
        handles: the tensors and storages that share it, with their payloads.
        nbytes: its size.
        named: names in the scope, by the id of the payload.
        owners: names of variables, by the id of the storage.
        saved: the tapes that keep it.
        end: when the search for holders ends.
    """
    handle, data = max(handles, key=lambda one: int(getattr(one[1], "nbytes", 0)))
    names = [name for h, d in handles for name in (*named.get(id(d), ()), *filter(None, [owners.get(id(h))]))]
    names += saved
    if not names and (left := end - time.perf_counter()) > 0:
        holder = first_holder(handle, min(left, _SECONDS))
        names = [] if holder is None else [str(holder.path)]
    device = handle._device if isinstance(handle, Tensor) else handle.device
    value = getattr(handle.spec, "value", None)
    spec = str(handle.spec if value is None else value)
    return LiveTensor(tuple(dict.fromkeys(names)), spec, nbytes, device.short, live_buffers.line_of(data))
