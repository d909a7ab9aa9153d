"""The devices view: what lives on the devices, what ran on them, and what was copied between them."""

from __future__ import annotations

import time

from limelight.core.devices import list_devices
from limelight.memory import memory_info, recent_copies
from limelight_widgets.figures.devices import devices_figure
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.devices import DevicesFold
from limelight_widgets.folds.fold import Fold, State
from limelight_widgets.live.view_script import script
from limelight_widgets.live.widget import ViewWidget
from limelight_widgets.views.view import View

ASK_AFTER = 2.0  # seconds between two looks at the engine's own count of live bytes while ops run, at least
ASK_SHARE = 0.02  # of the time at most goes into such looks


class DevicesWidget(ViewWidget):
    """Draws devices, their memory and the copies between them."""

    script_path = script("devices")


class DevicesView(View):
    """The devices: what lives on them, what ran on them, what was copied between them."""

    name = "devices"
    widget_type = DevicesWidget

    def __init__(self) -> None:
        super().__init__(DevicesFold(_accounts(), recent_copies()))
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
    accounts = []
    for device in list_devices():
        memory = memory_info(device)
        accounts.append((device.short, device.name, memory.current, memory.peak))
    return accounts


def devices() -> DevicesView:
    """Every device: live bytes, peak, ops that ran, and the copies between devices."""
    return DevicesView()
