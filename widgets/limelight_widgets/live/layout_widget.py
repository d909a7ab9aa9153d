"""The hidden widget that lays large pictures out in a worker, once for all views of a kernel."""

from __future__ import annotations

import anywidget

from limelight_widgets.live.view_script import STATIC


class Engine(anywidget.AnyWidget):
    """Has no view. Its front end exports `layout(picture, sizes, manner)`, computed in a Web Worker."""

    _esm = STATIC / "engine.js"


_shared: list[Engine] = []


def shared_engine() -> Engine:
    """The engine of this kernel; a new one where the last was closed."""
    if not _shared or _shared[0].comm is None:
        _shared[:] = [Engine()]
    return _shared[0]
