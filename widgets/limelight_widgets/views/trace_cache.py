"""The trace-cache view: entries, how often each was used, and why each was traced."""

from __future__ import annotations

import weakref
from typing import Any

from limelight.export import call_of
from limelight.staging.function import alive as staged_functions
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.figures.trace_cache import cache_figure
from limelight_widgets.figures.trace_diff import differences
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.trace_cache import CacheFold
from limelight_widgets.live import what_if
from limelight_widgets.live.view_script import script
from limelight_widgets.live.widget import ViewWidget
from limelight_widgets.views import selection
from limelight_widgets.views.view import View

MOST = 2_000  # characters of a call that somebody types


class CacheWidget(ViewWidget):
    """Draws a trace cache."""

    script_path = script("trace_cache")


class CacheView(View):
    """A trace cache: its entries, how often each was used, and why each was traced."""

    name = "trace_cache"
    widget_type = CacheWidget

    def __init__(self, functions: tuple[Any, ...], *, only: bool) -> None:
        super().__init__(CacheFold(functions, only=only))
        self._only = weakref.ref(functions[0]) if only else None

    def _figure(self, state: State) -> Figure:
        return cache_figure(state)

    def _asked(self, kind: str, message: dict[str, Any]) -> None:
        if kind == "would":
            said = what_if.answer(str(message.get("call", ""))[:MOST], self._only and self._only())
            self._feed.change(lambda fold: fold.answer(said))
        if kind != "chosen":
            return
        chosen = [[int(function), int(index)] for function, index in message["traces"]]
        self._feed.change(lambda fold: fold.choose(chosen, _difference(chosen)))
        if len(chosen) == 1:
            selection.choose_trace(*chosen[0])


def _difference(chosen: list[list[int]]) -> State | None:
    """What distinguishes two chosen traces of one function; None for others, and for traces that have gone."""
    if len(chosen) != 2 or chosen[0][0] != chosen[1][0]:
        return None
    function = next((one for one in staged_functions() if one.id == chosen[0][0]), None)
    at = {entry.index: position for position, entry in enumerate(getattr(function, "trace_cache", ()))}
    chosen = sorted(chosen)
    if not all(index in at for _, index in chosen):
        return None
    said = differences(function, *(at[index] for _, index in chosen))
    tables = [
        {"name": name, "columns": list(t.columns), "rows": [list(r) for r in t.rows]} for name, t in said.tables()
    ]
    return {"sentence": said.sentence, "tables": tables}


def trace_cache(function: Any = None) -> CacheView:
    """The trace cache of a staged function; when None, of all that have been traced or will be while it is shown.

    Raises:
        TypeError: `function` is not a staged function.
    """
    if function is None:
        return CacheView(tuple(staged_functions()), only=False)
    function = call_of(function)
    if not hasattr(function, "trace_cache"):
        raise TypeError(
            f"only a staged function has a trace cache; this is a {type(function).__name__}. "
            "Stage it first: F = limelight.function(f)"
        )
    return CacheView((function,), only=True)
