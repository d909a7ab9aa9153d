"""What the graph view offers besides: files, overlays, passes, what is kept, and the graph of a failed cell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from harness.page import DARK, LIGHT, becomes, output, run_all, set_theme
from harness.programs import IMPORTS, PROGRAMS

AXE = Path(__file__).parents[2] / "widgets" / "js" / "node_modules" / "axe-core" / "axe.min.js"
CALL = "convolutional(images, labels)"
FAILS = "def call(x):\n    y = ll.tanh(x) * 2.0\n    return y @ ll.ones((3, 3))\nf = ll.function(call)"
CELLS = [
    IMPORTS + "\n%load_ext limelight",
    PROGRAMS["convolutional"],
    "view = ll.widgets.graph(convolutional); view",
    PROGRAMS["autoencoder"],
    "ll.widgets.graph(autoencoder)",
    FAILS + "\ntry:\n    f(ll.ones((2, 2)))\nexcept ll.errors.ShapeError:\n    pass\n%graph f",
    "%graph convolutional --overlay bytes",
]


@pytest.fixture
def page(open_cells) -> Page:
    made = open_cells(*CELLS)
    made.set_viewport_size({"width": 1280, "height": 720})
    run_all(made)
    return made


def view_at(page: Page, cell: int) -> Locator:
    view = output(page, cell).locator(".ll-graph-view").first
    view.scroll_into_view_if_needed()
    view.locator(".ll-box").first.wait_for()
    return view


def test_files_overlays_passes_and_failures(page, picture) -> None:
    is_kept(page, view_at(page, 2))
    is_stepped_through(view_at(page, 2), picture)
    is_overlaid(view_at(page, 2))
    is_sought(view_at(page, 2))
    is_saved(page, view_at(page, 2))
    is_failed(view_at(page, 5))
    have_names(page)
    for theme in (LIGHT, DARK):
        set_theme(page, theme)
        name = "dark" if theme == DARK else "light"
        for cell, what in ((2, "passes"), (4, "autoencoder"), (5, "failed"), (6, "bytes")):
            picture(view_at(page, cell), f"graph-tools-{what}-{name}")


def is_kept(page: Page, view: Locator) -> None:
    """A forward box lights its gradient and lists what is kept for it, heaviest first."""
    assert "loss" in view.locator(".ll-strip-loss").first.text_content()
    box = view.locator(".ll-box.ll-group").first
    box.click()
    expect(view.locator(".ll-details")).to_contain_text("Kept for the backward pass")
    expect(view.locator(".ll-kept li")).not_to_have_count(0)
    expect(view.locator(".ll-mirrored")).not_to_have_count(0)
    page.keyboard.press("Escape")


def is_stepped_through(view: Locator, picture) -> None:
    """Every stop's arithmetic closes, boxes stay, and the text of the change is a key away."""
    view.get_by_role("button", name="Show it from version to version").click()
    slider = view.get_by_role("slider", name="Stop")
    expect(slider).to_be_visible()
    places = (
        "view => [...view.querySelectorAll('.ll-box')].map(box => [box.dataset.box, box.getAttribute('transform')])"
    )
    stops = int(slider.get_attribute("max"))

    def marks(key: str) -> int:
        """How many boxes are marked on the way through all stops; none before the picture of all versions is there."""
        found = 0
        for _ in range(stops):
            slider.press(key)
            found += view.locator(".ll-fate").count()
        return found

    assert becomes(view.page, lambda: max(marks("ArrowRight"), marks("ArrowLeft")) >= 2, True)
    before = view.evaluate(places)
    assert marks("ArrowRight") >= 2
    assert view.evaluate(places) == before
    expect(view.locator(".ll-history-bar b")).to_contain_text("=")
    view.locator(".ll-canvas").locator(".ll-box").first.focus()
    view.page.keyboard.press("[")
    view.page.keyboard.press("t")
    expect(view.locator(".ll-diff")).to_be_visible()
    expect(view.locator(".ll-diff")).to_contain_text("- ")
    picture(view, "graph-tools-text-diff")
    view.get_by_role("button", name="Show the optimised graph").click()
    expect(slider).to_be_hidden()


