"""A gradient tape without a widget."""

from __future__ import annotations

from limelight_widgets.figures.static_forms import Figure, figure
from limelight_widgets.figures.table_picture import MOST_TABLE_ROWS, Column, drawn_table, line_text, shares, table_of
from limelight_widgets.folds.fold import State
from limelight_widgets.format import bytes_text, counted


def tape_figure(state: State) -> Figure:
    """The static forms of a tape fold's state."""
    if state["empty"]:
        return figure("Gradient tape", state["empty"], None, None)
    kept = "released" if state["released"] else "kept alive"
    summary = f"{counted(state['entries'], 'entry', 'entries')}, {bytes_text(state['saved'])} {kept}"
    rows = state["rows"][:MOST_TABLE_ROWS]
    columns = [
        Column("#", [str(row[0]) for row in rows], True),
        Column("op", [row[1] for row in rows]),
        Column("line", [line_text(row[2]) for row in rows]),
        Column("inputs", [", ".join(row[3]) for row in rows]),
        Column("output", [", ".join(row[4]) for row in rows]),
        Column("saved", [bytes_text(row[5]) for row in rows], True, shares([row[5] for row in rows])),
        Column("rule", [row[6] for row in rows], widest=60),
    ]
    picture = drawn_table("Gradient tape", summary, columns)
    return figure("Gradient tape", summary, picture, table_of(columns, state["entries"] - len(rows), state["hint"]))
