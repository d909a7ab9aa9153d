"""A gradient tape without a widget."""

from __future__ import annotations

import math
from typing import Any

from limelight_widgets.figures.static_forms import Figure, figure
from limelight_widgets.figures.table_picture import MOST_TABLE_ROWS, Column, line_text, shares, table_figure
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.source_excerpts import line_state
from limelight_widgets.format import bytes_text, counted, seconds_text


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
        Column("inputs", [", ".join(row[3]) for row in rows], wraps=True),
        Column("output", [", ".join(row[4]) for row in rows], wraps=True),
        Column("saved", [bytes_text(row[5]) for row in rows], True, shares([row[5] for row in rows])),
        Column("rule", [row[6] for row in rows], widest=60, wraps=True),
    ]
    return table_figure("Gradient tape", summary, columns, state["entries"], state["hint"])


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
    return table_figure("Saved for the gradient", summary, columns, len(saved), note)


def path_figure(path: Any) -> Figure:
    """The answer of `limelight.explain.gradient_path`: the entries between a target and its sources."""
    heading, entries = "On the way of the gradient", path.entries[:MOST_TABLE_ROWS]
    if not entries:
        return figure(heading, str(path), None, None)
    summary = f"{len(path.entries):,} of {counted(path.recorded, 'entry', 'entries')}, {bytes_text(path.nbytes)} kept"
    columns = [
        Column("#", [str(one.index) for one in entries], True),
        Column("op", [one.op for one in entries]),
        Column("from", [", ".join(one.inputs) for one in entries], widest=40, wraps=True),
        Column("to", [", ".join(one.outputs) for one in entries], widest=40, wraps=True),
        Column(
            "keeps", [bytes_text(one.saved_bytes) for one in entries], True, shares([x.saved_bytes for x in entries])
        ),
        Column("rule", [one.rule or "" for one in entries], widest=40),
        Column("line", [_line(one) for one in entries]),
    ]
    note = "The gradient goes back through these alone; what else the tape holds does not lie between."
    return table_figure(heading, summary, columns, len(path.entries), note)


def flow_figure(flow: Any) -> Figure:
    """The answer of `limelight.explain.gradient_flow`: the ops of the gradient, bars by the logarithm of the norm."""
    steps = flow.steps[:MOST_TABLE_ROWS]
    head = str(flow).partition("\n")[0]
    summary = head.rpartition(", ")[2] if not flow.steps else head.partition(", ")[2]
    logs = [math.log10(one.norm) if 0 < one.norm < math.inf else None for one in steps]
    known = [one for one in logs if one is not None]
    least, span = min(known, default=0.0), (max(known, default=0.0) - min(known, default=0.0)) or 1.0
    columns = [
        Column("#", [str(i) for i in range(len(steps))], True),
        Column("op", [one.op for one in steps]),
        Column("gradient", [one.spec for one in steps]),
        Column("norm", [f"{one.norm:.3g}" for one in steps], True,
               [0.0 if one is None else 0.1 + 0.9 * (one - least) / span for one in logs]),
        Column("", [f"⚠ {one.state}" if one.state else "" for one in steps]),
        Column("for", [one.source for one in steps], widest=30),
        Column("line", [line_text(line_state(one.line)) for one in steps]),
        Column("code", ["" if one.line is None else one.line.text for one in steps], widest=50),
    ]  # fmt: skip
    heading = f"Gradient of {flow.name} on its way back"
    note = "Bars are logarithmic. Vanishing: below a millionth of the largest before, with all behind; "
    note += "exploding: above a million."
    return table_figure(heading, summary, columns, len(flow.steps), note)


def recomputations_figure(answer: Any) -> Figure:
    """The answer of `limelight.explain.recomputations`: each tensor that is kept, and what recomputing it costs."""
    heading, records = f"Kept for the gradient of {answer.name}", answer.records[:MOST_TABLE_ROWS]
    if not records:
        return figure(heading, str(answer), None, None)
    summary = f"{counted(len(answer.records), 'tensor')}, {bytes_text(sum(one.nbytes for one in answer.records))}"
    columns = [
        Column("made by", [one.op for one in records]),
        Column("tensor", [one.spec for one in records]),
        Column("saves", [bytes_text(one.nbytes) for one in records], True, shares([one.nbytes for one in records])),
        Column("costs", [seconds_text(one.seconds) for one in records], True),
        Column("runs again", [", ".join(one.again) for one in records], widest=40),
        Column("line", [line_text(line_state(one.line)) for one in records]),
    ]
    note = (
        "Dropping a tensor and recomputing it saves its bytes and costs the time of what runs again, as measured here."
    )
    note += " ll.recompute_grad(f) keeps none of those made inside f."
    return table_figure(heading, summary, columns, len(answer.records), note)


def _op(entry: Any) -> str:
    return f"{entry.index} {entry.op}"


def _line(entry: Any) -> str:
    return line_text(line_state(entry.source))
