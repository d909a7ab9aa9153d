"""What the latest trace of a cell has done besides its graph: effects, and changes that nothing puts back."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from limelight.explain import SideEffect, SideEffects
from limelight_kernel.explain.side_effects import has_run, lines_run, warned_of
from limelight_kernel.inputs.pins import Pins


class TraceEffects:
    """Those of one cell.

    Args:
        filename: of the cell's code.
        pins: what stands for inputs that are keyed by identity.
        object_reads: what finds what is read through objects.
    """

    def __init__(self, filename: str, pins: Pins, object_reads: Any) -> None:
        self._filename = filename
        self._pins, self._object_reads = pins, object_reads
        self._changed: list[str] = []  # of what is compared, as code
        self.ran: Collection[int] | None = None  # the lines that ran, where they were noted

    @contextlib.contextmanager
    def noted(self, inputs: Mapping[str, Any], lines: bool) -> Iterator[None]:
        """A block in which the code runs to be traced with these inputs; `lines`: whether those that run are noted."""
        settings = self._object_reads.settings(inputs)
        pins = [*self._pins.as_they_are(), *self._object_reads.as_they_are()]
        try:
            with lines_run(self._filename) if lines else contextlib.nullcontext(self.ran) as self.ran:
                yield
        finally:
            changed = [one for one in pins if not one.holds]
            now = self._object_reads.settings(inputs)
            self._changed = [*[one.name for one in changed], *[x for x in settings if now.get(x) != settings[x]]]
            for one in changed:  # nothing puts it back, nor does a run do it: the next one is to be traced, too
                one.forget()

    @property
    def changed(self) -> list[str]:
        """What it has changed and no run of its graph changes again, as code."""
        return [*self._object_reads.changed_by_runs, *self._changed]

    def of(self, effects: SideEffects) -> list[SideEffect]:
        """Those of a cell's effects that it has had."""
        return [one for one in warned_of(effects) if has_run(one, self._filename, self.ran)]
