"""The cards of an answer: what happened, before and after, what it cost, where, and the fix as code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.explain.story import Story
from limelight_widgets.figures.explain import explain_figure
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.explain import ExplainFold
from limelight_widgets.folds.fold import State
from limelight_widgets.live.view_script import script
from limelight_widgets.live.widget import ViewWidget
from limelight_widgets.views.view import View


class ExplainWidget(ViewWidget):
    """Draws cards."""

    script_path = script("explain")


class ExplainView(View[ExplainFold]):
    """The stories of an answer, a card each.

    >>> import limelight as ll
    >>> v = ll.constant(2.0)
    >>> with ll.GradientTape() as tape:
    ...     y = v * v
    >>> view = ll.widgets.explain(ll.explain.why_none(tape, y, v))
    >>> len(view.state()["stories"])
    1
    """

    name = "explain"
    widget_type = ExplainWidget

    def __init__(self, stories: Sequence[Story], text: str, notes: Sequence[str] = ()) -> None:
        super().__init__(ExplainFold(stories, text, notes))

    def _figure(self, state: State) -> Figure:
        return explain_figure(state)


def explain(answer: Any) -> ExplainView:
    """An answer of `limelight.explain` as cards, the costliest first.

    >>> import limelight as ll
    >>> x = ll.constant(2.0)
    >>> with ll.GradientTape() as tape:
    ...     y = x * x
    >>> print(ll.widgets.explain(ll.explain.why_none(tape, y, x)).static().text)
    `y` has no gradient for `x`: `x` was never watched: a tape follows variables by itself, tensors when told to.
    Fix: tape.watch(x)

    Raises:
        TypeError: `answer` is no record of `limelight.explain`.
    """
    return ExplainView(stories_of(answer), str(answer), getattr(answer, "notes", ()))


def stories_of(answer: Any) -> tuple[Story, ...]:
    """The stories of an answer; raises as `explain` does."""
    if hasattr(answer, "stories"):
        return tuple(answer.stories)
    if not hasattr(answer, "to_story"):
        raise TypeError(f"this view shows an answer of limelight.explain; this is a {type(answer).__name__}")
    return (answer.to_story(),)
