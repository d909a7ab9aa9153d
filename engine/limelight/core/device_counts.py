"""Counts of what runs and lives on devices, kept while somebody asks for them: a view that is open.

Events for each op, birth and death cost a small addition some 40 µs on one machine, counts 3. They are as exact: bytes
alive at each birth and death, and their peak, with the intermediates of staged calls by their plans. While none are
kept, nothing counts.
"""

from __future__ import annotations

from typing import Final


class Counts:
    """Of one device, since they were last taken: ops, staged calls, seconds in kernels, and the most bytes alive."""

    __slots__ = ("calls", "exact", "ops", "peak", "seconds")

    def __init__(self, live: int = 0) -> None:
        self.ops = 0
        self.calls = 0
        self.seconds = 0.0
        self.peak = live
        self.exact = True


class Tally:
    """The counts of every device, for one who asks."""

    def __init__(self) -> None:
        self.cpu0 = Counts()
        self._counts = {CPU0: self.cpu0}
        self._set_aside: dict[str, int] = {}

    def of(self, device: str) -> Counts:
        """The counts of a device, by its short name."""
        counts = self._counts.get(device)
        if counts is None:
            counts = self._counts[device] = Counts(live.get(device, 0))
        return counts

    def take(self) -> dict[str, tuple[Counts, int]]:
        """The counts since this was last asked, and the bytes alive now, by device; they begin anew.

        What another thread counts in between is in one of both answers.
        """
        taken = {}
        for name in list(self._counts):
            counts, fresh = self._counts[name], Counts(live.get(name, 0))
            self._counts[name] = fresh
            if name == CPU0:
                self.cpu0 = fresh
            peaks[name] = max(peaks.get(name, 0), counts.peak)
            counts.peak = max(counts.peak, self._set_aside.pop(name, 0))
            taken[name] = (counts, live.get(name, 0))
        return taken

    def set_peak_aside(self, device: str) -> None:
        """Keeps a device's peak for the next `take`, and begins it anew: for all others it is forgotten."""
        counts = self.of(device)
        self._set_aside[device] = max(counts.peak, self._set_aside.get(device, 0))
        counts.peak = live.get(device, 0)


CPU0: Final = "CPU:0"
kept: Final[list[Tally]] = []
"""Those that are kept now. Ops look at its truth where they are off the hot path anyway."""
live: Final[dict[str, int]] = {}
"""Bytes alive on each device, while anybody follows them (see `live_buffers`)."""
peaks: Final[dict[str, int]] = {}
"""The most bytes that were alive at once on each device while anybody counted, as far as tallies have been taken."""


def peak(device: str) -> int:
    """The most bytes that were alive at once on a device while anybody counted, since `forget_peak`; 0: nobody did."""
    return max([peaks.get(device, 0), *(tally.of(device).peak for tally in kept)])


def forget_peak(device: str) -> None:
    """Begins a device's peak anew; what tallies say when they are taken stays as it is."""
    peaks.pop(device, None)
    for tally in kept:
        tally.set_peak_aside(device)


def moved(device: str, nbytes: int) -> None:
    """So many bytes more are alive on a device, or fewer."""
    now = live[device] = live.get(device, 0) + nbytes
    if nbytes > 0:
        for tally in kept:
            counts = tally.cpu0 if device == CPU0 else tally.of(device)
            if now > counts.peak:  # noqa: PLR1730  (each op comes here, and `max` is one call more)
                counts.peak = now


def ran(device: str, seconds: float, most: int, exact: bool, call: bool) -> None:
    """An op ran, or a staged call that held `most` bytes of intermediates and results at once."""
    for tally in kept:
        counts = tally.cpu0 if device == CPU0 else tally.of(device)
        if call:
            counts.calls += 1
        else:
            counts.ops += 1
        counts.seconds += seconds
        counts.exact &= exact
        if most and (at_once := live.get(device, 0) + most) > counts.peak:
            counts.peak = at_once
