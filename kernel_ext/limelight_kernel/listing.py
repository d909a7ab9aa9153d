"""An annotated cell as text and as HTML that any reader shows: no script, no style, nothing to fetch."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape

from limelight_kernel.annotate import GLYPHS, MEANING, Line
from limelight_widgets.units import counted

WIDTH = 80
WORD = max(map(len, MEANING))
INDENT = "\N{NO-BREAK SPACE}"
GAP = 3 * "&nbsp;"  # between columns: readers that drop styles keep it
COUNTS = (
    "each op of the graph, as traced, counts once, at the innermost line of the cell that made it; "
    "ops inside functions that the graph calls do not count"
)


def text_listing(lines: Sequence[Line], width: int = WIDTH) -> str:
    """Number, glyph, word and code of each line, in `width` columns.

    >>> print(text_listing([Line(2, "y = x @ w", "staged", 1), Line(3, "# done", "", 0)]))
      2 ● staged           y = x @ w
      3                    # done
    """
    number = max([3, *(len(str(line.number)) for line in lines)])
    rows = (f"{line.number:>{number}} {GLYPHS[line.mark]} {line.mark:<{WORD}}  {line.text}".rstrip() for line in lines)
    return "\n".join(row if len(row) <= width else row[: width - 1] + "…" for row in rows)


def html_listing(lines: Iterable[Line]) -> str:
    """A table with a row for each line; leading blanks survive as no-break spaces."""
    rows = "".join(
        f'<tr><td align="right">{line.number}{GAP}</td><td align="left">{_mark(line)}{GAP}</td>'
        f'<td align="left"><code>{_code(line.text)}</code></td></tr>'
        for line in lines
    )
    titles = (f'<th align="left">{title}</th>' for title in (f"line{GAP}", f"what became of it{GAP}", "code"))
    head = f"<tr>{''.join(titles)}</tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def html_legend(lines: Sequence[Line]) -> str:
    """What the marks in `lines` mean, folded away."""
    used = {line.mark for line in lines}
    items = "".join(f"<li>{GLYPHS[mark]} {mark}: {escape(MEANING[mark])}</li>" for mark in MEANING if mark in used)
    items += f"<li>ops: {COUNTS}</li>" if any(line.nodes for line in lines) else ""
    return f"<details><summary>what the words mean</summary><ul>{items}</ul></details>" if items else ""


def _mark(line: Line) -> str:
    if not line.mark:
        return ""
    count = f", {counted(line.nodes, 'op')}" if line.nodes else ""
    return f"{GLYPHS[line.mark]} {line.mark}{count}"


def _code(text: str) -> str:
    body = text.lstrip()
    indent = len(text.expandtabs(4)) - len(body.expandtabs(4))
    return INDENT * indent + escape(body)


def wrapped(text: str, width: int = WIDTH) -> str:
    """`text` with its lines broken at blanks; a word longer than a line stands alone.

    >>> print(wrapped("a long sentence", 8))
    a long
    sentence
    """
    return "\n".join(
        part
        for line in text.splitlines()
        for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    )
