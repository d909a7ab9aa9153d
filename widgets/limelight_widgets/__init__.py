"""The views: what the engine does, seen in a notebook, live or printed.

Each function returns a view. Display it (or let it be a cell's last value), and it shows a widget that follows the
engine while cells run; where no widget can run it is a picture, a table and plain text. `view.static()` is only these.

>>> import limelight as ll
>>> with ll.GradientTape() as recording:
...     y = ll.Variable(3.0) * 2.0
>>> print(tape(recording).static().text.splitlines()[0])  # doctest: +ELLIPSIS
Gradient tape: ...
"""

from __future__ import annotations

from typing import Any, Literal

from limelight.staging.function import alive as staged_functions
from limelight_widgets.view import View as View
from limelight_widgets.views import CacheView as CacheView
from limelight_widgets.views import DevicesView as DevicesView
from limelight_widgets.views import GraphView as GraphView
from limelight_widgets.views import TapeView as TapeView

__all__ = ["CacheView", "DevicesView", "GraphView", "TapeView", "View", "devices", "graph", "tape", "trace_cache"]


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


def trace_cache(function: Any = None) -> CacheView:
    """The trace cache of a staged function; when None, of all that have been traced or will be while it is shown.

    Raises:
        TypeError: `function` is not a staged function.
    """
    if function is None:
        return CacheView(tuple(staged_functions()), only=False)
    if not hasattr(function, "trace_cache"):
        raise TypeError(
            f"only a staged function has a trace cache; this is a {type(function).__name__}. "
            "Stage it first: F = limelight.function(f)"
        )
    return CacheView((function,), only=True)


def tape(tape: Any) -> TapeView:
    """The entries of a gradient tape, those it has and those it records while the view is open.

    Raises:
        TypeError: `tape` is not a gradient tape.
    """
    if not hasattr(tape, "entries"):
        raise TypeError(f"this view shows a gradient tape (limelight.GradientTape); this is a {type(tape).__name__}")
    return TapeView(tape)


def devices() -> DevicesView:
    """Every device: live bytes, peak, ops that ran, and the copies between devices."""
    return DevicesView()
