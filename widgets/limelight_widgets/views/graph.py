"""The graph view: ops and values, name scopes and nested functions, and the lines of code that made them.

What its script in the page (`js/src/graph`) does, and why so:

- The view opens on as much as can be read in its room (`first-sight.js`): at its natural size, some 40 boxes at most,
  groups by what they are worth. Forward, backward and update have lanes; chains that are too long go on in another row.
  It looks again when the room changes, until the reader moves or opens something.
- Opening a box does not move its corner: the upper left one, or another where that shows more of what is opened. The
  view grows (to 720 pixels or three quarters of the window), and the picture shrinks about that corner while it can be
  read; signs at the edges count the boxes beyond them.
- A graph that is seen whole has its code beside it, below it in narrow views. A larger one has the whole view; the code
  comes over it where something is chosen, on the other side of what that is.
- One count of ops for each line of code (`line-counts.js`): each op counts once, at the innermost line that led to it,
  constants too. Those of functions that the graph calls stand at their own lines, whoever called first, and are told
  apart.
- Of a graph of more than 500 ops the version that is shown comes first, and the other, with what links both, once the
  page has drawn it; of one of more than 5,000 when the reader asks for it.
- In the optimised graph, functions are shown as they run, linked op by op to what was traced (`folds.version_links`).
"""

from __future__ import annotations

import json
import threading
from os import PathLike
from typing import Any, Final, Literal

import anywidget
import traitlets

from limelight.errors import ArgumentError
from limelight.explain import Costs
from limelight.explain.gradient_graph import gradient_of_sum
from limelight.export import call_of
from limelight.staging.function import Function
from limelight.staging.graph_function import GraphFunction
from limelight_widgets.figures import graph_files
from limelight_widgets.figures.graph import graph_figure
from limelight_widgets.figures.overlays import OVERLAYS, Overlay
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.dashboard import NewestGraphFold
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph import GraphFold, Which
from limelight_widgets.live.front_end import has_front_end
from limelight_widgets.live.layout_widget import shared_engine
from limelight_widgets.live.view_script import script, shared_script
from limelight_widgets.live.widget import ViewWidget
from limelight_widgets.views import selection
from limelight_widgets.views.view import View

LOOK: Final = 0.4  # seconds between two looks at a trace that runs, at least
SHARE: Final = 20  # times as long as the last look took: it takes the trace's own time


class GraphWidget(ViewWidget):
    """Draws a graph; `engine` lays it out where it is large."""

    script_path = script("graph")

    engine = anywidget.WidgetTrait().tag(sync=True)

    @traitlets.default("engine")
    def _default_engine(self) -> Any:
        return shared_engine()

    @classmethod
    def preload(cls) -> None:
        """Has the page load what all of them share, while the kernel still describes the first one's graph."""
        if has_front_end():
            shared_engine()
            shared_script(cls.script_path)


