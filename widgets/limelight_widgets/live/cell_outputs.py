"""Which cell's output shows what: a cell that is run again, and shows something, has lost what it showed before.

Front ends replace an output without a word to the kernel, and where nobody is connected nobody says that a view was
closed. So models would pile up, some with each run of a cell.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol

from limelight_widgets.live.front_end import shell


class Shown(Protocol):
    """Something that an output shows, with models that must be closed some time."""

    def replaced(self, sure: bool) -> None:
        """No cell shows it any more; not `sure` where two cells of the same text could have been taken for one."""

    def cell_ended(self) -> None:
        """A cell has ended, and may have changed what this shows."""


class _Run(NamedTuple):
    cell: Hashable
    number: Hashable
    sure: bool


_shown: dict[Hashable, tuple[_Run, list[Shown]]] = {}


def note(shown: Shown) -> None:
    """The cell that is running shows `shown`, and what it showed when it ran before is replaced."""
    run = _current_run()
    if run is None:
        return
    _listen()
    before, others = _shown.get(run.cell, (run, []))
    if before.number != run.number:
        _shown[run.cell] = (run, [shown])
        for one in others:
            if not _is_shown(one):
                one.replaced(run.sure)
    elif not any(one is shown for one in others):
        _shown[run.cell] = (run, [*others, shown])


def _listen() -> None:
    """From now on, what outputs show hears of the end of each cell."""
    running: Any = shell()
    if _cell_ended not in running.events.callbacks["post_run_cell"]:
        running.events.register("post_run_cell", _cell_ended)


def _cell_ended(_result: object) -> None:
    for one in {id(one): one for _, others in list(_shown.values()) for one in others}.values():
        one.cell_ended()
    if not _shown:
        running: Any = shell()
        running.events.unregister("post_run_cell", _cell_ended)


def forget(shown: Shown) -> None:
    """It has been closed."""
    for cell, (run, others) in list(_shown.items()):
        left = [one for one in others if one is not shown]
        if left:
            _shown[cell] = (run, left)
        else:
            del _shown[cell]


def _is_shown(shown: Shown) -> bool:
    return any(one is shown for _, others in list(_shown.values()) for one in others)


def _current_run() -> _Run | None:
    """The cell that is running: by the id that JupyterLab and others send along, else by its text."""
    running: Any = shell()
    if running is None:
        return None
    if not hasattr(running, "get_parent"):  # not in a kernel
        return _Run(hash(running.history_manager.input_hist_raw[-1]), running.execution_count, False)
    request = running.get_parent() or {}
    if request.get("header", {}).get("msg_type") != "execute_request":
        return None
    cell = request.get("metadata", {}).get("cellId")
    return _Run(cell or hash(request["content"]["code"]), request["header"]["msg_id"], cell is not None)
