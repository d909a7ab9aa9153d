"""The dashboard's layout in a real JupyterLab: which views, where, what is remembered, and the command palette."""

from __future__ import annotations

import json

from playwright.sync_api import Page, expect

from harness.dashboard import PROGRAM, docked
from harness.page import becomes, command, run_cell


def side(page: Page) -> str:
    """On which side of the notebook the dashboard stands."""
    notebook, docked = (page.locator(one).first.bounding_box() for one in (".jp-NotebookPanel", ".ll-docked"))
    if notebook is None or docked is None:
        return "nowhere"
    below = docked["y"] >= notebook["y"] + notebook["height"] - 2
    left = docked["x"] + docked["width"] <= notebook["x"] + 2
    right = docked["x"] >= notebook["x"] + notebook["width"] - 2
    return "below" if below else "left" if left else "right" if right else "over it"


def test_views_and_place_are_as_asked_for_and_remembered(small, picture):
    page = small(PROGRAM, "%dashboard predict --panels graph,tape,devices --dock bottom", "%dashboard --close")
    expect(page.locator(".ll-docked")).to_have_count(0)
    run_cell(page, 1)
    panel = docked(page)
    expect(panel.get_by_role("tab")).to_have_text(["Tape", "Devices"])
    assert becomes(page, lambda: side(page), "below") == "below"
    panel.get_by_role("tab", name="Devices").click()
    bar = panel.get_by_role("separator", name="Room for the graph")
    wide = panel.locator(".ll-dash-first").bounding_box()["width"]
    bar.press("ArrowLeft")
    expect(bar).to_have_attribute("aria-valuenow", "55")
    assert panel.locator(".ll-dash-first").bounding_box()["width"] < wide
    picture(page, "dashboard-bottom-light")
    run_cell(page, 2)
    command(page, "limelight:dashboard")  # asks for nothing
    panel = docked(page)
    expect(panel.get_by_role("tab", name="Devices")).to_have_attribute("aria-selected", "true")
    expect(panel.get_by_role("tab")).to_have_text(["Tape", "Devices"])
    expect(panel.get_by_role("separator")).to_have_attribute("aria-valuenow", "55")
    assert becomes(page, lambda: side(page), "below") == "below"
    assert page.locator(".jp-Notebook .jp-Cell").count() == 4


def test_one_view_alone_another_place_and_reset(small, picture):
    page = small(
        PROGRAM,
        "%dashboard predict",
        "%dashboard --panels tape --dock left",
        "%dashboard --dock tab",
        "%dashboard --reset",
    )
    panel = docked(page)
    expect(panel.get_by_role("tab")).to_have_text(["Traces", "Tape", "Devices"])
    run_cell(page, 2)
    expect(panel.get_by_role("tab")).to_have_text(["Tape"])
    expect(panel.locator(".ll-graph-view")).to_have_count(0)
    assert becomes(page, lambda: side(page), "left") == "left"
    expect(panel.locator(".ll-title").first).to_have_text("Dashboard predict")
    picture(page, "dashboard-tape-alone-light")
    run_cell(page, 4)
    expect(docked(page).get_by_role("tab")).to_have_text(["Traces", "Tape", "Devices"])
    assert becomes(page, lambda: side(page), "right") == "right"
    stored = "() => Object.entries(localStorage).filter(([key]) => key.startsWith('limelight-dashboard')).at(-1)[1]"
    assert becomes(page, lambda: list(json.loads(page.evaluate(stored))), ["reset"]) == ["reset"]


def test_the_palette_opens_the_dashboard_and_each_view(small, picture):
    page = small(PROGRAM)
    page.locator(".jp-Notebook").first.click()
    page.keyboard.press("Control+Shift+C")
    page.keyboard.type("dashboard")
    entries = page.locator(".lm-CommandPalette-item", has_text="Dashboard")
    expect(entries).to_have_count(5)
    picture(page, "dashboard-palette-light")
    entries.filter(has_text="Devices").click()
    panel = docked(page)
    expect(panel.get_by_role("tab", name="Devices")).to_have_attribute("aria-selected", "true")
    command(page, "limelight:dashboard-tape")
    expect(panel.get_by_role("tab", name="Tape")).to_have_attribute("aria-selected", "true")


def test_a_theme_that_was_asked_for(small, picture):
    page = small(PROGRAM, "%dashboard predict", "%stageconfig theme=dark -q", "%stageconfig theme=auto -q")
    panel = docked(page)
    panel.locator(".ll-box").first.wait_for()
    ground = "panel => getComputedStyle(panel).backgroundColor"
    light = panel.evaluate(ground)
    run_cell(page, 2)
    expect(page.locator('[data-ll-theme="dark"] .ll-dashboard')).to_have_count(1)
    dark = panel.evaluate(ground)
    assert dark != light
    picture(page, "dashboard-asked-dark")
    run_cell(page, 3)
    expect(page.locator("[data-ll-theme]")).to_have_count(0)
    assert becomes(page, lambda: panel.evaluate(ground), light) == light
