"""Static forms of checkpoints: what is in a file, how it is matched with objects, how two files differ."""

from __future__ import annotations

from typing import Any

from limelight_widgets.figures.static_forms import Figure, figure
from limelight_widgets.figures.table_picture import MOST_TABLE_ROWS, Column, table_figure


def checkpoint_figure(state: dict[str, Any], text: str) -> Figure:
    """The table of a state of the checkpoint view, values that need a look first.

    Args:
        state: the fold's.
        text: the answer in plain text, a tree.
    """
    heading, headline = state["heading"], state["headline"]
    if state["empty"]:
        return figure(heading, headline, None, None)
    shown = state["rows"][:MOST_TABLE_ROWS]
    drawn = [Column(name, [row[i] for row in shown], widest=60) for i, name in enumerate(state["columns"])]
    forms = table_figure(heading, headline, drawn, len(state["rows"]) + state["hidden"])
    return Figure(text, forms.html, forms.svg)
