"""An annotated cell as text and as HTML that any reader shows: no script, no style, nothing to fetch."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any

from limelight_kernel.report.line_marks import GLYPHS, MEANING, Line
from limelight_kernel.report.node_history import NodeStory
from limelight_widgets.figures.static_forms import flush_left, marked
from limelight_widgets.format import counted

WIDTH = 80
WORD = max(map(len, MEANING))
INDENT = "\N{NO-BREAK SPACE}"
_GLUE = "\N{WORD JOINER}"
"""Stands for a blank in code while the text around it is broken."""
GAP = 3 * "&nbsp;"  # between columns: readers that drop styles keep it
COUNTS = (
    "each op of the graph, as traced, counts once, at the innermost line of the cell that made it; "
    "those in calls, in the functions that the graph calls, are counted apart"
)


def text_listing(lines: Sequence[Line], width: int = WIDTH, parts: Collection[str] = ()) -> str:
    """Number, glyph, words and code of each line, in `width` columns.

    `parts` are what stands under it: "trace" its ops as traced and what became of each, "opt" the ops that are left,
    "plan" what runs them: the plan's code, or the instructions of a table.

    >>> print(text_listing([Line(2, "y = x @ w", "staged", 1), Line(3, "# done", "", 0)]))
      2 ● staged           y = x @ w
      3                    # done
    """
    number = max([3, *(len(str(line.number)) for line in lines)])
    word = max([WORD, *(len(line.words) for line in lines)])
    rows: list[str] = []
    for line in lines:
        code = line.text.expandtabs(4)
        rows.append(f"{line.number:>{number}} {GLYPHS[line.mark]} {line.words:<{word}}  {code}".rstrip())
        rows += [
            " " * (number + 3) + row for said in line.remarks for row in wrapped(said, width - number - 3).splitlines()
        ]
        rows += [" " * (number + 3) + row for row in _beneath(line, parts)]
    return "\n".join(row if len(row) <= width else row[: width - 1] + "…" for row in rows)


def _beneath(line: Line, parts: Collection[str]) -> list[str]:
    """What stands under a line, on lines of text."""
    code = [f"{_runner(text)}  {text}" for text in line.plan] if "plan" in parts else []
    if "trace" in parts:
        return [row for told in line.story for row in _told(told, "opt" in parts)] + code
    left = dict.fromkeys(_runs(told, text) for told in line.story for text in told.optimised) if "opt" in parts else {}
    return [*left, *code]


def _runner(text: str) -> str:
    """What runs an op, by how the executor tells it: a table of the executor `loops`, or a line of a plan."""
    return "loops" if text.startswith("table ") else "plan"


def _runs(told: NodeStory, text: str) -> str:
    return f"runs as  {text}" + (f"  (in {told.inside})" if told.inside else "")


def _told(told: NodeStory, after: bool) -> list[str]:
    """What became of one op, as it was traced and, `after` optimisation, as it runs, on lines of text."""
    runs = [f"  runs as  {text}" for text in told.optimised] if after else []
    where = f"  (in {told.inside})" if told.inside else ""
    words = [f"  {row}" for row in wrapped(told.words, WIDTH - 10).splitlines()]
    return [f"· {told.traced}{where}", *words, *runs]


TABLES, SENTENCES, NONE = "tables", "sentences", ""
"""In what form the stories of a line's ops are told: sentences take a third of the room."""


def html_listing(lines: Iterable[Line], label: str = "", parts: Collection[str] = (), stories: str = TABLES) -> str:
    """A table with a row for each line; leading blanks survive as no-break spaces.

    `stories`: in what form a line unfolds to what became of each of its ops, if it does; with any of `parts`, as in a
    text, it is unfolded, and shows these. `label` is the cell's name, by which a graph view finds the rows of its
    lines: the rows carry it and a line, and the view beside them listens for clicks, so they need no widget.
    """
    source = f'data-ll-source="{escape(label, quote=True)}"'
    beneath = [part for part in parts if part != "source"]
    rows = "".join(
        f'<tr valign="top" {source} data-ll-line="{line.number}"><td align="right">{line.number}{GAP}</td>'
        f"{flush_left(f'{_mark(line)}{GAP}', wrap=False)}"
        f"{flush_left(_code_cell(line, beneath, stories) if stories else _code(line.text) + _remarks(line))}</tr>"
        for line in lines
    )
    titles = [flush_left(title, "th", wrap=False) for title in (f"line{GAP}", f"what became of it{GAP}", "code")]
    head = f"<tr>{''.join(titles)}</tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _remarks(line: Line) -> str:
    return "".join(f"<br>{marked(said)}" for said in line.remarks)


