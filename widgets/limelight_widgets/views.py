"""The four views."""

from __future__ import annotations

import time
from typing import Any

import limelight
from limelight_widgets.figures.graph import graph_figure
from limelight_widgets.figures.static import Figure
from limelight_widgets.figures.tables import cache_figure, devices_figure, tape_figure
from limelight_widgets.folds import CacheFold, DevicesFold, Fold, GraphFold, State, TapeFold
from limelight_widgets.folds.graph import Which
from limelight_widgets.view import View
from limelight_widgets.widget import CacheWidget, DevicesWidget, GraphWidget, TapeWidget

ASK_AFTER = 2.0  # seconds between two looks at the engine's own count of live bytes while ops run, at least
ASK_SHARE = 0.02  # of the time at most goes into such looks


class GraphView(View):
    """A graph: its ops and values, name scopes and nested functions, and the lines of code that made them."""

    _widget_type = GraphWidget

    def __init__(self, subject: Any, which: Which = "optimised", trace: int = -1) -> None:
        super().__init__(GraphFold(subject, which, trace))
        self._which = which

    def _figure(self, state: State) -> Figure:
        return graph_figure(state, self._which)


class CacheView(View):
    """A trace cache: its entries, how often each was used, and why each was traced."""

    _widget_type = CacheWidget

    def __init__(self, functions: tuple[Any, ...], *, only: bool) -> None:
        super().__init__(CacheFold(functions, only=only))

    def _figure(self, state: State) -> Figure:
        return cache_figure(state)


class TapeView(View):
    """A gradient tape: its entries in order, the bytes that each keeps alive, and the rule that each will apply."""

    _widget_type = TapeWidget

    def __init__(self, tape: Any) -> None:
        super().__init__(TapeFold(tape))

    def _figure(self, state: State) -> Figure:
        return tape_figure(state)


class DevicesView(View):
    """The devices: what lives on them, what ran on them, what was copied between them."""

    _widget_type = DevicesWidget

    def __init__(self) -> None:
        super().__init__(DevicesFold(_accounts()))
        self._next = 0.0

    def _figure(self, state: State) -> Figure:
        return devices_figure(state)

    def _refresh(self, fold: Fold, at_leisure: bool) -> None:
        """Asks the engine what lives where: it counts when asked, which takes a while, so not at every update."""
        now = time.perf_counter()
        if isinstance(fold, DevicesFold) and (at_leisure or now > self._next):
            for name, full, live, peak in _accounts():
                fold.reconcile(name, full, live, peak, now)
            done = time.perf_counter()
            self._next = done + max(ASK_AFTER, (done - now) / ASK_SHARE)


def _accounts() -> list[tuple[str, str, int, int]]:
    """Short and full name, live bytes and peak of every device, as the engine counts them."""
    found = []
    for device in limelight.list_devices():
        memory = limelight.memory_info(device)
        found.append((device.short, device.name, memory.current, memory.peak))
    return found
