"""What is chosen in one view, for the others: a trace that is chosen in a cache is the one that graphs show."""

from __future__ import annotations

import weakref
from typing import Final, Protocol


class Follower(Protocol):
    """A view that shows one trace of a function."""

    def show_trace(self, function_id: int, index: int) -> None:
        """Shows the trace `index` of a function, if this is a view of that function."""


_followers: Final[weakref.WeakSet[Follower]] = weakref.WeakSet()


def follow(view: Follower) -> None:
    """From now on `view` is told which trace is chosen; held weakly."""
    _followers.add(view)


def choose_trace(function_id: int, index: int) -> None:
    """Tells all followers that the trace `index` of a function is chosen."""
    for view in list(_followers):
        view.show_trace(function_id, index)
