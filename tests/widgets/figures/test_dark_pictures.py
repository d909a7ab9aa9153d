"""Static pictures in the dark: every colour has another, and what is written can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from limelight_widgets.figures import svg

FIGURES = Path(svg.__file__).parent
TEXT = (svg.INK, svg.QUIET)
GROUNDS = sorted({*svg.DARK} - {svg.EDGE, svg.INK, svg.QUIET, svg.RULE, svg.ACCENT, svg.FAILED})


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def in_both(*colours):
    return colours, tuple(svg.DARK[colour] for colour in colours)


@pytest.mark.parametrize("ground", GROUNDS)
def test_text_can_be_read_in_both_themes(ground):
    for words in TEXT:
        for ink, behind in in_both(words, ground):
            assert contrast(ink, behind) >= 4.5, (ink, behind)


def test_marks_and_edges_are_seen_in_both_themes():
    for colour in (svg.EDGE, svg.RULE, svg.ACCENT, svg.FAILED):
        for mark, behind in in_both(colour, svg.BACKDROP):
            assert contrast(mark, behind) >= 3, (mark, behind)


def test_every_colour_of_a_picture_has_one_for_the_dark():
    written = {
        colour
        for path in FIGURES.glob("*.py")
        if path.name != "tensor_tile.py"  # which has no backdrop, and one colour for both
        for colour in re.findall(r'"(#[0-9a-f]{6})"', path.read_text(encoding="utf-8").partition("\nDARK = ")[0])
    }
    written |= {*svg.FILL.values(), *svg.LANE.values()}
    assert written <= {*svg.DARK}


def test_a_picture_says_its_colours_in_the_dark_and_no_others():
    drawn = svg.document(10.0, 10.0, "t", "d", [svg.label("x", 1, 1)])
    style = re.search("<style>(.*)</style>", drawn)[1]
    assert style.startswith("@media (prefers-color-scheme:dark){")
    assert f'[fill="{svg.INK}"]{{fill:{svg.DARK[svg.INK]}}}' in style
    assert svg.ACCENT not in style
