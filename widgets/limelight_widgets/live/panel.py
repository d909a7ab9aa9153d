"""A dashboard's widget: one comm for several views, each of which has a part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from limelight_widgets.live.layout_widget import shared_engine
from limelight_widgets.live.view_script import script, shared_script
from limelight_widgets.live.widget import ViewWidget

PANELS = {"graph": "graph", "cache": "trace_cache", "tape": "tape", "devices": "devices"}
"""The parts of a dashboard, in their order, and the script of each."""


class Panel:
    """What a view has in a dashboard instead of a widget: its messages bear its name, and take the dashboard's comm."""

    def __init__(self, widget: ViewWidget, name: str) -> None:
        self._widget = widget
        self._name = name

    @property
    def comm(self) -> Any:
        return self._widget.comm

    def send(self, content: Any, buffers: Any = None) -> None:
        """Sends a message to this part."""
        self._widget.send({**content, "part": self._name}, buffers=buffers)

    def close(self) -> None:
        """Does nothing: the dashboard's widget closes for all parts."""


class DashboardWidget(ViewWidget):
    """Draws a dashboard: `parts` has the snapshot of each view, `binding` counts how often others took their place.

    `dock` is where it was asked to stand, "" where it was not: then the page knows where it stood the last time.

    Each view keeps its own script, which a hidden widget carries for all of its kind.
    """

    script_path: ClassVar[Path] = script("dashboard")

    engine = anywidget.WidgetTrait().tag(sync=True)
    graph = anywidget.WidgetTrait().tag(sync=True)
    cache = anywidget.WidgetTrait().tag(sync=True)
    tape = anywidget.WidgetTrait().tag(sync=True)
    devices = anywidget.WidgetTrait().tag(sync=True)
    parts = traitlets.Dict().tag(sync=True)
    binding = traitlets.Int(0).tag(sync=True)
    dock = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        heard: Callable[[str, Any], None],
        snapshot: list[bytes],
        told: Callable[[str, str, Any], None],
    ) -> None:
        """`heard` is told what the page says of the whole, `told` what it says of a part, by the part's name first."""
        self._told = told
        super().__init__(heard, snapshot)

    @traitlets.default("engine")
    def _default_engine(self) -> Any:
        return shared_engine()

    @traitlets.default("graph")
    def _default_graph(self) -> Any:
        return shared_script(script(PANELS["graph"]))

    @traitlets.default("cache")
    def _default_cache(self) -> Any:
        return shared_script(script(PANELS["cache"]))

    @traitlets.default("tape")
    def _default_tape(self) -> Any:
        return shared_script(script(PANELS["tape"]))

    @traitlets.default("devices")
    def _default_devices(self) -> Any:
        return shared_script(script(PANELS["devices"]))

    def bind(self, parts: Mapping[str, list[bytes]]) -> None:
        """Shows other views: the page draws them in the place of those that it had."""
        self.parts = {**self.parts, **parts}
        self.binding += 1

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if isinstance(content, dict) and content.get("part") in PANELS and isinstance(content.get("type"), str):
            self._told(content["part"], content["type"], content)
        else:
            super()._on_message(_widget, content, _buffers)
