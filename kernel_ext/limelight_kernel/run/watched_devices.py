"""`%%devices`: runs a cell, and tells what it held, ran and copied; within a budget, and without copies, if asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from limelight import events
from limelight.core.devices import list_devices
from limelight.explain import Copies
from limelight.memory import drop_tally, keep_tally, memory_info
from limelight.user_code import source_line
from limelight_kernel.run.ordinary_cell import run_ordinary
from limelight_kernel.tracebacks import runs_cells
from limelight_widgets.figures.devices import devices_figure
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.devices import DevicesFold
from limelight_widgets.format import bytes_text

runs_cells(__file__)


class MemoryBudgetError(AssertionError):
    """A cell held more than `%%devices --budget` allows; shown without a traceback.

    See docs/errors/MemoryBudgetError.md.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"MemoryBudgetError: {self}"]


@dataclass(frozen=True)
class CellDevices:
    """What a cell held at most, ran and copied; `copies` has a record for each line that copied."""

    state: dict[str, Any]
    copies: Copies

    def static(self) -> Figure:
        """A picture, a table and text."""
        return devices_figure(self.state)

    def to_dict(self) -> dict[str, Any]:
        """Devices and copies, ready for JSON."""
        devices = [{k: v for k, v in one.items() if not k.startswith("history")} for one in self.state["devices"]]
        return {"devices": devices, "copies": [str(record) for record in self.copies.records]}

    def __str__(self) -> str:
        return self.static().text

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.static().bundle()


class _Budget:
    """Follows the bytes alive, and notes the first line that takes them beyond a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._live = {device.short: memory_info(device).current for device in list_devices()}
        self.broken: MemoryBudgetError | None = None

    def note(self, event: events.Event) -> None:
        if isinstance(event, events.Freed):
            self._live[event.device] = self._live.get(event.device, 0) - event.nbytes
        elif isinstance(event, events.Allocated):
            live = self._live[event.device] = self._live.get(event.device, 0) + event.nbytes
            self._check(event.device, live, event)
        elif isinstance(event, events.OpRan) and event.most:
            self._check(event.device, self._live.get(event.device, 0) + event.most, event)

    def _check(self, device: str, live: int, event: Any) -> None:
        if live > self._limit and self.broken is None:
            where = source_line.at(event.source)
            said = f"{bytes_text(live)} lived on {device}, and {bytes_text(self._limit)} were allowed{where}"
            self.broken = MemoryBudgetError(f"{said}; %devices --live lists what lives")


def run_and_watch(
    shell: InteractiveShell, line: str, cell: str, fail_on_copy: bool, budget: int | None
) -> tuple[Any, CellDevices]:
    """Runs a cell as an ordinary one; returns its value and what it did to the devices.

    Args:
        shell: whose namespace the code runs in.
        line: what stands on the line of the magic.
        cell: the text below it.
        fail_on_copy: whether a copy that nobody asked for is an error, at its line.
        budget: bytes that may be alive on a device at any moment, intermediates of staged calls included; None: any.

    Raises:
        MemoryBudgetError: more were; said when the cell has ended.
        DeviceError: something was copied, and must not be.
    """
    __tracebackhide__ = True
    live = {one: memory_info(one).current for one in list_devices()}
    fold = DevicesFold([(one.short, one.name, held, held) for one, held in live.items()])
    limit = _Budget(budget) if budget is not None else None
    tally = keep_tally()
    with events.listen(fold.apply, *fold.kinds), Copies(forbid=fail_on_copy) as copies:
        watching = events.listen(limit.note, events.OpRan, events.Allocated, events.Freed) if limit else None
        try:
            value = run_ordinary(shell, "devices", line, cell)
        finally:
            if watching is not None:
                watching.close()
            fold.take(tally)
            drop_tally(tally)
    if limit is not None and limit.broken is not None:
        raise limit.broken
    return value, CellDevices(fold.state(), copies)
