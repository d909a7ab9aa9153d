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

import os
from typing import TYPE_CHECKING, Any

from limelight.user_code import source_line
from limelight_widgets.figures.tensor_tile import TensorTile as TensorTile
from limelight_widgets.figures.tensor_tile import tensor_tile as tensor_tile
from limelight_widgets.live.widget import set_theme as set_theme
from limelight_widgets.players.steps import steps as steps
from limelight_widgets.views.checkpoint import CheckpointView as CheckpointView
from limelight_widgets.views.checkpoint import checkpoint as checkpoint
from limelight_widgets.views.dashboard import DashboardView as DashboardView
from limelight_widgets.views.dashboard import close_dashboard as close_dashboard
from limelight_widgets.views.dashboard import dashboard as dashboard
from limelight_widgets.views.dashboard import reset_dashboard as reset_dashboard
from limelight_widgets.views.devices import DevicesView as DevicesView
from limelight_widgets.views.devices import devices as devices
from limelight_widgets.views.explain import ExplainView as ExplainView
from limelight_widgets.views.explain import explain as explain
from limelight_widgets.views.graph import GraphView as GraphView
from limelight_widgets.views.graph import graph as graph
from limelight_widgets.views.tape import TapeView as TapeView
from limelight_widgets.views.tape import tape as tape
from limelight_widgets.views.trace_cache import CacheView as CacheView
from limelight_widgets.views.trace_cache import trace_cache as trace_cache
from limelight_widgets.views.view import View as View

source_line.hide(os.path.dirname(__file__))  # what listens while a line of the user's runs is no part of it

VIEWS: tuple[type[View[Any]], ...] = (
    CacheView,
    CheckpointView,
    DashboardView,
    DevicesView,
    ExplainView,
    GraphView,
    TapeView,
)
"""Every view, imported above and registered here; which names, magics and scripts there must be follows from it."""

OTHERS = ("TensorTile", "tensor_tile", "steps", "close_dashboard", "reset_dashboard", "set_theme")
"""What shows a single value or a recording, which follow nothing and so are no views; and what changes views."""

if not TYPE_CHECKING:  # type checkers read the imports above
    names = [*(view.__name__ for view in VIEWS), *(view.name for view in VIEWS)]
    __all__ = [*names, "View", *OTHERS]  # noqa: PLE0604  # strings, by their types
