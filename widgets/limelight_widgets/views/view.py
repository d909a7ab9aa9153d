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

import os
import threading
import weakref
from collections import OrderedDict
from typing import Any, ClassVar, Final, Generic, Protocol

from limelight import forking
from limelight.core.collector import collector_paused
from limelight_widgets.figures import files
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.fold import State, shown
from limelight_widgets.live import cell_outputs, static_outputs, wire
from limelight_widgets.live.feed import INTERVAL, SLOW_INTERVAL, F, Feed
from limelight_widgets.live.front_end import has_front_end
from limelight_widgets.live.widget import AHEAD, ViewWidget

MOST_CLOSED = 32  # widgets that nobody looks at any more, kept for a page that is loaded again
GIVE_UP = 600  # updates without an answer after which nobody is looking

_closed: OrderedDict[int, View[Any]] = OrderedDict()
_alive: Final[weakref.WeakSet[View[Any]]] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a process that has just been forked: a thread that has gone may have held them."""
    for view in list(_alive):
        view._lock = threading.Lock()


forking.in_child(_renew_locks)


class Channel(Protocol):
    """What carries a view's updates to the page: its widget, or its part of a dashboard's (`live.panel`)."""

    @property
    def comm(self) -> Any:
        """The connection to the page; None where it is closed."""

    def send(self, content: Any, buffers: Any = None) -> None:
        """Sends a message to all pages that show it."""

    def close(self) -> None:
        """Takes it off the page."""


class View(Generic[F]):
    """A live view. Display it, and it follows the engine until its output goes away.

    `widget` is the Jupyter widget, for use inside layouts of ipywidgets, which keep it until `close()`; `static()` is
    the view as it stands, without a widget; `state()` is what it shows, as JSON.

    Each kind of view is a subclass in a file of its own. It names its fold (the type, and what it gives to `__init__`),
    its static forms (`_figure`), and its widget with its script.

    >>> import limelight as ll
    >>> view = ll.widgets.devices()
    >>> isinstance(view, ll.widgets.View), view.name
    (True, 'devices')
    """

    name: ClassVar[str]
    """The name of its function in `ll.widgets`, of its magic and of its script."""
    widget_type: ClassVar[type[ViewWidget]]
    looks: ClassVar[bool] = False
    """Whether it looks for itself while it is open, ten times a second, at what sends no events."""

    def __init__(self, fold: F) -> None:
        self._feed = Feed(fold, self._publish, self._refresh, looks=self.looks, followed=self._followed)
        self._lock = threading.Lock()
        _alive.add(self)
        self._made: Channel | None = None
        self._mark = 0
        self._sent = 0
        self._seen = 0
        self._lookers: set[str] = set()
        self._pages: set[str] = set()  # that have ever looked
        self._handed_out = False
        self._told: State | None = None  # what the static forms in its output show
        self._drawn: dict[str, str] = {}  # those forms
        self._is_part = False
        self._interval = INTERVAL

    def state(self) -> State:
        """What the view shows."""
        return self._feed.read()

    def _shown(self) -> State:
        """What the view shows, for its widget and its forms."""
        return self._feed.read(shown)

    def static(self) -> Figure:
        """The view as it stands, in forms that need no widget: text, HTML and SVG."""
        state = self._shown()
        with collector_paused():
            return self._figure(state)

    def to_dict(self) -> dict[str, Any]:
        """What the view shows, ready for JSON."""
        told: dict[str, Any] = files.json_ready(dict(self.state()))
        return told

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes the view as it stands to a file, by its ending: `.svg`, `.png`, `.html`, `.json` or `.txt`.

        Args:
            path: the file's name; a file that is there is replaced.

        Returns:
            what was written, in a sentence.

        Raises:
            ArgumentError: the name ends otherwise.
            ImportError: for a PNG something must be installed.
            OSError: the file cannot be written.
        """
        state = self.state()
        return files.save(path, dict(state), self._figure(state))

    @property
    def is_live(self) -> bool:
        """Whether the view follows the engine: from its display until its output goes away."""
        return self._feed.is_open

    @property
    def widget(self) -> ViewWidget:
        """The Jupyter widget; made, and live, from the first time that it is asked for until `close()`."""
        self._handed_out = True
        made: ViewWidget = self._widget()
        return made

    def shown_widget(self) -> ViewWidget:
        """The widget for the output of the cell that is running; closed when a later run shows something else there."""
        cell_outputs.note(self)
        made: ViewWidget = self._widget()
        return made

    def _widget(self) -> Any:
        with self._lock:
            if self._made is None or self._made.comm is None:
                self._sent = self._seen = 0
                self._feed.open()
                state, self._mark = self._feed.snapshot(shown)
                self._made = self._new_widget(wire.pack(state))
            return self._made

    def _new_widget(self, snapshot: list[bytes]) -> ViewWidget:
        return self.widget_type(self._heard, snapshot)

    def join(self, channel: Channel, interval: float) -> list[bytes]:
        """Becomes part of a dashboard, which has the widget: updates go to `channel`, every `interval` seconds at most.

        Returns the snapshot that is drawn at first; it follows the engine once the page says that it is seen.
        """
        self._made, self._is_part, self._interval = channel, True, interval
        return wire.pack(self._shown())

    def hear(self, kind: str, message: dict[str, Any]) -> None:
        """A message of the page to this part of a dashboard."""
        self._heard(kind, message)

    def close(self) -> None:
        """Stops following the engine, and takes the widget off the page."""
        self._feed.close()
        _closed.pop(id(self), None)
        cell_outputs.forget(self)
        made, self._made = self._made, None
        if made is not None:
            made.close()

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
        if has_front_end():
            shown = self.shown_widget()  # first: the page unpacks what it shows while the forms are drawn here
            return self._forms(self._shown()) | static_outputs.widget_forms(shown.model_id)
        return self._forms(self._shown())

    def _ipython_display_(self) -> None:
        """Where no widget can run but somebody keeps the outputs: shown so that it can be shown anew."""
        if has_front_end() or not static_outputs.are_kept():
            raise NotImplementedError  # then IPython asks for the bundle
        cell_outputs.note(self)
        static_outputs.display(self._forms(self._shown()), self._display_id)

    def cell_ended(self) -> None:
        """Makes the static forms in the output anew, where what they show has changed; called after each cell."""
        if self._made is None or self._lookers:
            self._tell_forms()

    def _tell_forms(self, again: bool = False) -> None:
        if self._told is None:
            return  # it is shown inside something else, whose forms are not of now
        state, before = self._shown(), self._drawn
        if state == self._told and not again:
            return
        forms, widget = self._forms(state), self._made
        if forms == before and not again:  # more is known, none of which they show
            return
        if widget is None:
            static_outputs.display(forms, self._display_id, update=True)
        elif widget.comm is not None:
            widget.send({"type": "static", "model_id": getattr(widget, "model_id", ""), "forms": forms})

    @property
    def _display_id(self) -> str:
        return f"limelight-{id(self):x}"

    def _forms(self, state: State) -> dict[str, str]:
        self._told = state
        with collector_paused():  # a large state takes the collector longer than the figure
            self._drawn = self._figure(state).bundle()
        return self._drawn

    def _figure(self, state: State) -> Figure:
        raise NotImplementedError

    def _refresh(self, fold: F, at_leisure: bool) -> None:
        """Compares the fold with the engine's own accounts, where it has some."""

    def _followed(self, on: bool) -> None:
        """Told when it begins and ceases to follow the engine."""

    def _publish(self, fold: F) -> float:
        widget = self._made
        if widget is None or widget.comm is None:
            return self._interval
        update, mark = fold.since(self._mark)
        if update:
            self._mark = mark
            self._send(widget, "update", update)
        behind = self._sent - self._seen
        if behind > GIVE_UP:
            self._lookers.clear()
            self._feed.close()
        return self._interval if behind <= AHEAD else SLOW_INTERVAL

    def _send(self, widget: Channel, kind: str, state: State) -> None:
        """Sends a state; every fourth wants an answer: a slow front end slows the updates, not the engine."""
        self._sent += 1
        answer = kind == "state" or self._sent % 4 == 0
        parts = wire.pack(state)
        widget.send({"type": kind, "number": self._sent, "answer": answer}, buffers=parts)

    def _heard(self, kind: str, message: dict[str, Any]) -> None:
        """A message of the front end, or of the widget when it is closed; comes on any thread."""
        looker = str(message.get("view", ""))
        if kind == "opened":
            if looker not in self._lookers:
                # Another page has the forms that were saved, which may be older than those that were told the last one.
                another = bool(self._pages - {looker})
                self._lookers.add(looker)
                self._pages.add(looker)
                self._tell_forms(again=another)  # of what the cell has done since it showed this
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
                if not self._is_part:
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


def _retire(view: View[Any]) -> None:
    _closed[id(view)] = view
    while len(_closed) > MOST_CLOSED:
        _closed.popitem(last=False)[1].close()
