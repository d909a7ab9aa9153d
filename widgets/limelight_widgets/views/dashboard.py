"""The dashboard: graph, trace cache, tape and devices in one widget, linked by one selection.

There is one in a kernel. In JupyterLab it stands beside the notebook (`widgets/js/src/labextension`), elsewhere it is a
widget like any other. What is chosen in one of its views is shown by the others, and `selection` says what it is.
"""

from __future__ import annotations

from typing import Any

from limelight.export import call_of
from limelight_widgets.figures.dashboard import dashboard_figure
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.dashboard import DashboardFold, NewestGraphFold, NewestTapeFold
from limelight_widgets.folds.fold import State
from limelight_widgets.live import wire
from limelight_widgets.live.panel import PANELS, DashboardWidget, Panel
from limelight_widgets.views import selection
from limelight_widgets.views.devices import devices
from limelight_widgets.views.graph import GraphView
from limelight_widgets.views.selection import Selection
from limelight_widgets.views.tape import TapeView
from limelight_widgets.views.tape import tape as tape_view
from limelight_widgets.views.trace_cache import trace_cache
from limelight_widgets.views.view import View

INTERVAL = 0.1  # seconds between two updates of a view


class NewestGraphView(GraphView):
    """The graph of the function that was traced last, or chosen in a cache."""

    def __init__(self) -> None:
        View.__init__(self, NewestGraphFold())
        self._which = "optimised"
        selection.follow(self)


class NewestTapeView(TapeView):
    """The tape that was made last, of those that have recorded."""

    def __init__(self) -> None:
        View.__init__(self, NewestTapeFold())


class DashboardView(View):
    """Graph, trace cache, tape and devices, linked by one selection."""

    name = "dashboard"
    widget_type = DashboardWidget

    def __init__(self, function: Any = None, tape: Any = None) -> None:
        super().__init__(DashboardFold(tuple(PANELS)))
        self.views: dict[str, View] = {}
        self.is_open = True
        self._put(_views(function, tape), function)
        selection.follow(self)

    @property
    def selection(self) -> Selection:
        """What is chosen in it: an op, a line of code, a tensor, a trace."""
        return selection.current()

    def bind(self, function: Any = None, tape: Any = None) -> None:
        """Shows another function, or another tape, in the widgets that show it; None for what is newest."""
        self._put(_views(function, tape), function)

    def state(self) -> State:
        """What each of its views shows, by its name, and what is chosen."""
        return self._feed.read() | {"views": {name: view.state() for name, view in self.views.items()}}

    def close(self) -> None:
        self.is_open = False
        made = self._made
        if made is not None and made.comm is not None:
            made.send({"type": "dismissed"})  # the page keeps the place of one whose kernel has merely gone
        super().close()
        for view in self.views.values():
            view.close()

    def show_trace(self, function_id: int, index: int) -> None:
        """Nothing of its own: its graph is told as well."""

    def selected(self, chosen: Selection) -> None:
        """Shows in all pages what is chosen."""
        self._feed.change(lambda fold: fold.put(selection=chosen.to_dict()))

    def _put(self, views: dict[str, View], function: Any) -> None:
        for old in self.views.values():
            old.close()
        self.views = views
        self._feed.fold.put(title=getattr(function, "name", ""), selection={})  # type: ignore[attr-defined]
        if isinstance(self._made, DashboardWidget) and self._made.comm is not None:
            self._made.bind(self._joined(self._made))
            self._feed.poke()

    def _joined(self, widget: DashboardWidget) -> dict[str, list[bytes]]:
        return {name: view.join(Panel(widget, name), INTERVAL) for name, view in self.views.items()}

    def _new_widget(self, snapshot: list[bytes]) -> DashboardWidget:
        widget = DashboardWidget(self._heard, wire.pack(self._feed.read()), self._part_told)
        widget.bind(self._joined(widget))
        return widget

    def _part_told(self, part: str, kind: str, message: dict[str, Any]) -> None:
        view = self.views.get(part)
        if view is not None:
            view.hear(kind, message)

    def _asked(self, kind: str, message: dict[str, Any]) -> None:
        if kind == "selected":
            selection.choose(Selection.of(message))

    def _figure(self, state: State) -> Figure:
        return dashboard_figure({name: self.views[name]._figure(one) for name, one in state["views"].items()})


def _views(function: Any, tape: Any) -> dict[str, View]:
    return {
        "graph": NewestGraphView() if function is None else GraphView(function),
        "cache": trace_cache(function),
        "tape": NewestTapeView() if tape is None else tape_view(tape),
        "devices": devices(),
    }


_open: list[DashboardView] = []


def dashboard(function: Any = None, tape: Any = None) -> DashboardView:
    """The dashboard of this kernel; a second call shows other things in the one that is open.

    Args:
        function: a staged function whose graph and trace cache it shows; None for whatever was traced last.
        tape: a gradient tape; None for the one that recorded last.

    >>> import limelight as ll
    >>> double = ll.function(lambda x: x * 2.0, name="double")
    >>> y = double(ll.ones((2,)))
    >>> view = dashboard(double)
    >>> view.views["graph"].static().text.splitlines()[0]  # doctest: +ELLIPSIS
    'Graph of double...'
    >>> dashboard() is view
    True
    >>> view.close()

    Raises:
        TypeError: `function` is no staged function, or `tape` no gradient tape.
    """
    function = call_of(function)
    if _open and _open[0].is_open:
        _open[0].bind(function, tape)
    else:
        close_dashboard()
        _open[:] = [DashboardView(function, tape)]
    return _open[0]


def close_dashboard() -> bool:
    """Takes the dashboard off the page; whether there was one."""
    was = [view for view in _open if view.is_open]
    for view in _open:
        view.close()
    _open.clear()
    return bool(was)
