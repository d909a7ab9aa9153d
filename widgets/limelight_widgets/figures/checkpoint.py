"""Static forms of checkpoints: what is in a file, how it is matched with objects, how two files differ."""

from __future__ import annotations

from typing import Any

from limelight_widgets.figures.static_forms import Figure, figure
from limelight_widgets.figures.table_picture import MOST_TABLE_ROWS, Column, drawn_table, table_of

_COLUMNS = {
    "Contents": ("Contents of a checkpoint", {"saved at": "path", "value": "value", "kind": "kind"}),
    "MatchTree": (
        "Match of a checkpoint",
        {"saved at": "path", "object": "object", "before": "before", "after": "after", "match": "state", "why": "why"},
    ),
    "Comparison": (
        "Two checkpoints",
        {
            "saved at": "path",
            "what": "state",
            "before": "before",
            "after": "after",
            "by": "relative",
            "at most": "largest",
        },
    ),
}


def checkpoint_figure(answer: Any) -> Figure:
    """The table of an answer of `limelight.checkpoint`, values that need a look first; its text is the tree."""
    heading, columns = _COLUMNS[type(answer).__name__]
    records = sorted(answer.records, key=lambda record: getattr(record, "state", "") in ("matched", "equal"))
    shown = records[:MOST_TABLE_ROWS]
    drawn = [Column(title, [_cell(name, record) for record in shown], widest=60) for title, name in columns.items()]
    if not records:
        return figure(heading, answer.headline, None, None)
    table = table_of(drawn, len(records) - len(shown), "")
    forms = figure(heading, answer.headline, drawn_table(heading, answer.headline, drawn), table)
    return Figure(str(answer), forms.html, forms.svg)


def _cell(name: str, record: Any) -> str:
    value = getattr(record, name)
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2%}" if name == "relative" else f"{value:.3g}"
    return str(value)
