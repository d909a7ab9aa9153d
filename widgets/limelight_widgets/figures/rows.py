"""Tables as pictures: rows of text with a bar, for the views whose state is a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from limelight_widgets.figures import svg
from limelight_widgets.units import shortened

ROW = 22.0
HEAD = 34.0
MARGIN = 16.0
CHARACTER = 7.0
GAP = 18.0
WIDEST = 44  # characters of a column
MOST_ROWS = 24


@dataclass(frozen=True, slots=True)
class Column:
    """A column of text; flush right when it holds numbers; with a bar behind the text if it has `shares` (0 to 1)."""

    name: str
    cells: Sequence[str]
    number: bool = False
    shares: Sequence[float] | None = None
    widest: int = WIDEST

    def width(self) -> float:
        longest = max([len(self.name), *(len(cell) for cell in self.cells)])
        return max(CHARACTER * min(longest, self.widest), 90.0 if self.shares is not None else 0.0)


def drawn_table(heading: str, summary: str, columns: Sequence[Column], marked: int = -1) -> str:
    """A picture of the first rows of a table. Row `marked` is framed and has an arrow before it."""
    count = min(max((len(column.cells) for column in columns), default=0), MOST_ROWS)
    hidden = max((len(column.cells) for column in columns), default=0) - count
    width = sum(column.width() + GAP for column in columns) - GAP + 2 * MARGIN + 12
    width = max(width, 7.4 * (len(heading) + len(summary) + 4) + 2 * MARGIN)
    height = HEAD + ROW * (count + 1 + bool(hidden)) + MARGIN
    body = [
        svg.label(heading, MARGIN, 22, 13, font_weight="bold", font_family=svg.SANS),
        svg.label(summary, width - MARGIN, 22, 12, fill=svg.QUIET, anchor="end", font_family=svg.SANS),
        svg.element("line", x1=MARGIN, x2=width - MARGIN, y1=HEAD + ROW, y2=HEAD + ROW, stroke=svg.RULE),
    ]
    if 0 <= marked < count:
        body.append(_mark(HEAD + ROW * (marked + 1), width))
    left = MARGIN + 12
    for column in columns:
        body += _column(column, left, count)
        left += column.width() + GAP
    if hidden:
        y = HEAD + ROW * (count + 2) - 7
        body.append(svg.label(f"… {hidden:,} more rows", MARGIN + 12, y, 12, fill=svg.QUIET, font_family=svg.SANS))
    described = ". ".join(
        ", ".join(f"{column.name} {column.cells[i]}" for column in columns if column.cells[i]) for i in range(count)
    )
    return svg.document(width, height, heading, f"{summary}. {described}", body)


def _mark(top: float, width: float) -> str:
    frame = svg.element(
        "rect", x=MARGIN - 6, y=top + 1, width=width - 2 * MARGIN + 12, height=ROW - 2, rx=4,
        fill="#e3f1fa", stroke=svg.ACCENT,
    )  # fmt: skip
    return frame + svg.label("▸", MARGIN, top + 15, 12, fill=svg.ACCENT)


def _column(column: Column, left: float, count: int) -> list[str]:
    width = column.width()
    x, anchor = (left + width, "end") if column.number else (left, None)
    parts = [svg.label(column.name, x, HEAD + 15, 11, fill=svg.QUIET, anchor=anchor, font_family=svg.SANS)]
    for i in range(count):
        top = HEAD + ROW * (i + 1)
        if column.shares is not None:
            parts.append(_bar(left, top, width, column.shares[i]))
        parts.append(svg.label(shortened(column.cells[i], column.widest), x, top + 15, 11.5, anchor=anchor))
    return parts


def _bar(left: float, top: float, width: float, share: float) -> str:
    drawn = max(width * min(max(share, 0.0), 1.0), 1.0)
    return svg.element(
        "rect", x=left - 4, y=top + 3, width=drawn + 8 * (share > 0), height=ROW - 6, rx=2, fill="#bcdcf0"
    )
