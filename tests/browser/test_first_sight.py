"""How the graphs of real models open: all of them in sight, no text below 11 pixels, no box on another."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect

from harness.page import DARK, LIGHT, becomes, output, run_all, set_theme
from harness.programs import IMPORTS, PROGRAMS
from harness.sight import ENLARGED, LEAST_TYPE, out_of_sight, problems, settle, smallest_type
from harness.staged_programs import IMPORTS as STAGED_IMPORTS
from harness.staged_programs import STAGED

COLLATZ = """\
%%stage collatz --autograph
steps = 0
while n != 1:
    n = ll.where(n % 2 == 0, n // 2, 3 * n + 1)
    steps += 1
n, steps"""
WINDOWS = ((1280, 720), (1920, 1080))


def seen(page, shown) -> list[str]:
    """What is wrong with a view once it stands as it shall: its picture is found out in turns of the page."""
    return list(becomes(page, lambda: problems(shown), []))


@pytest.fixture
def views(open_cells):
    """One page with all programs: gives the window's page, and each program's view by name."""
    page = open_cells(
        IMPORTS, *(cell for name, code in PROGRAMS.items() for cell in (code, f"ll.widgets.graph({name})"))
    )
    page.set_viewport_size({"width": WINDOWS[0][0], "height": WINDOWS[0][1]})
    run_all(page)

    def view(name):
        at = 2 + 2 * list(PROGRAMS).index(name)
        found = output(page, at).locator(".ll-graph-view").first
        return settle(found)

    return page, view


def test_models_open_in_sight(views, picture) -> None:
    page, view = views
    wrong = {}
    # A theme changes nothing of where boxes are: in the dark two are looked at, and all where pictures are asked for.
    dark = PROGRAMS if "LIMELIGHT_PICTURES" in os.environ else ("convolutional", "transformer")
    for theme, windows, names in ((LIGHT, WINDOWS, PROGRAMS), (DARK, WINDOWS[:1], dark)):
        set_theme(page, theme)
        for width, height in windows:
            page.set_viewport_size({"width": width, "height": height})
            for name in names:
                found = seen(page, view(name))
                if found:
                    wrong[name, theme, width] = found
                if height == WINDOWS[0][1]:
                    picture(view(name), f"first-sight-{name}-{'dark' if theme == DARK else 'light'}")
    page.set_viewport_size(ENLARGED)
    for name in ("transformer", "residual"):  # there they would be dust, if they had to fit into the window
        if found := seen(page, view(name)):
            wrong[name, "enlarged"] = found
    assert wrong == {}
    page.set_viewport_size({"width": WINDOWS[0][0], "height": WINDOWS[0][1]})
    is_read_opened_and_lit(page, view("transformer"))
    is_in_sight_when_opened(view("residual"))
    is_projected(page, view("convolutional"), picture)


def test_models_in_staged_cells_open_in_sight(open_cells, picture) -> None:
    page = open_cells(
        STAGED_IMPORTS, *(cell for pair in STAGED.values() for cell in pair), "n = ll.constant(27)", COLLATZ
    )
    page.set_viewport_size({"width": WINDOWS[0][0], "height": WINDOWS[0][1]})
    run_all(page)
    wrong = {}
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        for at, name in enumerate(STAGED):
            shown = settle(output(page, 2 + 2 * at).locator(".ll-graph-view").first)
            if found := seen(page, shown):
                wrong[name, width] = found
            picture(shown, f"first-sight-{name}-{width}")
            page.set_viewport_size({"width": width, "height": height})
    assert wrong == {}
    rounds = output(page, 2 + 2 * list(STAGED).index("l2hmc")).locator(".ll-box.ll-group", has_text="lines 7–11 ×10")
    expect(rounds).to_have_count(1)  # helpers that call modules, in a loop of ten rounds
    page.set_viewport_size({"width": WINDOWS[0][0], "height": WINDOWS[0][1]})
    stays_in_sight(page, settle(output(page, 2 + 2 * len(STAGED)).locator(".ll-graph-view").first), picture)


def stays_in_sight(page, shown, picture) -> None:
    """All of a graph is in sight when the code comes beside it, and again when it goes."""
    shown.locator(".ll-box").last.click(position={"x": 12, "y": 8})
    shown.locator(".ll-side").wait_for()
    settle(shown)
    picture(shown, "first-sight-with-panel")
    assert becomes(page, lambda: out_of_sight(shown), []) == []
    page.keyboard.press("Escape")
    settle(shown)
    assert becomes(page, lambda: out_of_sight(shown), []) == []


BLANK = """view => [...view.querySelectorAll(".ll-saved")].filter((one) =>
  one.querySelector("rect")?.checkVisibility() && !one.querySelector("text").checkVisibility()).length"""
"""Grounds of bytes whose words are left out, since they could not be read at that scale."""


def is_read_opened_and_lit(page, shown) -> None:
    """Layers and their number, the optimiser, what is kept; what is opened stays; gradients are lit."""
    assert "blocks" in shown.locator(".ll-box.ll-group", has_text="×4").first.text_content()
    assert "69 variables" in shown.locator(".ll-box", has_text="Adam").first.text_content()
    expect(shown.locator(".ll-saved").nth(1)).to_be_attached()
    shown.get_by_role("button", name="Zoom out").click()
    expect(shown.locator(".ll-saved text").first).to_be_hidden()
    assert shown.evaluate(BLANK) == 0
    shown.get_by_role("button", name="Fit").click()
    settle(shown)

    box = shown.locator(".ll-box", has_text="×4").first
    name = box.get_attribute("data-box")
    box.locator(".ll-opener").hover()  # which scrolls the page
    before = box.locator(".ll-outline").bounding_box()
    box.locator(".ll-opener").click()
    frame = shown.locator(f'.ll-frame[data-frame="{name}"] .ll-frame-outline')
    after = frame.bounding_box()
    assert abs(after["x"] - before["x"]) < 1
    assert abs(after["y"] - before["y"]) < 1
    expect(shown.locator(".ll-side")).to_be_hidden()  # it would cover what was opened
    shown.get_by_role("button", name="Close all groups and functions").click()

    shown.locator(".ll-strip-forward").first.wait_for()
    shown.locator(".ll-box.ll-group", has_text="head").first.click()
    expect(shown.locator(".ll-mirrored")).to_have_count(1)
    assert "head" in shown.locator(".ll-details").text_content()
    page.keyboard.press("Escape")


def is_in_sight_when_opened(shown) -> None:
    """The corner at the edge of the view stays; the view becomes higher, but not where the reader has resized it."""
    body = shown.locator(".ll-body")
    before, low = shown.locator(".ll-box.ll-group", has_text="stages.4").first, body.bounding_box()
    before.scroll_into_view_if_needed()
    outline, name = before.locator(".ll-outline").bounding_box(), before.get_attribute("data-box")
    before.dblclick()
    frame = shown.locator(f'.ll-frame[data-frame="{name}"] .ll-frame-outline').bounding_box()
    room = shown.locator(".ll-canvas").bounding_box()
    assert abs(frame["x"] + frame["width"] - outline["x"] - outline["width"]) < 1
    assert abs(frame["y"] - outline["y"]) < 1
    assert frame["x"] > room["x"]
    assert body.bounding_box()["height"] > low["height"]
    body.evaluate("body => { body.style.height = '400px'; }")  # as the browser does
    shown.locator(f'.ll-close[data-title="{name}"]').click()
    shown.get_by_role("button", name="Fit").click()
    shown.locator(".ll-box.ll-group", has_text="stem").first.dblclick()
    expect(shown.locator(".ll-frame")).to_have_count(1)
    assert body.bounding_box()["height"] == 400
    body.evaluate("body => { body.style.height = ''; }")
    shown.get_by_role("button", name="Close all groups and functions").click()


def is_projected(page, shown, picture) -> None:
    """Larger type, and still all in sight."""
    shown.get_by_role("button", name="Larger type").click()
    settle(shown)
    assert smallest_type(shown) >= LEAST_TYPE - 0.05
    assert seen(page, shown) == []
    assert shown.evaluate("view => view.currentCSSZoom") > 1.3
    picture(page, "first-sight-projector")
