"""The graph view: ops and values, name scopes and nested functions, and the lines of code that made them.

What its script in the page (`js/src/graph`) does, and why so:

- The view opens on as much as can be read in its room (`first-sight.js`): at its natural size, some 40 boxes at most,
  groups by what they are worth. Forward, backward and update have lanes; chains that are too long go on in another row.
  It looks again when the room changes, until the reader moves or opens something.
- Opening a box does not move its corner. The view grows (to 720 pixels or three quarters of the window), and the
  picture shrinks about that corner while it can be read; signs at the edges count the boxes beyond them.
- A graph that is seen whole has its code beside it, below it in narrow views. A larger one has the whole view; the code
  comes over it where something is chosen, on the other side of what that is.
- One count of ops for each line of code (`line-counts.js`): each op counts once, at the innermost line that led to it,
  constants too. Those of functions that the graph calls stand at their own lines, whoever called first, and are told
  apart.
- In the optimised graph, functions are shown as they run, linked op by op to what was traced (`folds.version_links`).
"""

from __future__ import annotations

from typing import Any, Literal

import anywidget
import traitlets

from limelight_widgets.figures.graph import graph_figure
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph import GraphFold, Which
from limelight_widgets.live.layout_widget import shared_engine
from limelight_widgets.live.view_script import script
from limelight_widgets.live.widget import ViewWidget
from limelight_widgets.views import selection
from limelight_widgets.views.view import View


class GraphWidget(ViewWidget):
    """Draws a graph; `engine` lays it out where it is large."""

    script_path = script("graph")

    engine = anywidget.WidgetTrait().tag(sync=True)

    @traitlets.default("engine")
    def _default_engine(self) -> Any:
        return shared_engine()


class GraphView(View):
    """A graph: its ops and values, name scopes and nested functions, and the lines of code that made them."""

    name = "graph"
    widget_type = GraphWidget

    def __init__(self, subject: Any, which: Which = "optimised", trace: int = -1) -> None:
        super().__init__(GraphFold(subject, which, trace))
        self._which = which
        selection.follow(self)

    def show_trace(self, function_id: int, index: int) -> None:
        """Switches to the trace `index`, where this is a view of that function."""
        self._feed.change(lambda fold: fold.choose(function_id, index))

    def _figure(self, state: State) -> Figure:
        return graph_figure(state, self._which)


def graph(subject: Any, which: Literal["optimised", "traced"] = "optimised", trace: int = -1) -> GraphView:
    """The graph of a staged function, of one of its traces, or a graph as it is.

    Args:
        subject: a staged function, an entry of its trace cache, a concrete function, or a graph.
        which: the version shown first; the view switches between both.
        trace: which trace of a staged function, counted from 0; -1 is the newest, and follows new ones.

    Raises:
        TypeError: `subject` has no graph.
        ValueError: `which` is neither "optimised" nor "traced".
        IndexError: there is no such trace.
    """
    return GraphView(subject, which, trace)
