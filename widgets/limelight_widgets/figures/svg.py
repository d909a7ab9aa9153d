"""Writing SVG: elements as text, everything escaped, one palette that reads on any page.

Static pictures are shown as images, where no style sheet of the page reaches them: they bring their own backdrop, and
their colours in the dark, for a page that says by `color-scheme` that it is dark.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, sans-serif"  # short, since it is said for each line of text, and notebooks keep each picture
BACKDROP = "#fdfcf9"
EDGE = "#6b6b6b"
INK = "#1f1f1f"
QUIET = "#595959"
RULE = "#8a8a8a"
ACCENT = "#0072b2"
FAILED = "#b03a00"
FILL = {
    "input": "#cfe6f5",
    "output": "#cfe6f5",
    "constant": "#f0f0ec",
    "variable": "#fbe3c0",
    "call": "#d8efe6",
    "group": "#eeeaf4",
    "random": "#f7dcea",
    "effect": "#f7dcea",
    "op": "#ffffff",
    "fused": "#f7f2c4",
    "decision": "#cfe6f5",
    "error": "#fbd9d3",
}
"""Pale tints of the Okabe-Ito colours, on which `INK` has a contrast above 12 to 1; each also has a glyph."""

LANE = {"forward": "#f5f4f0", "loss": "#eef3f8", "backward": "#f8eff4", "update": "#edf5f1"}
"""The grounds of lanes."""

DARK = {
    BACKDROP: "#1d1d1b", EDGE: "#a3a3a3", INK: "#ececec", QUIET: "#bdbdbd", RULE: "#8a8a8a", ACCENT: "#6cc0f0",
    FAILED: "#ffa37d",
    "#cfe6f5": "#17384f", "#f0f0ec": "#343431", "#fbe3c0": "#4a3816", "#d8efe6": "#1d4436", "#eeeaf4": "#372f49",
    "#f7dcea": "#4d2a3e", "#ffffff": "#2a2a28", "#f7f2c4": "#434018", "#fbd9d3": "#55261d", "#f5f4f0": "#272725",
    "#eef3f8": "#22292f", "#f8eff4": "#2e252a", "#edf5f1": "#222b26", "#f4f1f8": "#2b2831", "#f9f6d9": "#36341b",
    "#f8f5f8": "#2c282c", "#e3f1fa": "#16344a", "#bcdcf0": "#1f4d6b",
}  # fmt: skip
"""What each colour of a picture is in the dark: the same hue, `INK` on it with a contrast above 7 to 1."""

GLYPH = {
    "input": "▷",
    "output": "▶",
    "constant": "◆",
    "variable": "▣",
    "call": "ƒ",
    "group": "⊞",
    "random": "⚂",
    "effect": "↯",
    "op": "",
    "fused": "◉",
    "decision": "◇",
    "error": "✗",
}


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; `content` is markup already. Underscores in attribute names become hyphens, None is left out.

    >>> element("text", text("a < b"), x=1, font_size=12)
    '<text x="1" font-size="12">a &lt; b</text>'
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_number(value))}"
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(characters: str) -> str:
    """Characters as markup; what XML cannot carry is shown as a replacement character."""
    return escape("".join(c if c >= " " or c in "\t\n" else "\N{REPLACEMENT CHARACTER}" for c in characters))


def document(width: float, height: float, title: str, description: str, body: Iterable[str]) -> str:
    """A picture with a backdrop, a title and a description."""
    backdrop = element("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=6, fill=BACKDROP, stroke=RULE)
    head = element("title", text(title)) + element("desc", text(description))
    drawn = "".join([backdrop, *body])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_number(width)}" height="{_number(height)}" '
        f'viewBox="0 0 {_number(width)} {_number(height)}" role="img" font-family={quoteattr(MONO)}>'
        + head
        + _in_the_dark(drawn)
        + drawn
        + "</svg>"
    )


def _in_the_dark(drawn: str) -> str:
    """A style sheet for the colours that are drawn, which come before those of the attributes."""
    rules = [
        f'[{paint}="{light}"]{{{paint}:{dark}}}'
        for light, dark in DARK.items()
        for paint in ("fill", "stroke")
        if light != dark and f'{paint}="{light}"' in drawn
    ]
    return element("style", f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}")


def label(
    characters: str, x: float, y: float, size: float = 12, *, fill: str = INK, anchor: str | None = None, **more: object
) -> str:
    """A line of text whose base line starts (or is anchored) at (x, y); monospaced, as `document` says once."""
    family = more.pop("font_family", None)
    content = text(characters)
    return element("text", content, x=x, y=y, font_family=family, font_size=size, fill=fill, text_anchor=anchor, **more)


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)
