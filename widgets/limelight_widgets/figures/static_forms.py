"""The static forms that every view has: plain text of 80 columns, HTML that any reader shows, and a picture.

The HTML holds no script, no style and no inline SVG: a notebook that is not trusted keeps `<img>`, `<details>` and
`<table>`, and drops the rest.
"""

from __future__ import annotations

import base64
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Any

from limelight_widgets.figures import svg
from limelight_widgets.format import joined_arrows, shortened

TEXT_WIDTH = 80
TEXT_ROWS = 40
HTML_WIDTH = 900
LEAST_SHARE = 0.8
"""Of its width, to which a picture shrinks in a narrow page: type of 11.5 pixels has 9 then; beyond it scrolls."""
_GLUE = "\ue000"  # for a blank at which no line ends
_SPAN = re.compile(r"`([^`]+)`")
_SCROLLING = '<figure style="overflow-x:auto">'
MOST_BYTES = 200_000
CELL_WIDTH = 160
MOST_LINES = 8  # of a cell that goes on
UNBROKEN = 20  # characters of a word, such as a shape, for which columns that are cut give way


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of text; the columns in `numbers` are set flush right, `note` explains what is in them.

    `hidden` rows more are not in it, each of which stands for a `unit`: a row, or an op.

    `sentences` are what is said below the table: they would not fit into a column. In plain text, cells of the columns
    in `wrapped` go on in further lines where they are too long, instead of being cut.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[str] = frozenset()
    note: str = ""
    sentences: Sequence[str] = ()
    wrapped: frozenset[str] = frozenset()
    hidden: int = 0
    unit: str = "row"


@dataclass(frozen=True, slots=True)
class Figure:
    """A view that was: its text, its HTML, and its picture, "" for none. Displays itself without a widget.

    The HTML holds the picture as well, so that the bundle has it once: a notebook keeps all of a bundle.
    """

    text: str
    html: str
    svg: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.bundle()

    def bundle(self) -> dict[str, str]:
        """The forms by MIME type."""
        forms = {"text/plain": self.text, "text/html": self.html}
        return {kind: form for kind, form in forms.items() if form}

    def __repr__(self) -> str:
        return self.text


