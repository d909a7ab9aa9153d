"""Views that follow one another, and values as tiles, in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from harness.axe import violations
from harness.page import DARK, output, run_all, set_theme

PROGRAM = """\
%load_ext limelight
import numpy as np
import limelight as ll

@ll.function
def double(x):
    return x * 2.0

for size in (2, 3):
    double(ll.ones((size,)))"""

TAPE = """\
w = ll.Variable(np.ones((784, 100), "float32"), name="encoder/hidden_layer/kernel")
with ll.GradientTape() as tape:
    y = ll.tanh(ll.ones((32, 784)) @ w)
%tape"""

VALUES = """\
a = np.random.default_rng(0).normal(size=(40, 60)).astype("float32")
a[3, 4], a[20, 30] = np.nan, np.inf
ll.constant(a)"""


def test_graphs_follow_the_trace_that_is_chosen_in_the_cache(open_cells, picture):
    page = open_cells(PROGRAM, "%trace_cache double", "%graph double", "%devices", TAPE)
    run_all(page)
    cache, graph = output(page, 1).locator(".ll-cache-view"), output(page, 2).locator(".ll-graph-view")
    expect(graph).to_contain_text("trace #2 of 2")
    first, second = cache.get_by_role("button", name="trace #1"), cache.get_by_role("button", name="trace #2")
    graph.locator(".ll-line", has_text="return x * 2.0").locator(".ll-code").click()
    chosen = graph.locator(".ll-line.ll-chosen")
    expect(chosen).to_contain_text("return x * 2.0")
    first.click()
    expect(graph).to_contain_text("trace #1 of 2")
    expect(chosen).to_contain_text("return x * 2.0")  # what a line made in another trace is what a reader looks for
    expect(graph.locator(".ll-box.ll-lit")).to_contain_text("multiply")
    expect(first).to_have_attribute("aria-pressed", "true")
    rows = cache.locator("[data-trace]")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(graph).to_contain_text("trace #2 of 2")
    expect(rows.nth(1)).to_be_focused()
    expect(second).to_have_attribute("aria-pressed", "true")
    first.click(modifiers=["Shift"])
    expect(cache).to_contain_text("differ in 1 part")
    picture(cache, "cache-two-chosen-light")
    devices = output(page, 3).locator(".ll-devices-view")
    expect(devices.locator(".ll-axis-end").first).to_have_text("now")
    timeline = devices.get_by_role("slider").first
    timeline.locator("svg").click(position={"x": 5, "y": 10})
    expect(devices).to_contain_text("%devices --live")
    timeline.press("End")
    expect(timeline).to_be_focused()
    expect(devices.locator(".ll-asked").first).to_contain_text("now: ")
    expect(devices.locator(".ll-asked").first).not_to_contain_text("now: 0 B")
    picture(devices, "devices-timeline-light")
    tape = output(page, 4).locator(".ll-tape-view")
    cell = tape.get_by_text("encoder/hidden_layer/kernel f32[784,100]").first
    shapes = "rows => rows.flatMap(row => [...row.children].slice(4, 6))"
    cut = f"rows => ({shapes})(rows).filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
    assert tape.locator(".ll-rows > .ll-grid").evaluate_all(cut) == []
    beyond = """rows => rows.map((row) => row.lastChild.getBoundingClientRect().right
        - row.closest('.ll-tape').getBoundingClientRect().right)"""
    assert all(pixels <= 0 for pixels in tape.locator(".ll-rows > .ll-grid").evaluate_all(beyond)), "rules are in sight"
    cell.click()
    expect(tape.locator(".ll-row-detail math mover").first).to_be_visible()
    picture(tape, "tape-formula-light")
    for view in ("graph", "cache", "devices", "tape"):
        assert not violations(page, f".ll-{view}-view"), view
    set_theme(page, DARK)
    for view in ("graph", "cache", "devices", "tape"):
        assert not violations(page, f".ll-{view}-view"), view


def test_a_tensor_is_a_tile(open_cells, picture):
    page = open_cells(PROGRAM, VALUES)
    run_all(page)
    tile = output(page, 1)
    expect(tile).to_contain_text("1 NaN")
    expect(tile.locator("img")).to_have_count(2)
    picture(tile, "tile-light")
    set_theme(page, DARK)
    picture(tile, "tile-dark")
