"""What the views have in common: a fold that is kept up to date, a widget, and static forms.

The way of an event, from the engine to the page:

1. the engine emits it (`limelight.events`);
2. the open view's `live.feed.Feed` puts it into a queue, and on a thread of its own gives it to the fold (`folds`);
3. at most 20 times a second, `View._publish` asks the fold what has changed;
4. `live.wire` packs that, and the view's widget (`live.widget`) sends it as a message;
5. in the page, `js/src/store.js` has it unpacked (`js/src/wire.js`), keeps the state, and answers;
6. the view's script, in `js/src/views`, draws the state.

What the page says, `opened`, `seen` and `closed`, comes back through the widget to `View._heard`.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import Any, ClassVar, Final

from limelight import forking
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.fold import Fold, State
from limelight_widgets.live import cell_outputs, wire
from limelight_widgets.live.feed import INTERVAL, SLOW_INTERVAL, Feed
from limelight_widgets.live.front_end import has_front_end
from limelight_widgets.live.widget import AHEAD, ViewWidget

WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
MOST_CLOSED = 32  # widgets that nobody looks at any more, kept for a page that is loaded again
GIVE_UP = 600  # updates without an answer after which nobody is looking

_closed: OrderedDict[int, View] = OrderedDict()
_alive: Final[weakref.WeakSet[View]] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a process that has just been forked: a thread that has gone may have held them."""
    for view in list(_alive):
        view._lock = threading.Lock()


forking.in_child(_renew_locks)


class View:
    """A live view. Display it, and it follows the engine until its output goes away.

    `widget` is the Jupyter widget, for use inside layouts of ipywidgets, which keep it until `close()`; `static()` is
    the view as it stands, without a widget; `state()` is what it shows, as JSON.

    Each kind of view is a subclass in a file of its own. It names its fold (what it gives to `__init__`), its static
    forms (`_figure`), and its widget with its script.
    """

    name: ClassVar[str]
    """The name of its function in `ll.widgets`, of its magic and of its script."""
    widget_type: ClassVar[type[ViewWidget]]

    def __init__(self, fold: Fold) -> None:
        self._feed = Feed(fold, self._publish, self._refresh)
        self._lock = threading.Lock()
        _alive.add(self)
        self._made: ViewWidget | None = None
        self._mark = 0
        self._sent = 0
        self._seen = 0
        self._lookers: set[str] = set()
        self._handed_out = False

    def state(self) -> State:
        """What the view shows."""
        return self._feed.read()

    def static(self) -> Figure:
        """The view as it stands, in forms that need no widget: text, HTML and SVG."""
        return self._figure(self.state())

    @property
    def is_live(self) -> bool:
        """Whether the view follows the engine: from its display until its output goes away."""
        return self._feed.is_open

    @property
    def widget(self) -> ViewWidget:
        """The Jupyter widget; made, and live, from the first time that it is asked for until `close()`."""
        self._handed_out = True
        return self._widget()

    def shown_widget(self) -> ViewWidget:
        """The widget for the output of the cell that is running; closed when a later run shows something else there."""
        cell_outputs.note(self)
        return self._widget()

    def _widget(self) -> ViewWidget:
        with self._lock:
            if self._made is None or self._made.comm is None:
                self._sent = self._seen = 0
                self._feed.open()
                self._made = self.widget_type(self._heard, wire.pack(self.state()))
                self._mark = self._feed.fold.since(0)[1]
            return self._made

    def close(self) -> None:
        """Stops following the engine, and takes the widget off the page."""
        self._feed.close()
        _closed.pop(id(self), None)
        cell_outputs.forget(self)
        if self._made is not None:
            self._made.close()
            self._made = None

    def replaced(self, sure: bool) -> None:
        """The output that showed it has gone; unless `sure`, somebody may still look (see `cell_outputs`)."""
        if sure or not self._lookers:
            if not self._handed_out:
                self.close()
        else:
            _retire(self)

    def __repr__(self) -> str:
        return self.static().text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = dict(self.static().bundle())
        if has_front_end():
            model_id = self.shown_widget().model_id
            bundle[WIDGET_MIME] = {"version_major": 2, "version_minor": 0, "model_id": model_id}
        return bundle

    def _figure(self, state: State) -> Figure:
        raise NotImplementedError

    def _refresh(self, fold: Fold, at_leisure: bool) -> None:
        """Compares the fold with the engine's own accounts, where it has some."""

    def _publish(self, fold: Fold) -> float:
        widget = self._made
        if widget is None or widget.comm is None:
            return INTERVAL
        update, mark = fold.since(self._mark)
        if update:
            self._mark = mark
            self._send(widget, "update", update)
        behind = self._sent - self._seen
        if behind > GIVE_UP:
            self._lookers.clear()
            self._feed.close()
        return INTERVAL if behind <= AHEAD else SLOW_INTERVAL

    def _send(self, widget: ViewWidget, kind: str, state: State) -> None:
        """Sends a state; every fourth wants an answer: a slow front end slows the updates, not the engine."""
        self._sent += 1
        answer = kind == "state" or self._sent % 4 == 0
        parts = wire.pack(state)
        widget.send({"type": kind, "number": self._sent, "answer": answer}, buffers=parts)

    def _heard(self, kind: str, message: dict[str, Any]) -> None:
        """A message of the front end, or of the widget when it is closed; comes on any thread."""
        looker = str(message.get("view", ""))
        if kind == "opened":
            self._lookers.add(looker)
            if not self._feed.is_open or int(message.get("number", 0)) != self._sent:
                self._wake()
        elif kind == "seen":
            self._seen = max(self._seen, int(message.get("number", 0)))
            self._lookers.add(looker)
            if not self._feed.is_open:
                self._wake()
        elif kind == "closed":
            self._lookers.discard(looker)
            if not self._lookers:
                self._feed.close()
                _retire(self)
        elif kind == "gone":
            self._lookers.clear()
            self._feed.close()
            _closed.pop(id(self), None)
            cell_outputs.forget(self)
        else:
            self._asked(kind, message)

    def _asked(self, kind: str, message: dict[str, Any]) -> None:
        """What only this kind of view is asked by its script; comes on any thread."""

    def _wake(self) -> None:
        """Somebody looks: follow the engine, and send all there is, which also makes up for what was missed."""
        self._feed.open()
        _closed.pop(id(self), None)
        self._seen = self._sent
        self._mark = 0
        self._feed.poke()


def _retire(view: View) -> None:
    _closed[id(view)] = view
    while len(_closed) > MOST_CLOSED:
        _closed.popitem(last=False)[1].close()
