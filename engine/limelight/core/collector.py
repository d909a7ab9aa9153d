"""Python's garbage collector, which has nothing to find where a graph is made."""

from __future__ import annotations

import gc

from limelight.core import dispatch


class collector_paused(dispatch.Guard):  # noqa: N801  # used as a function
    """Runs its block without garbage collections: graphs have no cycles, and looking for some doubles the time."""

    _was_on = False

    def begin(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def end(self, abandoned: bool) -> None:
        if self._was_on:
            gc.enable()
