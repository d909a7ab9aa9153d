"""What a live view asks of a fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from limelight import events

State = dict[str, Any]
"""JSON, but for arrays of numbers (`array.array`), which travel as binary buffers."""


class Fold(Protocol):
    """Collects events into a state.

    One thread at a time uses a fold. `apply` is called once for each event, in the order in which they were emitted;
    `state` and `since` may be called at any moment in between and cost time in proportion to what they return.
    """

    kinds: tuple[type[events.Event], ...]
    """The kinds of events that the fold wants to see."""

    def apply(self, event: events.Event) -> bool:
        """Takes in one event; says whether the state may look different now."""

    def catch_up(self) -> None:
        """Called when events begin to come, for the first time or again: some may have been missed."""

    def state(self) -> State:
        """The whole state, for a view that has just been opened."""

    def since(self, mark: int) -> tuple[State, int]:
        """What a view needs that has seen everything up to `mark`, and its new mark; 0 has seen nothing."""


def shown(fold: Fold) -> State:
    """The state of a fold for its own view; some (those with `shown`) have parts that are made when they are asked for.

    `state` is what anybody may read, as `json` does.
    """
    tell: Callable[[], State] = getattr(fold, "shown", fold.state)
    return tell()
