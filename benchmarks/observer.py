"""What open views cost the program that they watch: a loop of 10,000 small ops a second, bare and with each.

    python benchmarks/observer.py [ROUNDS]

Each turn of the loop makes one op and then works on something else, so that a turn takes about 100 µs. Bare and watched
take turns in one process, a slice of the loop each; the view that is open has a page that looks. What is compared is
processor time of the whole process, so that the views' own threads count, and other programs count less: the fastest
quarter of each turn's slices, the median of the turns. "an op" is what the op alone takes, back to back.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import limelight as ll
import limelight_widgets as views

SLICE = 200  # turns of the loop
SLICES = 16  # at a time
ROUNDS = 15
PACE = 100.0  # microseconds of a turn


def loops() -> dict[str, Callable[[], object]]:
    """The programs: one op of each."""
    a, b = ll.ones((4,)), ll.ones((4,))
    staged = ll.function(lambda x: x * 2.0 + 1.0, name="staged")
    staged(a)
    return {"a + b": lambda: a + b, "staged call": lambda: staged(a)}


def filler() -> Callable[[], object]:
    """Something else that takes about `PACE`."""
    numbers = list(range(1_000))
    start = time.process_time()
    for _ in range(200):
        sum(numbers)
    each = (time.process_time() - start) / 200 * 1e6
    often = range(max(1, round(PACE / each)))
    return lambda: [sum(numbers) for _ in often]


def timed(work: Callable[[], object], rest: Callable[[], object] | None) -> float:
    """Microseconds of processor time for one turn."""
    times = []
    for _ in range(SLICES):
        start = time.process_time()
        for _ in range(SLICE):
            work()
            if rest is not None:
                rest()
        times.append((time.process_time() - start) / SLICE * 1e6)
    return statistics.mean(sorted(times)[: SLICES // 4])


class Watched:
    """A view that is open and looked at, while `on`."""

    def __init__(self, view: Any) -> None:
        self.view = view
        view._widget()

    def look(self, on: bool) -> None:
        """The page shows it, or has hidden it."""
        number = self.view._sent
        for part in getattr(self.view, "views", {"": self.view}).values():
            part._heard("opened" if on else "closed", {"view": "page", "number": number if part is self.view else -1})
        time.sleep(0.3 if on else 0.1)  # the first update is the whole state


def cost(watched: Watched, work: Callable[[], object], rounds: int) -> tuple[float, float, float, float]:
    """Microseconds of an op alone, closed and open; the loop's ratio, and how far apart closed ones are."""
    rest = filler()
    alone: dict[bool, list[float]] = {False: [], True: []}
    turns: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        watched.look(False)
        alone[False].append(timed(work, None))
        first = timed(work, rest)
        watched.look(True)
        alone[True].append(timed(work, None))
        open_ = timed(work, rest)
        watched.look(False)
        turns.append((first, open_, timed(work, rest)))
    ratio = statistics.median(2 * open_ / (first + last) for first, open_, last in turns)
    noise = statistics.median(abs(last / first - 1) for first, _, last in turns)
    return statistics.median(alone[False]), statistics.median(alone[True]), ratio, noise


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, "
        f"CPython {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    makers = {"devices": views.devices, "trace_cache": views.trace_cache, "dashboard": views.dashboard}
    print(
        f"{'view':12} {'loop':12} {'an op, closed':>14} {'open':>9} "
        f"{'the loop, open / closed':>24} {'closed, apart':>14}"
    )
    for name, make in makers.items():
        watched = Watched(make())
        for title, work in loops().items():
            bare, open_, ratio, noise = cost(watched, work, rounds)
            print(f"{name:12} {title:12} {bare:11.2f} µs {open_:6.2f} µs {ratio:24.3f} {noise:14.3f}")
        watched.view.close()
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
