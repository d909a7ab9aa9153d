"""Cards as HTML that any reader shows, without a script: in a saved page, or in a notebook that is not trusted.

What readers drop are the few style attributes, which take their colours from JupyterLab's theme; the card reads without
them. The live card (`js/src/views/explain.js`) has the same parts in the same order, with buttons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from limelight_widgets.figures.static_forms import Figure, flush_left, marked
from limelight_widgets.folds.fold import State

_RULE = "var(--jp-border-color1, #8a8a8a)"
_CARD = f"border: 1px solid {_RULE}; border-left-width: 4px; border-radius: 4px; margin: 6px 0; padding: 2px 12px"
_CHIP = f"border: 1px solid {_RULE}; border-radius: 9px; padding: 0 7px"
_CODE = "white-space: pre-wrap; overflow-wrap: anywhere; margin: 2px 0 6px"
ROLES = {"call": "at", "line": "at", "made": "made at", "closest": "closest", "trace": "trace"}
"""What a place is to the story, in a word before it."""


def explain_figure(state: State) -> Figure:
    """The cards of an answer, without a picture: they are text."""
    cards = "".join(card_html(story) for story in state["stories"])
    notes = "".join(f"<p>{marked(line)}</p>" for line in state["notes"])
    if not cards:
        cards = f'<div style="{_CARD}">{"".join(f"<p>{marked(x)}</p>" for x in state["text"].splitlines())}</div>'
    folded = f"<details><summary>more about the whole</summary>{notes}</details>" if notes else ""
    return Figure(state["text"], cards + folded, "")


def card_html(story: Mapping[str, Any]) -> str:
    """One card; `story` is what `Story.to_dict` gives.

    >>> import re
    >>> from limelight.explain.story import Story
    >>> re.sub("<[^>]*>", "", card_html(Story("copy", "`<x>` was copied").to_dict()))
    '&lt;x&gt; was copiedcopy'
    """
    parts = [
        f"<p><strong>{marked(_capital(story['title']))}</strong></p>",
        _chips(story),
        *[f"<p>{marked(said)}</p>" for said in story["said"] if said not in story["causes"]],
        _contrasts(story),
        _places(story["places"]),
        *[f"<p>{marked(hint)}</p>" for hint in story["hints"]],
        _fixes(story),
        _folded(story["more"]),
    ]
    return f'<div style="{_CARD}">{"".join(parts)}</div>'


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _chips(story: Mapping[str, Any]) -> str:
    """The causes, how often, and what it cost."""
    alone = [f"cost {story['cost']}"] if story["cost"] and not story["total"] else []
    often = [f"{story['count']:,} times"] if story["count"] > 1 and not story["total"] else []
    words = [*dict.fromkeys([story["kind"], *story["causes"]]), *often, *alone]
    chips = " ".join(f'<span style="{_CHIP}">{escape(word)}</span>' for word in words)
    return (f"<p>{chips}</p>" if chips else "") + (f"<p>{marked(story['total'])}</p>" if story["total"] else "")


def _contrasts(story: Mapping[str, Any]) -> str:
    """Before and after, side by side."""
    rows = [(one["what"], one["before"], one["after"], one["detail"]) for one in story["contrasts"]]
    if not rows:
        return ""
    titles = ["", *HEADS.get(story["kind"], ("before", "after")), ""]
    shown = [i for i in range(4) if any(row[i] for row in rows)]
    head = "".join(flush_left(escape(titles[i]), "th") for i in shown)
    body = "".join("<tr>" + "".join(flush_left(_cell(i, row[i])) for i in shown) + "</tr>" for row in rows)
    more = f"<p>and {story['unlisted']:,} more</p>" if story["unlisted"] else ""
    return f'<table cellpadding="4"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}'


def _cell(column: int, text: str) -> str:
    return f"<code>{escape(text)}</code>" if column in (1, 2) and text else marked(text)


HEADS = {
    "NaN": ("operands", "result"),
    "baked value": ("in the trace", "now"),
    "trace": ("closest trace", "this call"),
    "retrace": ("closest trace", "this call"),
    "what if": ("closest trace", "this call"),
    "copy": ("from", "to"),
    "difference": ("first trace", "second trace"),
}
"""What stands above the two columns."""


def _places(places: Sequence[Mapping[str, Any]]) -> str:
    shown = [
        f"{ROLES.get(place['role'], place['role'])} {escape(place['label'])}"
        + (f": <code>{escape(place['code'])}</code>" if place.get("code") else "")
        for place in places
        if place["label"]
    ]
    return f"<p>{'<br>'.join(shown)}</p>" if shown else ""


def _fixes(story: Mapping[str, Any]) -> str:
    """The fix as code; in prose where there is no code."""
    advice = "".join(f"<p>{_labelled(part)}</p>" for part in story["advice"])
    return advice + "".join(
        f'<p>{_labelled(fix["place"])}</p><pre style="{_CODE}"><code>{escape(fix["code"])}</code></pre>'
        for fix in story["fixes"]
    )


def _labelled(words: str) -> str:
    """Words with "Fix" before them, or "Or" instead of an or; "at each call" goes on from that word."""
    label, said = ("Or", words[3:]) if words.startswith("or ") else ("Fix", words)
    sign = "" if not said else "," if said.startswith(("at ", "which ")) else ":"
    return f"<strong>{label}{sign}</strong> {marked(said)}".rstrip()


def _folded(lines: Iterable[str]) -> str:
    said = "".join(f"<p>{marked(line)}</p>" for line in lines)
    return f"<details><summary>more</summary>{said}</details>" if said else ""