def _code_cell(line: Line, parts: Collection[str], stories: str) -> str:
    if not line.story and not line.plan:
        return _code(line.text) + _remarks(line)
    inside = (_stories if stories == TABLES else _sentences)(line, parts or ("trace", "opt"))
    if "plan" in parts:
        runs = [(runner, list(texts)) for runner, texts in groupby(line.plan, _runner)]
        inside += "<br>".join([row for runner, texts in runs for row in (runner, *map(_code, texts))])
    folded = f"<details{' open' if parts else ''}><summary>{_code(line.text)}</summary>{inside}</details>"
    return folded + _remarks(line).removeprefix("<br>")


def _stories(line: Line, parts: Collection[str]) -> str:
    """A table of a line's ops; those that are left alone, where nobody asks how they were traced."""
    if "trace" in parts:
        columns = {"as traced": _traced, "what happened": lambda told: marked(told.words), "as it runs": _runs_as}
        shown = columns if "opt" in parts else dict(list(columns.items())[:2])
        rows = [[cell(told) for cell in shown.values()] for told in line.story]
    else:
        shown = {"as it runs": _runs_as} if "opt" in parts else {}
        rows = [[text] for text in dict.fromkeys(_runs_as(told) for told in line.story if told.optimised)] * len(shown)
    if not rows:
        return ""
    titles = "".join(flush_left(title, "th") for title in shown)
    body = "".join(f'<tr valign="top">{"".join(map(flush_left, row))}</tr>' for row in rows)
    return f'<table cellpadding="3"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>'


def _sentences(line: Line, parts: Collection[str]) -> str:
    """The same as lines of words; an op that runs as it was traced is written once."""
    if "trace" not in parts:
        left = dict.fromkeys(text for told in line.story for text in told.optimised) if "opt" in parts else {}
        return "<br>".join(map(_code, left))
    said = []
    for told in line.story:
        runs = [text for text in told.optimised if text != told.traced] if "opt" in parts else []
        after = f", runs as {' and '.join(map(_code, runs))}" if runs else ""
        said.append(f"{_traced(told)} {marked(told.words)}{after}")
    return "<br>".join(said)


def _traced(told: NodeStory) -> str:
    return _code(told.traced) + (f" (in {escape(told.inside)})" if told.inside else "")


def _runs_as(told: NodeStory) -> str:
    return "<br>".join(map(_code, told.optimised)) or "–"


def html_legend(lines: Sequence[Line]) -> str:
    """What the marks in `lines` mean, folded away."""
    used = {line.mark for line in lines}
    items = "".join(f"<li>{GLYPHS[mark]} {mark}: {escape(MEANING[mark])}</li>" for mark in MEANING if mark in used)
    items += f"<li>ops: {COUNTS}</li>" if any(line.nodes or line.inside for line in lines) else ""
    return folded("what the words mean", items) if items else ""


def folded(title: str, items: str) -> str:
    """A list that is folded away, beside others of the kind: each line counts on a low screen."""
    style = "display: inline-block; vertical-align: top; margin: 0 2em 0 0"
    return f'<details style="{style}"><summary>{title}</summary><ul>{items}</ul></details>'


def _mark(line: Line) -> str:
    if not line.mark:
        return ""
    own = counted(line.nodes, "op") if line.nodes else ""
    called = f"{line.inside:,}" if own else counted(line.inside, "op")  # "4 ops, 7 in calls"
    counts = [own, f"{called} in calls" if line.inside else ""]
    return ", ".join([f"{GLYPHS[line.mark]} {line.words}", *filter(None, counts)])


def _code(text: str) -> str:
    body = text.lstrip()
    indent = len(text.expandtabs(4)) - len(body.expandtabs(4))
    return f"<code>{INDENT * indent}{escape(body)}</code>"


def wrapped(text: str, width: int = WIDTH, whole: Collection[str] = ()) -> str:
    """`text` with its lines broken at blanks; a word longer than a line stands alone.

    An indented line goes on with the same indent. What is among `whole` is not broken: code that somebody will copy.

    >>> print(wrapped("a long sentence", 8))
    a long
    sentence
    >>> print(wrapped("Fix: f(a, b)", 8, ["f(a, b)"]))
    Fix:
    f(a, b)
    """
    for code in sorted(whole, key=len, reverse=True):
        text = text.replace(code, code.replace(" ", _GLUE))
    lines = [part for line in text.splitlines() for part in _broken(line, width)]
    return "\n".join(lines).replace(_GLUE, " ")


def _broken(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip(" "))]
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": indent}
    return textwrap.wrap(line, width, **options) or [""]
