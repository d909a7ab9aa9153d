"""Tables as pictures: rows of text with a bar, for the views whose state is a table, and its columns as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from limelight_widgets.figures import svg
from limelight_widgets.figures.static_forms import HTML_WIDTH, MOST_LINES, Figure, Table, figure
from limelight_widgets.format import shortened

ROW = 22.0
LINE = 16.0  # of a note
HEAD = 34.0
MARGIN = 16.0
INDENT = 12.0
CHARACTER = 7.0
NOTE_CHARACTER = 6.6
GAP = 18.0
WIDEST = 44  # characters of a column
NARROWEST = 16  # of one that goes on in further lines where the picture would be wider than a page
MOST_ROWS = 24
MOST_TABLE_ROWS = 200  # of the table below the picture
MOST_NOTE_LINES = 5
LEAST_WIDTH_WITH_NOTES = 760.0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of text; flush right when it holds numbers; with a bar behind the text if it has `shares` (0 to 1).

    Cells of one that `wraps` go on in further lines where they are too long, up to `MOST_LINES`, instead of being cut.
    """

    name: str
    cells: Sequence[str]
    number: bool = False
    shares: Sequence[float] | None = None
    widest: int = WIDEST
    wraps: bool = False

    def width(self) -> float:
        return max(CHARACTER * self.characters, 90.0 if self.shares is not None else 0.0)

    @property
    def characters(self) -> int:
        return min(max([len(self.name), *(len(cell) for cell in self.cells)]), self.widest)

    def lines(self, row: int) -> list[str]:
        cell = self.cells[row]
        if len(cell) <= self.widest or not self.wraps:
            return [shortened(cell, self.widest)]
        return textwrap.wrap(cell, self.widest, break_on_hyphens=False, max_lines=MOST_LINES, placeholder=" …")


def drawn_table(
    heading: str, summary: str, columns: Sequence[Column], notes: Sequence[str] = (), marked: int = -1, hidden: int = 0
) -> str:
    """A picture of the first rows of a table.

    Args:
        heading: the picture's title.
        summary: what is written opposite to it.
        columns: of equal length.
        notes: for each row a sentence that is set below it, in as many lines as it needs.
        marked: number of the row that is framed and has an arrow before it.
        hidden: how many rows more there are than the columns have.

    A column that has nothing in any row is left out.
    """
    columns = [replace(column, cells=_plain(column.cells)) for column in columns]
    notes = _plain(notes)
    columns = _fitted(_with_content(columns))
    count = min(len(columns[0].cells), MOST_ROWS)
    total = len(columns[0].cells) + hidden
    width = _width(columns)
    beside = 7.4 * (len(heading) + len(summary) + 4) + 2 * MARGIN  # else the summary stands below, in as many lines
    width = max(width, min(beside, LEAST_WIDTH_WITH_NOTES), LEAST_WIDTH_WITH_NOTES if notes else 0.0)
    below = _wrapped(summary, width) if beside > width else []
    wrapped = [_wrapped(note, width) for note in notes[:count]] or [[] for _ in range(count)]
    head = HEAD + LINE * len(below)
    feet, tops = [], [head + ROW]
    for row, lines in enumerate(wrapped):
        feet.append(tops[-1] + ROW + LINE * (max(len(column.lines(row)) for column in columns) - 1))
        tops.append(feet[-1] + LINE * len(lines) + (6.0 if lines else 0.0))
    body = [_head(heading, "" if below else summary, width, head + ROW)]
    body += [
        svg.label(line, MARGIN, 22 + LINE * (i + 1), 12, fill=svg.QUIET, font_family=svg.SANS)
        for i, line in enumerate(below)
    ]
    if 0 <= marked < count:
        body.append(_mark(tops[marked], tops[marked + 1] - tops[marked], width))
    left = MARGIN + INDENT
    for column in columns:
        body += _column(column, left, tops[:-1], head)
        left += column.width() + GAP
    for lines, foot in zip(wrapped, feet, strict=True):
        body += [_quiet(line, foot + LINE * (i + 1) - 5) for i, line in enumerate(lines)]
    if total > count:
        body.append(_quiet(f"… {total - count:,} more rows", tops[-1] + 15))
    height = tops[-1] + (ROW if total > count else 0.0) + MARGIN / 2
    return svg.document(width, height, heading, f"{summary}. {_spoken(columns, notes, count)}", body)


def _with_content(columns: Sequence[Column]) -> Sequence[Column]:
    return [column for column in columns if any(column.cells)] or columns


def _width(columns: Sequence[Column]) -> float:
    return sum(column.width() + GAP for column in columns) - GAP + 2 * MARGIN + INDENT


