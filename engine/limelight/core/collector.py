"""Python's garbage collector, which has nothing to find where a graph is made."""

from __future__ import annotations

import gc
from typing import Final

from limelight.core import dispatch

_LIMIT: Final = 1_000_000
_taken: Final = [0, 0]  # how many objects were taken for long-lived, and since which full collection


class collector_paused(dispatch.Guard):  # noqa: N801  # used as a function
    """Runs its block without garbage collections: graphs have no cycles, and looking for some doubles the time.

    What was made in it is then as old as can be: the next full collection looks at it, none before.
    """

    _was_on = False

    def begin(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def end(self, abandoned: bool) -> None:
        if self._was_on:
            _age_young_objects()
            gc.enable()


def _age_young_objects() -> None:
    """Moves all objects to the oldest generation, unlooked at: the walk after a large trace took a tenth of its time.

    Python does not count them when it decides upon a full collection, so there is a limit. Where a program has frozen
    objects, they stay so, and all is as usual.
    """
    young, full = gc.get_count()[0], gc.get_stats()[-1]["collections"]
    if _taken[1] != full:
        _taken[:] = 0, full
    if young > 10 * gc.get_threshold()[0] and _taken[0] + young < _LIMIT and gc.get_freeze_count() == 0:
        _taken[0] += young
        gc.freeze()
        gc.unfreeze()
