"""The dashboard's layout in a real JupyterLab: which views, where, what is remembered, and the command palette."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from harness.page import run_all, run_cell

PROGRAM = """\
%load_ext limelight
import limelight as ll
w = ll.Variable(ll.ones((8, 4)), name="kernel")

@ll.function
def predict(x):
    h = x @ w
    return ll.tanh(h)

for n in (2, 3):
    predict(ll.ones((n, 8)))
with ll.GradientTape() as tape:
    y = ll.sum(ll.tanh(w * 2.0))"""


@pytest.fixture
def lab(open_cells):
    def open_them(*cells: str) -> Page:
        page = open_cells(*cells)
        page.set_viewport_size({"width": 1280, "height": 720})
        run_all(page)
        return page

    return open_them


def panel_of(page: Page):
    panel = page.locator(".ll-docked .ll-dashboard")
    expect(panel).to_have_count(1)
    return panel


def places(page: Page) -> tuple[dict, dict]:
    notebook, docked = (page.locator(one).first.bounding_box() for one in (".jp-NotebookPanel", ".ll-docked"))
    assert notebook is not None
    assert docked is not None
    return notebook, docked


def test_views_and_place_are_as_asked_for_and_remembered(lab, picture):
    page = lab(PROGRAM, "%dashboard predict --panels graph,tape,devices --dock bottom", "%dashboard --close")
    expect(page.locator(".ll-docked")).to_have_count(0)
    run_cell(page, 1)
    panel = panel_of(page)
    expect(panel.get_by_role("tab")).to_have_text(["Tape", "Devices"])
    notebook, docked = places(page)
    assert docked["y"] >= notebook["y"] + notebook["height"] - 2, "below the notebook"
    panel.get_by_role("tab", name="Devices").click()
    picture(page, "dashboard-bottom-light")
    run_cell(page, 2)
    page.evaluate("() => window.jupyterapp.commands.execute('limelight:dashboard')")  # asks for nothing
    panel = panel_of(page)
    expect(panel.get_by_role("tab", name="Devices")).to_have_attribute("aria-selected", "true")
    expect(panel.get_by_role("tab")).to_have_text(["Tape", "Devices"])
    notebook, docked = places(page)
    assert docked["y"] >= notebook["y"] + notebook["height"] - 2
    assert page.locator(".jp-Notebook .jp-Cell").count() == 4


def test_one_view_alone_another_place_and_reset(lab, picture):
    page = lab(
        PROGRAM,
        "%dashboard predict",
        "%dashboard --panels tape --dock left",
        "%dashboard --dock tab",
        "%dashboard --reset",
    )
    panel = panel_of(page)
    expect(panel.get_by_role("tab")).to_have_text(["Traces", "Tape", "Devices"])
    run_cell(page, 2)
    expect(panel.get_by_role("tab")).to_have_text(["Tape"])
    expect(panel.locator(".ll-graph-view")).to_have_count(0)
    notebook, docked = places(page)
    assert docked["x"] + docked["width"] <= notebook["x"] + 2, "left of the notebook"
    expect(panel.locator(".ll-title").first).to_have_text("Dashboard predict")
    picture(page, "dashboard-tape-alone-light")
    run_cell(page, 4)
    expect(panel_of(page).get_by_role("tab")).to_have_text(["Traces", "Tape", "Devices"])
    notebook, docked = places(page)
    assert docked["x"] >= notebook["x"] + notebook["width"] - 2, "to the right again"
    stored = "() => Object.entries(localStorage).filter(([key]) => key.startsWith('limelight-dashboard')).at(-1)[1]"
    assert set(json.loads(page.evaluate(stored))) == {"reset"}


def test_the_palette_opens_the_dashboard_and_each_view(lab, picture):
    page = lab(PROGRAM)
    page.locator(".jp-Notebook").first.click()
    page.keyboard.press("Control+Shift+C")
    page.keyboard.type("dashboard")
    entries = page.locator(".lm-CommandPalette-item", has_text="Dashboard")
    expect(entries).to_have_count(5)
    picture(page, "dashboard-palette-light")
    entries.filter(has_text="Devices").click()
    panel = panel_of(page)
    expect(panel.get_by_role("tab", name="Devices")).to_have_attribute("aria-selected", "true")
    page.evaluate("() => window.jupyterapp.commands.execute('limelight:dashboard-tape')")
    expect(panel.get_by_role("tab", name="Tape")).to_have_attribute("aria-selected", "true")


def test_a_theme_that_was_asked_for(lab, picture):
    page = lab(PROGRAM, "%dashboard predict", "%stageconfig theme=dark -q", "%stageconfig theme=auto -q")
    panel = panel_of(page)
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
    assert panel.evaluate(ground) == light