class GraphView(View[GraphFold | NewestGraphFold]):
    """A graph: its ops and values, name scopes and nested functions, and the lines of code that made them.

    >>> import limelight as ll
    >>> double = ll.function(lambda x: x + x, name="double")
    >>> y = double(ll.ones(3))
    >>> view = ll.widgets.graph(double)
    >>> view.state()["title"]
    'double'
    """

    name = "graph"
    widget_type = GraphWidget
    _timer: threading.Timer | None = None  # until the next look at a trace that runs

    def __init__(
        self,
        subject: Any,
        which: Which = "optimised",
        trace: int = -1,
        costs: Any = None,
        overlay: str = "",
        diff: Any = None,
        begin: State | None = None,
    ) -> None:
        GraphWidget.preload()
        super().__init__(GraphFold(subject, which, trace, costs, overlay, diff, begin, brief=has_front_end()))
        self._which = which
        selection.follow(self)

    def _refresh(self, fold: GraphFold | NewestGraphFold, at_leisure: bool) -> None:
        """Looks at a trace that runs from time to time."""
        if self._timer is None and fold.runs:
            self._look_again(LOOK)

    def _look_again(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        fold = self._feed.fold
        self._timer = None
        self._feed.change(lambda fold: fold.grow())
        if fold.runs and self.is_live:
            self._look_again(max(LOOK, SHARE * fold.seconds))

    def cell_ended(self) -> None:
        """Looks whether a function whose call had failed has been called well since."""
        if self._feed.is_open and self._feed.fold.has_failed:
            self._feed.change(lambda fold: fold.catch_up())
        super().cell_ended()

    def show_trace(self, function_id: int, index: int) -> None:
        """Switches to the trace `index`, where this is a view of that function."""
        self._feed.change(lambda fold: fold.choose(function_id, index))

    def to_dict(self) -> dict[str, Any]:
        """The graph and all that the view knows of it, as `save` writes it to a `.json`; without a trace, the state."""
        state = self.state()
        if not state["variants"]:
            return super().to_dict()
        told: dict[str, Any] = json.loads(graph_files.as_json(state, self._which))
        return told

    def save(self, path: str | PathLike[str]) -> str:
        """Writes the graph as it stands to a file: `.svg`, `.png`, `.html`, `.dot`, `.json`, `.me.json` or `.txt`.

        A file of that name is replaced. `.me.json` is for Model Explorer; a PNG needs `cairosvg`.

        Args:
            path: the file's name.

        Returns:
            what was written, in a sentence.

        Raises:
            ArgumentError: nothing is traced yet, or the name ends otherwise.
            ImportError: for a PNG something must be installed.
            OSError: the file cannot be written.

        >>> import limelight as ll, pathlib, tempfile
        >>> double = ll.function(lambda x: x + x)
        >>> y = double(ll.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     said = ll.widgets.graph(double).save(f"{folder}/double.svg")
        ...     pathlib.Path(folder, "double.svg").read_text()[:4]
        '<svg'
        """
        self._feed.change(lambda fold: fold.describe_all())
        state = self.state()
        return graph_files.write(path, state, self._which, lambda: self._figure(state))

    def _asked(self, kind: str, message: dict[str, Any]) -> None:
        if kind == "whole":
            self._feed.change(lambda fold: fold.describe_all())

    def _figure(self, state: State) -> Figure:
        return graph_figure(state, self._which)


def graph(
    subject: Any,
    which: Literal["optimised", "traced", "backward"] = "optimised",
    trace: int = -1,
    *,
    costs: Costs | None = None,
    overlay: Overlay | None = None,
    diff: tuple[int, int] | None = None,
    find: str = "",
    depth: int | None = None,
    after: int | str | None = None,
) -> GraphView:
    """The graph of a staged function, of one of its traces, or a graph as it is.

    Args:
        subject: a staged function, an entry of its trace cache, a concrete function, what was loaded, or a graph.
        which: the version shown first; the view switches between both. "backward" is the trace and behind it the
            gradient of the sum of its floating results, by all floating inputs and trainable variables.
        trace: which trace of a staged function, counted from 0; -1 is the newest, and follows new ones.
        costs: what the ops of a call take and give, from `limelight.explain.costs`; for overlays of what is measured;
            with its `gradient_of` for "backward".
        overlay: what is told on the boxes at first: "time", "bytes", "device", "nan" or "grad".
        diff: two traces to compare, counted from 0.
        find: what is sought at first, as in the view's own box: "op:matmul dtype:f32 line:7"; static forms list these
            ops alone.
        depth: how many levels of groups and called functions are open at first; None for as many as can be read.
        after: the graph as this pass left it, by its name or by the number of passes that have changed something.

    Raises:
        TypeError: `subject` has no graph.
        ValueError: `which` is none of these, or there is no such overlay.
        IndexError: there is no such trace.
        ArgumentError: no such pass has changed the graph, there is nothing to differentiate, or `depth` is below 0.

    >>> import limelight as ll
    >>> F = ll.function(lambda x: -(-x) + x)
    >>> y = F(ll.ones((2,)))
    >>> "2 of 3 ops match op:neg" in " ".join(ll.widgets.graph(F, "traced", find="op:neg").static().text.split())
    True
    """
    if overlay is not None and overlay not in OVERLAYS:
        raise ArgumentError(f"overlay={overlay!r}: a graph view tells {', '.join(OVERLAYS)}")
    if depth is not None and depth < 0:
        raise ArgumentError(f"depth={depth}: groups are open to a depth of 0 or more")
    subject = call_of(subject)
    if which == "backward":
        subject, which = _backward(subject, trace, costs), "traced"
    begin: State = ({"find": find} if find else {}) | ({} if depth is None else {"depth": depth})
    if after is not None:
        begin["stop"] = _stop(GraphFold(subject, which, trace).state(), after)
    return GraphView(subject, which, trace, costs, overlay or "", diff, begin)


def _backward(subject: Any, trace: int, costs: Costs | None) -> GraphFunction:
    """A trace and its gradient in one graph: the one that was measured, unless another trace is asked for."""
    cache = getattr(subject, "trace_cache", None)
    measured = None if costs is None or costs.graph is costs.entry.function.optimised.graph else costs
    if measured is not None and (trace == -1 or cache is None or cache[trace] is measured.entry):
        return GraphFunction(measured.graph)
    if cache is not None and not len(cache):
        raise ArgumentError(f"{subject.name} has not been traced yet: call it once, and its gradient can be shown")
    entry = subject if cache is None else cache[trace]
    summed = subject.summed_outputs(entry) if isinstance(subject, Function) else None
    return GraphFunction(gradient_of_sum(getattr(entry, "graph", entry), summed))


def _stop(state: State, after: int | str) -> int:
    """The stop of a graph's history that a pass means."""
    names = [one["name"] for one in state.get("history", {"stops": []})["stops"]]
    if isinstance(after, int) and 0 <= after < len(names):
        return after
    if after in names[1:]:
        return names.index(str(after), 1)
    there = ", ".join([f"{i} ({name})" for i, name in enumerate(names)])
    said = f"these have: {there}" if names else "none has, or it is too large to follow"
    raise ArgumentError(f"after={after!r}: no such pass has changed the graph; {said}")
