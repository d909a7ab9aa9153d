"""A gradient tape without a widget."""

from __future__ import annotations

from typing import Any

from limelight_widgets.figures.static_forms import Figure, figure
from limelight_widgets.figures.table_picture import MOST_TABLE_ROWS, Column, drawn_table, line_text, shares, table_of
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.source_excerpts import line_state
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


def saved_figure(tape: Any) -> Figure:
    """What a tape keeps alive, each tensor once: its bytes, the op that made it, and the ops whose rules need it."""
    saved, entries = tape.saved_tensors, tape.entries
    if not saved:
        return figure("Saved for the gradient", "this tape keeps no tensor alive", None, None)
    summary = f"{counted(len(saved), 'tensor')}, {bytes_text(sum(one.nbytes for one in saved))}"
    shown = saved[:MOST_TABLE_ROWS]
    needed = [", ".join(_op(entries[i]) for i in one.needed_by) for one in shown]
    made = ["from outside" if one.made_by is None else _op(entries[one.made_by]) for one in shown]
    columns = [
        Column("tensor", [one.spec for one in shown]),
        Column("bytes", [bytes_text(one.nbytes) for one in shown], True, shares([one.nbytes for one in shown])),
        Column("made by", made),
        Column("line", ["" if one.made_by is None else _line(entries[one.made_by]) for one in shown]),
        Column("needed by the rules of", needed, widest=60),
    ]
    note = "A tensor is freed with the last rule that needs it; ll.recompute_grad(f) keeps none of those made inside f."
    return figure("Saved for the gradient", summary, drawn_table("Saved for the gradient", summary, columns),
                  table_of(columns, len(saved) - len(shown), note))  # fmt: skip


def _op(entry: Any) -> str:
    return f"{entry.index} {entry.op}"


def _line(entry: Any) -> str:
    return line_text(line_state(entry.source))