def is_overlaid(view: Locator) -> None:
    """A number on each box, a legend with the unit; what was not measured says so."""
    menu = view.get_by_role("combobox", name="Told on the boxes")
    menu.select_option("bytes")
    expect(view.locator(".ll-legend")).to_contain_text("bytes of what each op gives")
    expect(view.locator(".ll-share").nth(4)).to_be_attached()
    menu.select_option("time")
    expect(view.locator(".ll-legend")).to_contain_text("not measured")
    menu.select_option("")
    expect(view.locator(".ll-legend")).to_be_hidden()


def is_sought(view: Locator) -> None:
    """The count of what was found moves nothing, however wide the view is."""
    moved = """view => {
      const [bar, matches] = [view.querySelector(".ll-bar"), view.querySelector(".ll-matches")];
      const room = view.parentElement, found = [];
      for (let width = 360; width <= 1200; width += 10) {
        room.style.width = `${width}px`;
        matches.textContent = "";
        const before = bar.offsetHeight;
        matches.textContent = "12 of 1,024 matches";
        if (bar.offsetHeight !== before) found.push(width);
      }
      room.style.width = matches.textContent = "";
      return found;
    }"""
    assert view.evaluate(moved) == []


def is_saved(page: Page, view: Locator) -> None:
    """All kinds of files, from the page alone; the same picture twice gives the same bytes."""
    menu = view.get_by_role("combobox", name="Save the graph as a file")

    def saved(ending: str) -> bytes:
        with page.expect_download() as download:
            menu.select_option(ending)
        assert download.value.suggested_filename.endswith(f".{ending}")
        return Path(download.value.path()).read_bytes()

    svg = saved("svg").decode()
    assert svg == saved("svg").decode()
    assert "<title>Graph of" in svg
    assert "6: Dense<" in svg
    assert "var(" not in svg
    png = saved("png")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert json.loads(saved("json"))["schema"] == "limelight-graph/1"
    assert json.loads(saved("me.json"))["graphs"][0]["nodes"]
    assert saved("dot").decode().startswith("digraph")
    assert " = conv(" in saved("txt").decode()


def is_failed(view: Locator) -> None:
    """The error is on its box, which is chosen, and its line is lit."""
    expect(view.locator(".ll-box.ll-error")).to_have_text(re.compile("^✗ matmulShapeError"))
    expect(view.locator(".ll-details")).to_contain_text("ShapeError: matmul")
    expect(view.locator(".ll-source .ll-line.ll-chosen")).to_contain_text("y @ ll.ones")


def have_names(page: Page) -> None:
    """Every view's landmark has a name of its own."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {runOnly: ['landmark-unique', 'region']})")
    ours = [
        node["html"]
        for one in found["violations"]
        if one["id"] == "landmark-unique"
        for node in one["nodes"]
        if "ll-" in node["html"]
    ]
    assert ours == []
    names = page.locator(".ll-graph-view").evaluate_all("views => views.map(view => view.getAttribute('aria-label'))")
    assert len(set(names)) == len(names)
    assert all(name.startswith("Graph of ") for name in names)


def test_keys_of_its_tools_are_no_commands_of_the_notebook(open_cells) -> None:
    """In JupyterLab B inserts a cell, and the arrow goes to the next one, whatever has the focus."""
    page = open_cells("import limelight as ll\nf = ll.function(ll.tanh)\nf(ll.ones((2,)))\nll.widgets.graph(f)")
    run_all(page)
    view = output(page, 0).locator(".ll-graph-view").first
    view.locator(".ll-box").first.wait_for()
    overlay = view.get_by_role("combobox", name="Told on the boxes")
    overlay.focus()
    page.keyboard.press("ArrowDown")
    expect(overlay).to_have_value("time")
    view.get_by_role("button", name="Fit").focus()
    page.keyboard.press("b")
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(1)
