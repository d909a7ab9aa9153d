"""The tape view: what a gradient tape recorded, and what each record keeps alive."""

from __future__ import annotations

from typing import Any

from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.figures.tape import tape_figure
from limelight_widgets.folds.dashboard import NewestTapeFold
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.tape import TapeFold
from limelight_widgets.live.view_script import script
from limelight_widgets.live.widget import ViewWidget
from limelight_widgets.views.view import View


class TapeWidget(ViewWidget):
    """Draws a gradient tape."""

    script_path = script("tape")


class TapeView(View[TapeFold | NewestTapeFold]):
    """A gradient tape: its entries in order, the bytes that each keeps alive, and the rule that each will apply.

    >>> import limelight as ll
    >>> with ll.GradientTape() as tape:
    ...     y = ll.Variable(3.0) * 2.0
    >>> view = ll.widgets.tape(tape)
    >>> view.state()["entries"]
    2
    """

    name = "tape"
    widget_type = TapeWidget

    def __init__(self, tape: Any) -> None:
        super().__init__(TapeFold(tape))

    def _figure(self, state: State) -> Figure:
        return tape_figure(state)


def tape(tape: Any) -> TapeView:
    """The entries of a gradient tape, those it has and those it records while the view is open.

    Raises:
        TypeError: `tape` is not a gradient tape.

    >>> import limelight as ll
    >>> with ll.GradientTape() as recording:
    ...     y = ll.Variable(3.0) * 2.0
    >>> view = ll.widgets.tape(recording)
    >>> view.state()["entries"]
    2
    """
    if not hasattr(tape, "entries"):
        raise TypeError(f"this view shows a gradient tape (limelight.GradientTape); this is a {type(tape).__name__}")
    return TapeView(tape)