def _fitted(columns: Sequence[Column]) -> list[Column]:
    """The columns, of which those that wrap are narrower where the picture would shrink in a page, its type with it."""
    fitted = list(columns)
    while _width(fitted) > HTML_WIDTH:
        wide = [i for i, column in enumerate(fitted) if column.wraps and column.characters > NARROWEST]
        if not wide:
            break
        widest = max(wide, key=lambda i: fitted[i].characters)
        fitted[widest] = replace(fitted[widest], widest=fitted[widest].characters - 1)
    return fitted


def _wrapped(note: str, width: float) -> list[str]:
    characters = int((width - 2 * (MARGIN + INDENT)) / NOTE_CHARACTER)
    return textwrap.wrap(note, characters, max_lines=MOST_NOTE_LINES, placeholder=" …")


def _head(heading: str, summary: str, width: float, y: float) -> str:
    title = svg.label(heading, MARGIN, 22, 13, font_weight="bold", font_family=svg.SANS)
    right = svg.label(summary, width - MARGIN, 22, 12, fill=svg.QUIET, anchor="end", font_family=svg.SANS)
    return title + right + svg.element("line", x1=MARGIN, x2=width - MARGIN, y1=y, y2=y, stroke=svg.RULE)


def _mark(top: float, height: float, width: float) -> str:
    frame = svg.element(
        "rect", x=MARGIN - 6, y=top + 1, width=width - 2 * MARGIN + 12, height=height - 2, rx=4,
        fill="#e3f1fa", stroke=svg.ACCENT,
    )  # fmt: skip
    return frame + svg.label("▸", MARGIN, top + 15, 12, fill=svg.ACCENT)


def _column(column: Column, left: float, tops: Sequence[float], head: float) -> list[str]:
    width = column.width()
    x, anchor = (left + width, "end") if column.number else (left, None)
    parts = [svg.label(column.name, x, head + 15, 11, fill=svg.QUIET, anchor=anchor, font_family=svg.SANS)]
    for i, top in enumerate(tops):
        if column.shares is not None:
            parts.append(_bar(left, top, width, column.shares[i]))
        parts += [
            svg.label(line, x, top + 15 + LINE * k, 11.5, anchor=anchor) for k, line in enumerate(column.lines(i))
        ]
    return parts


def _plain(texts: Sequence[str]) -> list[str]:
    """Without the backticks round code: a picture has one type for all."""
    return [text.replace("`", "") for text in texts]


def _bar(left: float, top: float, width: float, share: float) -> str:
    drawn = max(width * min(max(share, 0.0), 1.0), 1.0)
    size = {"width": drawn + 8 * (share > 0), "height": ROW - 6}
    return svg.element("rect", x=left - 4, y=top + 3, **size, rx=2, fill="#bcdcf0")


def _quiet(line: str, y: float) -> str:
    return svg.label(line, MARGIN + INDENT, y, 12, fill=svg.QUIET, font_family=svg.SANS)


def _spoken(columns: Sequence[Column], notes: Sequence[str], count: int) -> str:
    rows = []
    for i in range(count):
        cells = [f"{column.name} {column.cells[i]}" for column in columns if column.cells[i]]
        rows.append(", ".join([*cells, *notes[i : i + 1]]))
    return ". ".join(rows)


def table_of(columns: Sequence[Column], hidden: int = 0, hint: str = "") -> Table:
    """The columns as a table; `hidden` rows more are not in them, and `hint` explains what is."""
    columns = _with_content(columns)
    rows = list(zip(*(column.cells for column in columns), strict=True))
    numbers = frozenset(column.name for column in columns if column.number)
    left_out = max(hidden, 0) + max(len(rows) - MOST_TABLE_ROWS, 0)
    wrapped = frozenset(column.name for column in columns if column.wraps)
    names = [column.name for column in columns]
    return Table(names, rows[:MOST_TABLE_ROWS], numbers, hint, wrapped=wrapped, hidden=left_out)


def table_figure(heading: str, summary: str, columns: Sequence[Column], total: int, hint: str = "") -> Figure:
    """The columns as a figure: those of the first of `total` rows; `hint` explains what is in them."""
    hidden = total - len(columns[0].cells)
    return figure(heading, summary, drawn_table(heading, summary, columns, hidden=hidden),
                  table_of(columns, hidden, hint))  # fmt: skip


def shares(numbers: Sequence[float]) -> list[float]:
    """Each number as a share of the largest."""
    most = max(numbers, default=0) or 1
    return [number / most for number in numbers]


def line_text(line: Sequence[Any] | None) -> str:
    """A position as it stands in a table: "In[3]:4"."""
    return f"{line[0]}:{line[1]}" if line else ""
