"""A dashboard without a widget: its views' static forms, one below the other."""

from __future__ import annotations

from collections.abc import Mapping

from limelight_widgets.figures.static_forms import MOST_BYTES, Figure

RULE = "─" * 80


def dashboard_figure(figures: Mapping[str, Figure]) -> Figure:
    """The forms of all views together; the picture is the first view's.

    HTML that would be larger than an output may be leaves out the views that are largest, but for their text.
    """
    text = f"\n{RULE}\n".join(one.text for one in figures.values())
    html = {name: one.html for name, one in figures.items()}
    for name in sorted(html, key=lambda one: -len(html[one])):
        if sum(map(len, html.values())) > MOST_BYTES:
            html[name] = ""
    first = next(iter(figures.values()), Figure("", "", ""))
    return Figure(text, "".join(html.values()), first.svg if html.get(next(iter(figures), "")) else "")