def figure(heading: str, summary: str, picture: str | None, table: Table | None, text: Table | None = None) -> Figure:
    """Puts the static forms together.

    Args:
        heading: the view's title.
        summary: what it shows, in a clause.
        picture: an SVG document; without one, the heading and the summary are drawn.
        table: what the picture shows; one that makes the output larger than 200 kB is cut, and says so.
        text: the table that plain text shows instead, if given.
    """
    drawn = picture if picture is not None else _message(heading, summary)
    while table is not None and _size(drawn, table) > MOST_BYTES and len(table.rows) > 10:
        kept = table.rows[: len(table.rows) // 2]
        table = replace(table, rows=kept, hidden=table.hidden + len(table.rows) - len(kept))
    return Figure(_text(heading, summary, text or table), _html(heading, summary, drawn, table), drawn)


def _size(drawn: str, table: Table) -> int:
    return len(drawn.encode()) * 7 // 3 + len(html_table(table).encode())


def _text(heading: str, summary: str, table: Table | None) -> str:
    parts = [_wrapped(f"{heading}: {summary}")]
    if table is not None and table.rows:
        said = [_wrapped(sentence) for sentence in table.sentences[:TEXT_ROWS]]
        between = "\n\n" if any("\n" in one for one in said) else "\n"
        parts += [text_table(table), *([between.join(said)] if said else [])]
    return "\n\n".join(parts)


def _wrapped(sentence: str) -> str:
    head, fix, code = sentence.partition("Fix: ")
    if "(" not in code:
        return textwrap.fill(sentence, TEXT_WIDTH)
    said = textwrap.fill(head + fix + _whole_calls(code), TEXT_WIDTH, break_long_words=False, break_on_hyphens=False)
    return said.replace(_GLUE, " ")


def _whole_calls(text: str) -> str:
    """Text whose calls have no blank at which a line could end: they are code that somebody will copy."""
    glued, depth = [], 0
    for before, character in pairwise(f" {text}"):
        if character == "(" and (depth or before.isalnum() or before in "_])"):
            depth += 1
        elif character == ")" and depth:
            depth -= 1
        glued.append(_GLUE if character == " " and depth else character)
    return text if depth else "".join(glued)


def text_table(table: Table) -> str:
    """The table in at most 80 columns: wide columns give way, the widest first."""
    shown = [[" ".join(cell.split()) for cell in row] for row in table.rows[:TEXT_ROWS]]
    widths = [
        max(len(name), *(len(row[i]) for row in shown)) if shown else len(name) for i, name in enumerate(table.columns)
    ]
    least = [_longest_word(name, [row[i] for row in shown], table) for i, name in enumerate(table.columns)]
    while sum(widths) + 2 * (len(widths) - 1) > TEXT_WIDTH and max(widths) > 4:
        wide = [i for i, width in enumerate(widths) if width > least[i]] or range(len(widths))
        widths[max(wide, key=widths.__getitem__)] -= 1
    lines = [_text_row(table.columns, table, widths), "  ".join("─" * width for width in widths)]
    lines += [line for row in shown for line in _text_rows(row, table, widths)]
    notes = [_left_out(table, len(shown)), _wrapped(table.note) if table.note else ""]
    return "\n".join([*lines, *filter(None, notes)])


def _longest_word(name: str, cells: Sequence[str], table: Table) -> int:
    """How narrow a column may become before others give way: one that goes on in further lines breaks no short word."""
    words = [len(word) for cell in cells for word in cell.split()] if name in table.wrapped else []
    return min(max([4, *words]), UNBROKEN)


def _left_out(table: Table, shown: int) -> str:
    """How many rows are not among the first `shown`; empty where all are."""
    count = table.hidden + len(table.rows) - shown
    return f"… {count:,} more {table.unit}{'s' * (count > 1)}" if count else ""


def _text_row(row: Sequence[str], table: Table, widths: Sequence[int]) -> str:
    cells = [
        f"{shortened(cell, width):>{width}}" if name in table.numbers else f"{shortened(cell, width):<{width}}"
        for cell, width, name in zip(row, widths, table.columns, strict=True)
    ]
    return "  ".join(cells).rstrip()


def _text_rows(row: Sequence[str], table: Table, widths: Sequence[int]) -> list[str]:
    """A row, in several lines where a cell may go on."""
    parts = [
        (textwrap.wrap(cell, width) if name in table.wrapped else [cell]) or [""]
        for cell, width, name in zip(row, widths, table.columns, strict=True)
    ]
    height = min(max(map(len, parts)), MOST_LINES)
    kept = [[*part[: height - 1], " ".join(part[height - 1 :])] for part in parts]
    return [_text_row([part[i] if i < len(part) else "" for part in kept], table, widths) for i in range(height)]


def _html(heading: str, summary: str, drawn: str, table: Table | None) -> str:
    data = base64.b64encode(drawn.encode()).decode()
    width = min(float(drawn.partition('width="')[2].partition('"')[0]), HTML_WIDTH)
    alternative = escape(f"{heading}: {summary}", quote=True)
    least = f'style="min-width:{LEAST_SHARE * width:.0f}px"'
    image = f'<img src="data:image/svg+xml;base64,{data}" alt="{alternative}" width="{width:.0f}" {least}>'
    if table is None or not table.rows:
        return f"{_SCROLLING}{image}<figcaption>{escape(summary)}</figcaption></figure>"
    details = f"<details><summary>{escape(heading)} as a table</summary>{html_table(table)}</details>"
    return f"{_SCROLLING}{image}</figure>{details}"


def html_table(table: Table) -> str:
    """The table as HTML that any reader shows."""
    head = "".join(_cell(table, name, name, "th") for name in table.columns)
    rows = "".join(
        "<tr>"
        + "".join(
            _cell(table, name, shortened(cell, CELL_WIDTH)) for name, cell in zip(table.columns, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    notes = (_left_out(table, len(table.rows)), table.note, *table.sentences)
    note = "".join(f"<p>{marked(said)}</p>" for said in notes if said)
    return f'<table cellpadding="4"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{note}'


def _cell(table: Table, name: str, text: str, tag: str = "td") -> str:
    if name in table.numbers:
        return f'<{tag} align="right">{escape(text)}</{tag}>'
    return flush_left(marked(text), tag)


def marked(text: str) -> str:
    """Text as HTML, with what stands between backticks as code."""
    parts = enumerate(_SPAN.split(text))
    return "".join(f"<code>{escape(part)}</code>" if i % 2 else escape(joined_arrows(part)) for i, part in parts)


def flush_left(html: str, tag: str = "td", *, wrap: bool = True) -> str:
    """A cell of a table whose content is flush left even where the page's own style sets all cells flush right.

    With no more markup than that needs: a listing has a thousand cells, and a notebook keeps them all.
    """
    attribute = "" if wrap else " nowrap"
    return f'<{tag}{attribute}><div align="left">{html}</div></{tag}>' if html else f"<{tag}{attribute}></{tag}>"


def _message(heading: str, summary: str) -> str:
    lines = _wrapped(summary).split("\n")
    body = [svg.label(heading, 16, 26, 13, font_weight="bold", font_family=svg.SANS)]
    body += [svg.label(line, 16, 48 + 18 * i, 12, font_family=svg.SANS) for i, line in enumerate(lines)]
    return svg.document(640.0, 44.0 + 18 * len(lines) + 6, heading, summary, body)
