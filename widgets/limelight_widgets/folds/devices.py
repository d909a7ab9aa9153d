"""The fold behind the devices view: live bytes, their peak and their history, ops that ran, and copies."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Iterable

from limelight import events
from limelight.core.device_counts import Counts, Tally
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.source_excerpts import line_state

SAMPLES = 240  # points of a sparkline at most
FIRST_STEP = 0.05  # seconds between two samples, until the history is full
CALLS = {"call", "call_forward"}  # a call of a staged function is one event, whatever its graph does
LIVE_NOTE = "live: every buffer once, as the allocator has it."
COUNTED_PEAK_NOTE = (
    "peak: the most of these, with the intermediates of staged calls by their plans; what a kernel needs inside, for a "
    "moment, is not counted. ≥: at least, where sizes were not known."
)
ASKED_PEAK_NOTE = "peak: the most of these that a question has found; %devices --watch counts every moment."
OPS_NOTE = "ops, calls: those since this view was opened."
NO_OPS_NOTE = "ops, calls: not counted while no view is open."
MOST_COPIES = 200  # distinct kinds of copies that are kept apart


class History:
    """The highest value in each of at most `SAMPLES` equal steps of time; when full, steps grow twice as long."""

    def __init__(self, value: int) -> None:
        self._step = FIRST_STEP
        self._origin: float | None = None
        self._peaks = array("d", [value])
        self._value = value

    def add(self, time: float, value: int) -> None:
        if self._origin is None:
            self._origin = time
        position = int((time - self._origin) / self._step)
        while position >= SAMPLES:
            self._halve()
            position = int((time - self._origin) / self._step)
        while len(self._peaks) <= position:
            self._peaks.append(self._value)  # nothing happened in between
        self._value = value
        self._peaks[position] = max(self._peaks[position], value)

    def touch(self, time: float, value: int) -> None:
        """Notes a value that was there for a moment: afterwards it is what it was."""
        before = self._value
        self.add(time, value)
        self._value = before

    def values(self) -> array[float]:
        return array("f", self._peaks)

    @property
    def seconds(self) -> float:
        return self._step * len(self._peaks)

    def _halve(self) -> None:
        pairs = zip(self._peaks[::2], self._peaks[1::2], strict=False)
        odd = self._peaks[len(self._peaks) & ~1 :]
        self._peaks = array("d", [max(pair) for pair in pairs]) + odd
        self._step *= 2


class DevicesFold:
    """Follows every device.

    Args:
        devices: short name (events use it), full name, live bytes and peak of each device when the view is opened.
        copies: those that were made before.
    """

    kinds: tuple[type[events.Event], ...] = (events.Copied,)

    def __init__(self, devices: Iterable[tuple[str, str, int, int]], copies: Iterable[events.Copied] = ()) -> None:
        self._version = 1
        self._devices: dict[str, State] = {}
        self._copies: dict[tuple[object, ...], State] = {}
        self._copied = [0, 0]  # copies, bytes
        self._unlisted = 0
        self._newest_copy = -math.inf
        self._ops_counted = self._peaks_counted = False
        for name, full, live, peak in devices:
            self._devices[name] = _device(name, full, live, peak)
        self.take_copies(copies)

    def take_copies(self, copies: Iterable[events.Copied]) -> None:
        """Takes in those of the engine's own list that it has not been told of."""
        for copy in copies:
            if copy.time > self._newest_copy:
                self._copy(copy)
                self._version += 1

    def apply(self, event: events.Event) -> bool:
        if isinstance(event, events.OpRan):
            device = self._device(event.device)
            device["calls" if event.op in CALLS else "ops"] += 1
            device["seconds"] += event.seconds
            device["peak"] = max(device["peak"], device["live"] + event.most)
            device["exact"] &= event.exact
            if event.most:
                device["history"].touch(event.time, device["live"] + event.most)
        elif isinstance(event, events.Allocated):
            self._move(event.device, event.nbytes, event.time)
        elif isinstance(event, events.Freed):
            self._move(event.device, -event.nbytes, event.time)
        elif isinstance(event, events.Copied):
            self._copy(event)
        else:
            return False
        self._version += 1
        return True

    def catch_up(self) -> None:
        """Nothing to do: `reconcile` is called before each look."""

    def reconcile(self, name: str, full: str, live: int, peak: int, time: float) -> None:
        """Takes over the engine's own count, which is right; events may be missed, and count a buffer for each view.

        Args:
            name: the device's short name.
            full: its full name.
            live: bytes alive on it.
            peak: the most that were.
            time: when this was counted, on the clock of the events.
        """
        device = self._device(name, full)
        peak = max(device["peak"], peak, live)  # it never falls
        if (device["live"], device["peak"]) != (live, peak):
            device["history"].add(time, live)
            if peak > device["peak"]:
                device["history"].touch(time, peak)  # between two looks
            device["live"], device["peak"] = live, peak
            self._version += 1

    def note_counting(self, peaks: bool) -> None:
        """Notes whether peaks are those of every moment, since somebody counts who does not tell this fold."""
        peaks = peaks or self._ops_counted
        if peaks != self._peaks_counted:
            self._peaks_counted = peaks
            self._version += 1

    def take(self, tally: Tally) -> None:
        """Takes in what a tally has counted since the last time: from then on ops and peaks are of every moment."""
        if not self._ops_counted:
            self._ops_counted = self._peaks_counted = True
            self._version += 1
        now = time.perf_counter()
        for name, (counts, live) in tally.take().items():
            self.take_counts(name, counts, live, now)

    def take_counts(self, name: str, counts: Counts, live: int, time: float) -> None:
        """Takes in what was counted on a device since the last time, and the bytes that are alive now."""
        device = self._device(name)
        if not (counts.ops or counts.calls) and live == device["live"] and counts.peak <= live:
            return
        device["ops"] += counts.ops
        device["calls"] += counts.calls
        device["seconds"] += counts.seconds
        device["exact"] &= counts.exact
        device["history"].add(time, live)
        device["history"].touch(time, max(counts.peak, live))
        device["live"], device["peak"] = live, max(device["peak"], counts.peak, live)
        self._version += 1

    def state(self) -> State:
        devices = [
            {**device, "history": device["history"].values(), "history_seconds": device["history"].seconds}
            for device in self._devices.values()
        ]
        copies = sorted(self._copies.values(), key=lambda copy: -copy["last"])
        note = f"{LIVE_NOTE} {COUNTED_PEAK_NOTE if self._peaks_counted else ASKED_PEAK_NOTE} "
        note += OPS_NOTE if self._ops_counted else NO_OPS_NOTE
        state: State = {"kind": "devices", "devices": devices, "copies": copies, "note": note}
        state["ops_counted"] = self._ops_counted
        return state | {"copied": self._copied[0], "copied_bytes": self._copied[1], "unlisted": self._unlisted}

    def since(self, mark: int) -> tuple[State, int]:
        return ({} if mark == self._version else self.state()), self._version

    def _device(self, name: str, full: str = "") -> State:
        device = self._devices.get(name)
        if device is None:
            device = self._devices[name] = _device(name, full or name, 0, 0)
        return device

    def _move(self, name: str, nbytes: int, time: float) -> None:
        device = self._device(name)
        device["live"] += nbytes
        device["peak"] = max(device["peak"], device["live"])
        device["history"].add(time, device["live"])

    def _copy(self, event: events.Copied) -> None:
        self._newest_copy = max(self._newest_copy, event.time)
        self._copied[0] += 1
        self._copied[1] += event.nbytes
        key = (event.source_device, event.target_device, event.cause, event.source, event.what, event.tensor)
        copy = self._copies.get(key)
        if copy is None:
            if len(self._copies) >= MOST_COPIES:
                self._unlisted += 1
                return
            copy = self._copies[key] = _copies_of(event)
        copy["count"] += 1
        copy["nbytes"] += event.nbytes
        copy["seconds"] += event.seconds
        copy["last"] = self._copied[0]


def _device(name: str, full: str, live: int, peak: int) -> State:
    device: State = {"name": name, "full": full, "live": live, "peak": peak, "exact": True}
    return device | {"ops": 0, "calls": 0, "seconds": 0.0, "history": History(live)}


def _copies_of(event: events.Copied) -> State:
    ends = {"from": event.source_device, "to": event.target_device}
    called = f"{event.tensor}: {event.what}" if event.tensor else event.what
    what = {"what": called, "cause": event.cause, "fix": fix_of(event.cause, event.target_device, event.tensor)}
    return ends | what | {"line": line_state(event.source), "count": 0, "nbytes": 0, "seconds": 0.0, "last": 0}


def fix_of(cause: str, target: str, tensor: str = "") -> str:
    """What to write so that a copy is made once, or not at all; empty where it was asked for.

    >>> fix_of("operand of matmul", "CPU:1", "w")
    'copy it once, before: w = w.to("CPU:1")'
    """
    x = tensor if tensor.isidentifier() else "x"
    return f'copy it once, before: {x} = {x}.to("{target}")' if "operand of " in cause else ""
