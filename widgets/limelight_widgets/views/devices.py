"""The devices view: what lives on the devices, what ran on them, and what was copied between them."""

from __future__ import annotations

import time

from limelight.core import device_counts
from limelight.core.device_counts import Tally
from limelight.core.devices import list_devices
from limelight.memory import drop_tally, keep_tally, memory_info, recent_copies
from limelight_widgets.figures.devices import devices_figure
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.devices import DevicesFold
from limelight_widgets.folds.fold import State
from limelight_widgets.live.view_script import script
from limelight_widgets.live.widget import ViewWidget
from limelight_widgets.views.view import View


class DevicesWidget(ViewWidget):
    """Draws devices, their memory and the copies between them."""

    script_path = script("devices")


class DevicesView(View[DevicesFold]):
    """The devices: what lives on them, what ran on them, what was copied between them.

    >>> import limelight as ll
    >>> view = ll.widgets.devices()
    >>> view.state()["devices"][0]["name"]
    'CPU:0'
    """

    name = "devices"
    widget_type = DevicesWidget
    looks = True

    def __init__(self) -> None:
        self._tally: Tally | None = None
        super().__init__(DevicesFold(_accounts(), recent_copies()))

    def _figure(self, state: State) -> Figure:
        return devices_figure(state)

    def _followed(self, on: bool) -> None:
        """Counts while somebody looks, and only then: ops are off their shortest path meanwhile."""
        if on and self._tally is None:
            self._tally = keep_tally()
        elif not on and self._tally is not None:
            tally, self._tally = self._tally, None
            drop_tally(tally)

    def _refresh(self, fold: DevicesFold, at_leisure: bool) -> None:
        """Takes what was counted since the last time; compares it, at leisure, with what lives, which takes a while."""
        now = time.perf_counter()
        if self._tally is not None:
            fold.take(self._tally)
        if at_leisure:
            for name, full, live, peak in _accounts():
                fold.reconcile(name, full, live, peak, now)
            if not self.is_live:
                fold.take_copies(recent_copies())
                fold.note_counting(peaks=bool(device_counts.kept))  # a watch is kept


def _accounts() -> list[tuple[str, str, int, int]]:
    """Short and full name, live bytes and peak of every device, as the engine counts them."""
    accounts = []
    for device in list_devices():
        memory = memory_info(device)
        accounts.append((device.short, device.name, memory.current, memory.peak))
    return accounts


def devices() -> DevicesView:
    """Every device: live bytes, peak, ops that ran, and the copies between devices.

    >>> import limelight as ll
    >>> view = ll.widgets.devices()
    >>> view.state()["devices"][0]["name"]
    'CPU:0'
    """
    return DevicesView()
