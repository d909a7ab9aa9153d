"""The player of recorded steps, in a page that has no kernel."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import limelight as ll
from harness.page import output, run_all


@pytest.fixture(scope="module")
def page_of_steps(tmp_path_factory):
    def program(x, w):
        h = ll.tanh(x @ w)
        z = ll.log(h - 0.5)
        return (h**2).mean() + z.sum() * 0.0

    path = tmp_path_factory.mktemp("steps") / "steps.html"
    x = ll.reshape(ll.arange(100.0), (10, 10)) / 50.0
    ll.widgets.steps(program, x, ll.eye(10), gradient_of=True).save(str(path))
    return path.as_uri()


def test_it_plays_by_keys_and_by_mouse(page_of_steps, chromium_context):
    page = chromium_context.new_page()
    page.goto(page_of_steps)
    count, slider = page.locator(".ll-steps .count"), page.get_by_role("slider")
    expect(count).to_contain_text("1 of ")
    expect(page.locator(".ll-steps .source .on")).to_contain_text("h = ll.tanh(x @ w)")
    expect(page.locator(".ll-steps .detail")).to_contain_text("no value yet")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".ll-steps .source .on")).to_contain_text("z = ll.log")
    page.keyboard.press("n")
    expect(page.locator(".ll-steps .detail .bad")).to_contain_text("NaN")
    assert page.locator(".ll-steps .picture i.nan").count() > 0
    page.get_by_role("button", name="Backward").click()
    expect(page.locator(".ll-steps .detail")).to_contain_text("The op of the gradient")
    page.keyboard.press("End")
    expect(page.get_by_role("button", name="Step forward")).to_have_count(1)


def test_the_line_is_in_sight_from_the_first_step_on(page_of_steps, chromium_context):
    """In a pane that stands low in its page, and shows three lines at a time; the page itself stays where it is."""
    page = chromium_context.new_page()
    low = "document.addEventListener('DOMContentLoaded', () => { document.body.style.padding = '300px 0 2000px' })"
    page.add_init_script(low)
    page.goto(page_of_steps)
    page.add_style_tag(content=".ll-steps .source { height: 54px !important; box-sizing: content-box }")
    hidden = """() => {
        const rectangle = (name) => document.querySelector(`.ll-steps ${name}`).getBoundingClientRect();
        const [pane, row] = ['.source', '.source .on'].map(rectangle);
        return Math.max(0, pane.top - row.top, row.bottom - pane.bottom);
    }"""
    seen = []
    for _ in range(4):
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        seen.append((page.evaluate(hidden), page.evaluate("scrollY")))
        page.evaluate("document.querySelector('.ll-steps [aria-label=\"To the next other line\"]').click()")
    assert seen == [(0, 0)] * 4


def test_it_opens_at_its_first_stop_and_goes_from_stop_to_stop(tmp_path, chromium_context):
    path = tmp_path / "stops.html"
    player = ll.widgets.steps(lambda x: ll.log(x) + ll.log(x * 2.0), ll.constant([0.0, 1.0]), stop_at="op:log,nan")
    player.save(str(path))
    page = chromium_context.new_page()
    page.goto(path.as_uri())
    count, slider = page.locator(".ll-steps .count"), page.get_by_role("slider")
    expect(count).to_have_text(f"{player.stops[0] + 1} of {len(player.recording)}, a stop")
    slider.focus()
    page.keyboard.press("]")
    expect(count).to_have_text(f"{player.stops[1] + 1} of {len(player.recording)}, a stop")
    page.get_by_role("button", name="To the stop before").click()
    expect(count).to_have_text(f"{player.stops[0] + 1} of {len(player.recording)}, a stop")


def test_one_tab_stop_besides_what_scrolls(page_of_steps, chromium_context):
    page = chromium_context.new_page()
    page.goto(page_of_steps)
    stops = page.evaluate(
        "[...document.querySelectorAll('.ll-steps button, .ll-steps input')].filter((e) => e.tabIndex >= 0).length"
    )
    assert stops == 1


def test_nothing_is_lost_in_a_narrow_page(page_of_steps, chromium_context):
    page = chromium_context.new_page()
    page.set_viewport_size({"width": 360, "height": 720})
    page.goto(page_of_steps)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_its_keys_are_its_own_in_a_notebook(open_cells):
    """JupyterLab has commands on the same keys: B inserts a cell, R makes one raw, the right arrow opens a heading."""
    page = open_cells("%load_ext limelight\nimport limelight as ll", "%steps --grad ll.tanh(ll.ones((2, 2)))")
    run_all(page)
    player = output(page, 1).locator(".ll-steps .player")
    player.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(player.locator(".count")).to_contain_text("2 of ")
    page.keyboard.press("r")
    expect(player.locator("button.on")).to_contain_text("Run")
    page.keyboard.press("b")
    expect(player.locator("button.on")).to_contain_text("Backward")
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)
