"""Which tensors live on the devices, by which names, since which line, and who holds them?"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol

from limelight.autodiff import tape
from limelight.autodiff.tape_entries import saved_in
from limelight.core import devices, heap, live_buffers
from limelight.core.buffer_lifetimes import Lifetimes
from limelight.core.devices import Device
from limelight.core.storage import Storage
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.core.variable_names import paths_of
from limelight.errors import ArgumentError
from limelight.user_code import source_line
from limelight.user_code.holders import first_holder
from limelight.user_code.source_line import Source

_SECONDS: Final = 0.1
_IN_ALL: Final = 2.0
"""How long the holder of one buffer is looked for, and of all of them."""


class Watch(Protocol):
    """What has followed buffers for some time: a `ll.memory.DeviceWatch`, which lies above this room."""

    lifetimes: Lifetimes


class LiveTensor(NamedTuple):
    """A buffer that lives: who holds it, what it is, where, and its line, where known.

    `names` are those by which it can be got at, and the tapes that keep it; none where nothing was found. Of a buffer
    that several tensors share there is one record, with the largest spec.

    >>> import limelight as ll
    >>> x = ll.zeros((512, 1024))
    >>> found = ll.explain.live_tensors(top=3, scope={"x": x})
    >>> [one.spec for one in found.records if "x" in one.names]
    ['f32[512,1024]']
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
    """The largest buffers, and how many there are in all; `nbytes` is what all of them take.

    >>> import limelight as ll
    >>> x = ll.zeros((512, 1024))
    >>> found = ll.explain.live_tensors(top=1)
    >>> found.nbytes >= x.nbytes, len(found.records)
    (True, 1)
    """

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
    device: str | Device | None = None,
    top: int = 20,
    scope: Mapping[str, Any] | None = None,
    *,
    watch: Watch | None = None,
    at: float | Literal["peak"] = 0.0,
) -> LiveTensors:
    """The largest buffers that live, each with its names and the line that made it.

    A line is known of what was made while somebody listened to `ll.events.Allocated`, as an open devices view does.
    Names are those in `scope` (the notebook's, in `%devices --live`), the paths of variables, and else a way from one
    of the user's names, which is looked for during two seconds at most.

    Args:
        device: one device; None: all.
        top: how many are listed.
        scope: names that are looked at first.
        watch: a `ll.memory.DeviceWatch` that follows buffers, for a moment that has passed.
        at: that moment: so many seconds ago, or "peak", when most bytes were alive since the watch began. Of what has
            gone since then size and line are known; what a staged call needs inside is not among it.

    Raises:
        DeviceError: there is no such device.
        ArgumentError: there is no watch, it did not follow the buffers yet or follows them no longer, or `at` is not as
            above.

    >>> import limelight as ll
    >>> x = ll.zeros((512, 1024))
    >>> found = ll.explain.live_tensors(top=3, scope={"x": x})
    >>> [(one.spec, one.nbytes) for one in found.records if "x" in one.names]
    [('f32[512,1024]', 2097152)]
    >>> with ll.memory.DeviceWatch() as watch:
    ...     y = (x + 1.0).sum()
    ...     then = ll.explain.live_tensors(top=3, scope={"x": x}, watch=watch, at="peak")
    >>> [one.names for one in then.records if one.nbytes == 2097152]  # doctest: +ELLIPSIS
    [('x',), ('gone ... later',)]
    """
    present = time.perf_counter()  # before the walk over what lives, which takes a while
    place = None if device is None else devices.find(device)
    named: dict[int, list[str]] = {}
    for name, value in list((scope or {}).items()):
        if issubclass(type(value), Tensor) and not name.startswith("_"):
            named.setdefault(id(value._data), []).append(name)
    found: dict[int, list[tuple[Any, Any]]] = {}
    for handle, data in _payloads(place):
        found.setdefault(id(live_buffers.base(data)), []).append((handle, data))
    gone: list[LiveTensor] = []
    if watch is not None or at != 0.0:
        since, gone = _then(watch, at, present, place, sum(_size(handles) for handles in found.values()))
        found = {key: handles for key, handles in found.items() if key not in since}
    saved = _saved_by_tapes(scope or {})
    owners = _owners(scope or {})
    sizes = {key: _size(handles) for key, handles in found.items()}
    largest = sorted(found, key=lambda key: -sizes[key])[:top]
    end = time.perf_counter() + _IN_ALL
    records = [_record(found[key], sizes[key], named, owners, saved.get(key, ()), end) for key in largest]
    records = sorted([*records, *gone], key=lambda one: -one.nbytes)[:top]
    count, nbytes = len(found) + len(gone), sum(sizes.values()) + sum(one.nbytes for one in gone)
    return LiveTensors(tuple(records), count, nbytes)


def _owners(scope: Mapping[str, Any]) -> dict[int, str]:
    """What variables are called, by the id of their storage.

    That is their path from a module or optimiser with a name in the scope, since two models may have layers of one
    name; else their own path, else their name.
    """
    variables = list(heap.living({Variable: "_data"}))
    paths = paths_of(variables)
    owners = {id(v._data): paths.get(v._uid) or v.name for v in variables if v._uid in paths or v.name}
    for name, value in reversed(list(scope.items())):  # the first name is the one that stays
        if hasattr(type(value), "named_variables") and not isinstance(value, type) and not name.startswith("_"):
            owners |= {id(v._data): f"{name}.{path.replace('/', '.')}" for path, v in value.named_variables()}
    return owners


def _then(
    watch: Watch | None, at: float | Literal["peak"], present: float, place: Device | None, now: int
) -> tuple[Collection[int], list[LiveTensor]]:
    """The buffers born since a moment, by id, and a record for each that was alive then and has gone.

    Args:
        watch: what has followed them.
        at: the moment.
        present: the time that it is counted back from.
        place: the device, None for all.
        now: the bytes alive there.
    """
    if watch is None:
        raise ArgumentError("what was alive at a moment is known to a watch: watch = ll.memory.DeviceWatch(), before")
    if watch.lifetimes.closed:
        raise ArgumentError("the watch is closed, and does not know what came and went since: ask within its block")
    given: Any = at  # by whoever has no types checked
    if given != "peak" and (isinstance(given, str) or not given >= 0):
        raise ArgumentError(f'at={at!r}: a moment is so many seconds ago, 0 or more, or "peak"')
    device = None if place is None else place.short
    moment = watch.lifetimes.peak(device, now) if at == "peak" else present - at
    if moment < watch.lifetimes.since:
        raise ArgumentError(f"at={at}: the watch began {present - watch.lifetimes.since:.1f} s ago; give fewer seconds")
    try:
        since, gone = watch.lifetimes.at(moment)
    except LookupError as error:
        raise ArgumentError(f"at={at}: {error}; give fewer seconds") from None
    return since, [
        LiveTensor((f"gone {_after(one.died - moment)} later",), "", one.nbytes, one.device, one.line)
        for one in gone
        if device in (None, one.device)
    ]


def _after(seconds: float) -> str:
    """A length of time, in the unit that suits it."""
    factor, unit = (1.0, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "µs")
    return f"{seconds * factor:.3g} {unit}"


def _size(handles: list[tuple[Any, Any]]) -> int:
    """The bytes of the buffer that some handles share."""
    return int(getattr(live_buffers.base(handles[0][1]), "nbytes", 0))


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
