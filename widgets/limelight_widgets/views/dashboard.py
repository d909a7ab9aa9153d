"""The dashboard: graph, trace cache, tape and devices in one widget, linked by one selection.

There is one in a kernel. In JupyterLab it stands beside the notebook (`widgets/js/src/labextension`), elsewhere it is a
widget like any other. What is chosen in one of its views is shown by the others, and `selection` says what it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final, Literal, get_args

from limelight.errors import ArgumentError
from limelight.export import call_of
from limelight_widgets.figures.dashboard import dashboard_figure
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.dashboard import DashboardFold, NewestGraphFold, NewestTapeFold
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.live.panel import PANELS, DashboardWidget, Panel
from limelight_widgets.views import selection
from limelight_widgets.views.devices import devices
from limelight_widgets.views.graph import GraphView
from limelight_widgets.views.selection import Selection
from limelight_widgets.views.tape import TapeView
from limelight_widgets.views.tape import tape as tape_view
from limelight_widgets.views.trace_cache import trace_cache
from limelight_widgets.views.view import View

RATE: Final = 10.0  # updates of a view a second
RATES: Final = (0.2, 20.0)  # the fewest and the most that may be asked for

Dock = Literal["right", "left", "bottom", "tab"]
DOCKS: Final[tuple[Dock, ...]] = get_args(Dock)


class NewestGraphView(GraphView):
    """The graph of the function that was traced last, or chosen in a cache; or of one, and of its calls that fail."""

    def __init__(self, function: Any = None) -> None:
        View.__init__(self, NewestGraphFold() if function is None else GraphFold(function, follows_failures=True))
        self._which = "optimised"
        selection.follow(self)


class NewestTapeView(TapeView):
    """The tape that was made last, of those that have recorded."""

    def __init__(self) -> None:
        View.__init__(self, NewestTapeFold())


class DashboardView(View[DashboardFold]):
    """Graph, trace cache, tape and devices, linked by one selection.

    >>> import limelight as ll
    >>> view = ll.widgets.dashboard(panels=["graph", "devices"])
    >>> view.state()["panels"]
    ['graph', 'devices']
    >>> view.close()
    """

    name = "dashboard"
    widget_type = DashboardWidget

    def __init__(self, function: Any = None, tape: Any = None) -> None:
        super().__init__(DashboardFold(tuple(PANELS)))
        self.views: dict[str, View[Any]] = {}
        self.is_open = True
        self._interval = 1 / RATE
        self._dock = ""
        self._put(_views(function, tape), function)
        selection.follow(self)

    @property
    def selection(self) -> Selection:
        """What is chosen in it: an op, a line of code, a tensor, a trace."""
        return selection.current()

    def bind(self, function: Any = None, tape: Any = None) -> None:
        """Shows another function, or another tape, in the widgets that show it; None for what is newest."""
        self._put(_views(function, tape), function)

    def arrange(self, panels: Sequence[str] | None = None, dock: Dock | None = None, rate: float | None = None) -> None:
        """Shows these views, there, so often; None for what it was. See `dashboard`."""
        if panels is not None:
            self._feed.change(lambda fold: fold.put(panels=_panels(panels), asked=True))
        if dock is not None:
            self._dock = dock
            if isinstance(self._made, DashboardWidget) and self._made.comm is not None:
                self._made.dock = dock
        if rate is not None:
            self._interval = 1 / rate
            for view in self.views.values():
                view._interval = self._interval

    def reset(self) -> None:
        """Shows all views again at the usual rate, and has the page forget how the reader had it."""
        self.arrange(rate=RATE)
        self._dock = ""
        if isinstance(self._made, DashboardWidget) and self._made.comm is not None:
            self._made.dock = ""
        # In the state, since a page that is only just coming hears no message; with a name, by which it is known again.
        self._feed.change(lambda fold: fold.put(panels=list(PANELS), asked=False, reset=uuid.uuid4().hex))

    def state(self) -> State:
        """What each of its views shows, by its name, and what is chosen."""
        state = self._feed.read()
        return state | {"views": {name: self.views[name].state() for name in state["panels"]}}

    def _shown(self) -> State:
        state = self._feed.read()
        return state | {"views": {name: self.views[name]._shown() for name in state["panels"]}}

    def close(self) -> None:
        self.is_open = False
        made = self._made
        if made is not None and made.comm is not None:
            made.send({"type": "dismissed"})  # the page keeps the place of one whose kernel has merely gone
        super().close()
        for view in self.views.values():
            view.close()

    def cell_ended(self) -> None:
        super().cell_ended()
        for view in self.views.values():
            view.cell_ended()

    def show_trace(self, function_id: int, index: int) -> None:
        """Nothing of its own: its graph is told as well."""

    def selected(self, chosen: Selection) -> None:
        """Shows in all pages what is chosen."""
        self._feed.change(lambda fold: fold.put(selection=chosen.to_dict()))

    def _put(self, views: dict[str, View[Any]], function: Any) -> None:
        for old in self.views.values():
            old.close()
        self.views = views
        self._feed.fold.put(title=getattr(function, "name", ""), selection={})
        if isinstance(self._made, DashboardWidget) and self._made.comm is not None:
            self._made.bind(self._joined(self._made))
            self._feed.poke()

    def _joined(self, widget: DashboardWidget) -> dict[str, list[bytes]]:
        return {name: view.join(Panel(widget, name), self._interval) for name, view in self.views.items()}

    def _new_widget(self, snapshot: list[bytes]) -> DashboardWidget:
        widget = DashboardWidget(self._heard, snapshot, self._part_told)
        widget.dock = self._dock
        widget.bind(self._joined(widget))
        return widget

    def _heard(self, kind: str, message: dict[str, Any]) -> None:
        super()._heard(kind, message)
        if kind == "gone":  # with its widget the parts have lost theirs
            for view in self.views.values():
                view.hear(kind, message)

    def _part_told(self, part: str, kind: str, message: dict[str, Any]) -> None:
        view = self.views.get(part)
        if view is not None:
            view.hear(kind, message)

    def _asked(self, kind: str, message: dict[str, Any]) -> None:
        if kind == "selected":
            selection.choose(Selection.of(message))

    def _figure(self, state: State) -> Figure:
        return dashboard_figure({name: self.views[name]._figure(one) for name, one in state["views"].items()})


def _views(function: Any, tape: Any) -> dict[str, View[Any]]:
    return {
        "graph": NewestGraphView(function),
        "cache": trace_cache(function),
        "tape": NewestTapeView() if tape is None else tape_view(tape),
        "devices": devices(),
    }


_open: list[DashboardView] = []


def dashboard(
    function: Any = None,
    tape: Any = None,
    *,
    panels: Sequence[str] | None = None,
    dock: Dock | None = None,
    rate: float | None = None,
) -> DashboardView:
    """The dashboard of this kernel; a second call shows other things in the one that is open.

    A call with nothing but `panels`, `dock` or `rate` shows the same things otherwise. JupyterLab remembers for
    each notebook which views it had, where it stood and which tab was open.

    Args:
        function: a staged function whose graph and trace cache it shows; None for whatever was traced last.
        tape: a gradient tape; None for the one that recorded last.
        panels: the views that it has, of "graph", "cache", "tape" and "devices"; None for those of the last time, all
            at first.
        dock: where it stands in JupyterLab: "right", "left" or "bottom" of the notebook, or behind its "tab"; None for
            where it stood the last time, to the right at first.
        rate: how often a view is drawn anew, at most, in times a second from 0.2 to 20; 10 at first.

    >>> import limelight as ll
    >>> double = ll.function(lambda x: x * 2.0, name="double")
    >>> y = double(ll.ones((2,)))
    >>> view = ll.widgets.dashboard(double)
    >>> view.views["graph"].static().text.splitlines()[0]  # doctest: +ELLIPSIS
    'Graph of double...'
    >>> ll.widgets.dashboard() is view
    True
    >>> ll.widgets.dashboard(double, panels=["cache", "devices"]).state()["panels"]
    ['cache', 'devices']
    >>> view.close()

    Raises:
        ArgumentError: there is no such view, no such place, or the rate is another.
        TypeError: `function` is no staged function, or `tape` no gradient tape.
    """
    function = call_of(function)
    if panels is not None:
        _panels(panels)
    if dock is not None and dock not in DOCKS:
        raise ArgumentError(f"dock={dock!r}: a dashboard stands {', '.join(DOCKS)}")
    if rate is not None and not RATES[0] <= rate <= RATES[1]:
        raise ArgumentError(f"rate={rate}: a view is drawn {RATES[0]} to {RATES[1]:g} times a second")
    if _open and _open[0].is_open:
        if (panels, dock, rate) == (None, None, None) or (function, tape) != (None, None):
            _open[0].bind(function, tape)
    else:
        close_dashboard()
        _open[:] = [DashboardView(function, tape)]
    _open[0].arrange(panels, dock, rate)
    return _open[0]


def _panels(wanted: Sequence[str]) -> list[str]:
    """The views of a dashboard by name, in their order; raises ArgumentError for no such one, and for none."""
    unknown = [name for name in wanted if name not in PANELS]
    if unknown or not wanted:
        raise ArgumentError(f"panels={list(wanted)}: a dashboard has some of {', '.join(PANELS)}")
    return [name for name in PANELS if name in wanted]


def reset_dashboard() -> bool:
    """Puts the dashboard back to all views, at its usual place and rate; whether there was one.

    >>> import limelight as ll
    >>> view = ll.widgets.dashboard(panels=["graph"])
    >>> ll.widgets.reset_dashboard(), len(view.state()["panels"])
    (True, 4)
    >>> view.close()
    """
    was = [view for view in _open if view.is_open]
    for view in was:
        view.reset()
    return bool(was)


def close_dashboard() -> bool:
    """Takes the dashboard off the page; whether there was one.

    >>> import limelight as ll
    >>> view = ll.widgets.dashboard()
    >>> ll.widgets.close_dashboard(), ll.widgets.close_dashboard()
    (True, False)
    """
    was = [view for view in _open if view.is_open]
    for view in _open:
        view.close()
    _open.clear()
    return bool(was)
