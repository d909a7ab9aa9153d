"""What is chosen in one view, for the others: one selection in a kernel.

A trace that is chosen in a cache is the one that graphs show. In a dashboard an op, its line and the tensor are chosen,
too: the page links its own views at once, and tells the kernel.

>>> from limelight_widgets.views import selection
>>> chosen = choose(Selection(op="matmul", line=("In[3]", 4)))
>>> selection.current().line
('In[3]', 4)
>>> choose(Selection()).to_dict()
{}
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol


class Selection(NamedTuple):
    """What is chosen; "" and None where nothing of the kind is.

    `line` is the name of a cell or file and a line's number, `trace` the id of a function and the index of a trace.
    """

    op: str = ""
    line: tuple[str, int] | None = None
    tensor: str = ""
    trace: tuple[int, int] | None = None

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Selection:
        """The selection in a message of the page."""
        line, trace = message.get("line"), message.get("trace")
        return cls(
            str(message.get("op") or ""),
            (str(line[0]), int(line[1])) if line else None,
            str(message.get("tensor") or ""),
            (int(trace[0]), int(trace[1])) if trace else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, without what is not chosen."""
        return {name: part for name, part in self._asdict().items() if part}


class Follower(Protocol):
    """A view that shows one trace of a function."""

    def show_trace(self, function_id: int, index: int) -> None:
        """Shows the trace `index` of a function, if this is a view of that function."""


_followers: Final[weakref.WeakSet[Follower]] = weakref.WeakSet()
_current: list[Selection] = [Selection()]


def follow(view: Follower) -> None:
    """From now on `view` is told which trace is chosen, and if it has a method `selected`, all; held weakly."""
    _followers.add(view)


def current() -> Selection:
    """What is chosen now."""
    return _current[0]


def choose(chosen: Selection) -> Selection:
    """Tells all followers what is chosen."""
    before, _current[0] = _current[0], chosen
    for view in list(_followers):
        if chosen.trace is not None and chosen.trace != before.trace:
            view.show_trace(*chosen.trace)
        if hasattr(view, "selected"):
            view.selected(chosen)
    return chosen


def choose_trace(function_id: int, index: int) -> None:
    """Tells all followers that the trace `index` of a function is chosen."""
    _current[0] = _current[0]._replace(trace=None)  # it may be chosen again, after a view has shown another
    choose(Selection(trace=(function_id, index)))
