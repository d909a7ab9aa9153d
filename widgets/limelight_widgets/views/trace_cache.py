"""The trace-cache view: entries, how often each was used, and why each was traced."""

from __future__ import annotations

import weakref
from typing import Any

from limelight.errors import ArgumentError
from limelight.export import call_of
from limelight.staging.function import alive as staged_functions
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.figures.trace_cache import cache_figure
from limelight_widgets.figures.trace_diff import differences
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.trace_cache import SORTS, CacheFold, Sort
from limelight_widgets.folds.user_functions import is_user_function
from limelight_widgets.live import what_if
from limelight_widgets.live.view_script import script
from limelight_widgets.live.widget import ViewWidget
from limelight_widgets.views import selection
from limelight_widgets.views.view import View

MOST = 2_000  # characters of a call that somebody types


class CacheWidget(ViewWidget):
    """Draws a trace cache."""

    script_path = script("trace_cache")


class CacheView(View[CacheFold]):
    """A trace cache: its entries, how often each was used, and why each was traced.

    >>> import limelight as ll
    >>> double = ll.function(lambda x: x + x, name="double")
    >>> y = double(ll.ones(3))
    >>> view = ll.widgets.trace_cache(double)
    >>> len(view.state()["functions"][0]["entries"])
    1
    """

    name = "trace_cache"
    widget_type = CacheWidget
    looks = True

    def __init__(self, functions: tuple[Any, ...], *, only: bool, internals: bool = False, sort: Sort = "time") -> None:
        super().__init__(CacheFold(functions, only=only, internals=internals, sort=sort))
        self._only = weakref.ref(functions[0]) if only else None

    def _refresh(self, fold: CacheFold, at_leisure: bool) -> None:
        fold.look()

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


def trace_cache(function: Any = None, *, sort: Sort = "time", internals: bool = False) -> CacheView:
    """The trace cache of a staged function; when None, of all that have been traced or will be while it is shown.

    Args:
        function: the function.
        sort: the order of its traces: "time", as they were made; "cost", the longest traced first; "count", the most
            used first.
        internals: without a function also those that the library has staged, such as the gradient of a staged cell.

    Raises:
        ArgumentError: there is no such order.
        TypeError: `function` is not a staged function.

    >>> import limelight as ll
    >>> double = ll.function(lambda x: x + x)
    >>> y = [double(ll.ones((n,))) for n in (3, 4, 4)]
    >>> [entry["index"] for entry in ll.widgets.trace_cache(double, sort="count").state()["functions"][0]["entries"]]
    [1, 0]
    """
    if sort not in SORTS:
        raise ArgumentError(f"sort={sort!r}: traces are sorted by {', '.join(SORTS)}")
    if function is None:
        shown = [one for one in staged_functions() if internals or is_user_function(one)]
        return CacheView(tuple(shown), only=False, internals=internals, sort=sort)
    function = call_of(function)
    if not hasattr(function, "trace_cache"):
        raise TypeError(
            f"only a staged function has a trace cache; this is a {type(function).__name__}. "
            "Stage it first: F = limelight.function(f)"
        )
    return CacheView((function,), only=True, sort=sort)
