"""The fold of explanations: what was asked and answered once, so that no event changes it."""

from __future__ import annotations

from collections.abc import Sequence

from limelight import events
from limelight.explain.story import Story
from limelight_widgets.folds.fold import State

MOST = 24
"""Cards of one answer: the costliest come first, and beyond these nobody reads."""


class ExplainFold:
    """The stories of one answer.

    Args:
        stories: in the order in which they are shown.
        text: the answer in plain text; what is shown where there are no stories.
        notes: lines about the whole, folded away below the cards.
    """

    kinds: tuple[type[events.Event], ...] = ()

    def __init__(self, stories: Sequence[Story], text: str, notes: Sequence[str] = ()) -> None:
        left_out = len(stories) - MOST
        more = [f"{left_out:,} more causes, each of less cost than these."] if left_out > 0 else []
        self._state: State = {
            "stories": [story.to_dict() for story in stories[:MOST]],
            "text": text,
            "notes": [*notes, *more],
        }

    def apply(self, event: events.Event) -> bool:
        """Nothing changes an answer that was given."""
        return False

    def catch_up(self) -> None:
        """Nothing is missed."""

    def state(self) -> State:
        return self._state

    def since(self, mark: int) -> tuple[State, int]:
        return ({}, 1) if mark else (self._state, 1)
