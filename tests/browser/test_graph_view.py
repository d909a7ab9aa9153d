"""The graph view on nested functions and fused ops, in a narrow window, and with thousands of ops."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from harness.page import DARK, becomes, cell, command, output, run_all, run_cell, set_theme

SETUP = """\
%load_ext limelight
import limelight as ll
x = ll.ones((8, 16))
a_variable_with_quite_a_long_name = ll.Variable(ll.ones((16, 4)), name="a_variable_with_quite_a_long_name")
@ll.function
def dense_layer(x, w):
    return ll.tanh(x @ w) * 2.0 + 1.0
@ll.function
def many(x):
    for n in range(1200):
        x = x * 1.0001 + 0.5
    return ll.sum(x)
many(x);"""
STAGED = """\
%%stage a_step_with_quite_a_long_name
h = dense_layer(x, a_variable_with_quite_a_long_name)
y = ll.cond(ll.sum(h) > 0.0, lambda: ll.exp(h) * 2.0, lambda: ll.log(ll.abs(h)) + 1.0)
loss = ll.sum(ll.tanh(y) * 2.0 + 1.0) + ll.sum(ll.tanh(y) * 2.0 + 1.0)
loss"""
UNALIKE = """\
import random
random.seed(7)
steps = random.choices([ll.tanh, ll.sin, ll.cos, ll.exp, ll.sigmoid], k=600)
@ll.function
def unalike(x):
    for step in steps:
        x = step(x)
    return x
unalike(x)
%graph unalike"""
TRAINING = """\
net = ll.nn.Sequential(*(ll.nn.Dense(4, activation="tanh") for _ in range(60)))
@ll.function
def training(x):
    with ll.GradientTape() as tape:
        loss = ll.sum(net(x) * 1.0)
    return tape.gradient(loss, net.trainable_variables)
training(x)
%graph training"""
NARROW = {"width": 900, "height": 900}


def view_of(page: Page, index: int) -> Locator:
    view = output(page, index).locator(".ll-graph-view").first
    view.locator(".ll-box").first.wait_for()
    return view


def box(view: Locator, title: str) -> Locator:
    return view.locator(".ll-box", has=view.page.locator(f'text="{title}"')).first


def out_of_sight(view: Locator) -> list[str]:
    """The boxes that lie beyond the picture's edges."""
    return list(
        view.evaluate(
            """view => {
              const canvas = view.querySelector(".ll-canvas").getBoundingClientRect();
              return [...view.querySelectorAll(".ll-box")].filter(box => {
                const place = box.querySelector(".ll-outline").getBoundingClientRect();
                return place.left < canvas.left || place.right > canvas.right || place.top < canvas.top
                  || place.bottom > canvas.bottom;
              }).map(box => box.dataset.box);
            }"""
        )
    )


def counted(view: Locator) -> list[int]:
    """The boxes that are in sight, on the page, and of the picture; how many lie beyond the edges is said there."""
    return list(
        view.evaluate(
            """view => {
              const canvas = view.querySelector(".ll-canvas").getBoundingClientRect();
              const boxes = [...view.querySelectorAll(".ll-box")];
              const seen = boxes.filter(box => {
                const place = box.querySelector(".ll-outline").getBoundingClientRect();
                const [x, y] = [place.x + place.width / 2, place.y + place.height / 2];
                return canvas.left <= x && x <= canvas.right && canvas.top <= y && y <= canvas.bottom;
              }).length;
              const beyond = [...view.querySelectorAll(".ll-beyond:not([hidden])")].map(one => one.textContent);
              return [seen, boxes.length, beyond.reduce((sum, text) => sum + parseInt(text.slice(2)), seen)];
            }"""
        )
    )


def test_of_a_large_picture_the_page_has_what_is_in_sight(open_cells, picture) -> None:
    page = open_cells(SETUP, UNALIKE)
    run_all(page)
    view = view_of(page, 1)
    view.get_by_role("button", name="Open all groups and functions").click()
    expect(view.get_by_role("status")).to_contain_text("opened")
    summary = view.locator(".ll-outline-pane summary")
    total = int(summary.inner_text().split()[1])
    assert total > 500

    def complete(seen: int) -> bool:
        return becomes(page, lambda: counted(view)[2], total) == total and counted(view)[0] >= seen

    assert complete(50)
    assert counted(view)[1] < total
    picture(view, "graph-unalike-opened-light")
    for side in ("right", "right", "left"):
        view.locator(f".ll-beyond-{side}").click()
        assert complete(30)
    view.get_by_role("button", name="Fit").click()
    assert becomes(page, lambda: counted(view), [total] * 3) == [total] * 3
    picture(view, "graph-unalike-whole-light")
    view.locator(".ll-box").first.focus()
    for key in ("+", "+", "+", "+", "+", "+", "+", "+"):
        page.keyboard.press(key)
    assert complete(1)
    page.keyboard.press("ArrowDown")  # to a box that had gone
    expect(view.locator(".ll-box.ll-chosen:focus")).to_be_visible()
    assert counted(view)[1] < total


def test_the_rest_of_a_graph_comes_once_the_version_that_is_shown_is_drawn(open_cells) -> None:
    """Nothing on the page moves for it, and what was opened or chosen stays so."""
    page = open_cells(SETUP, TRAINING)
    run_all(page)
    view = view_of(page, 1)
    expect(view.get_by_role("button", name="Show it from version to version")).to_be_visible()
    chosen = view.locator(".ll-box").first
    name = chosen.get_attribute("data-box")
    chosen.click()
    expect(view.locator(".ll-chosen")).to_have_attribute("data-box", str(name))
    view.get_by_role("button", name="Show it from version to version").click()
    expect(view.get_by_role("slider", name="Stop")).to_be_visible()
    view.get_by_role("button", name="Show the traced graph").click()
    expect(view.locator(".ll-box").first).to_be_visible()
    expect(view).to_contain_text("pruned")


def test_opening_fits_and_fusion_is_drawn(open_cells, picture) -> None:
    page = open_cells(SETUP, STAGED)
    page.set_viewport_size(NARROW)
    command(page, "application:toggle-left-area")
    run_all(page)
    view = view_of(page, 1)
    assert becomes(page, lambda: out_of_sight(view), []) == []
    tops = {round(tool.bounding_box()["y"]) for tool in view.locator(".ll-tools > *").all()}
    assert len(tops) == 1, "the tools of the bar stand in one line"
    assert view.locator(".ll-source").evaluate("pane => pane.scrollWidth <= pane.clientWidth")
    expect(view.locator(".ll-title")).to_have_attribute("title", re.compile("a_step_with_quite_a_long_name"))
    expect(view.locator(".ll-box", has_text="a_variable_with").first).to_be_visible()  # a tag of the op that reads it

    box(view, "ƒ cond true_fn, false_fn").locator(".ll-opener").click()
    expect(view.locator(".ll-frame:not(.ll-fused)")).to_have_count(3)
    view.get_by_role("button", name="Fit").click()  # what is opened does not move, and may be larger than the view
    assert becomes(page, lambda: out_of_sight(view), []) == []
    expect(view.locator(".ll-edge[data-target$='/i0']")).to_have_count(2)  # into both branches
    expect(view.locator(".ll-edge[data-target$='.d0']")).to_have_count(1)  # what chooses between them
    view.get_by_role("button", name="Close all groups and functions").click()
    expect(view.locator(".ll-frame:not(.ll-fused)")).to_have_count(0)
    view.get_by_role("button", name="Open all groups and functions").click()
    expect(view.get_by_role("status")).to_have_text("2 groups and functions opened")
    expect(view.locator(".ll-frame:not(.ll-fused)")).to_have_count(4)
    picture(view, "graph-all-open-narrow-light")

    view.get_by_role("button", name="Fit").click()
    assert becomes(page, lambda: out_of_sight(view), []) == []
    details = view.locator(".ll-details")
    box(view, "exp").first.click()
    expect(details).to_contain_text("group 1")
    view.get_by_role("button", name="Show the listing of the ops").click()
    view.locator(".ll-listed", has_text="= exp(").click()
    expect(view.locator(".ll-box.ll-chosen")).to_have_attribute("aria-label", re.compile("^exp"))
    details.get_by_role("button", name=re.compile("in the traced graph")).click()
    expect(view.get_by_role("button", name="Show the traced graph")).to_have_attribute("aria-pressed", "true")
    expect(view.locator(".ll-box.ll-chosen")).to_have_attribute("aria-label", re.compile("^exp"))
    expect(box(view, "tanh")).to_have_class(re.compile("ll-box"))
    expect(view.locator(".ll-changed").first).to_contain_text("shared")
    set_theme(page, DARK)
    picture(view, "graph-traced-narrow-dark")


def test_one_count_for_a_line_and_a_cell_that_is_run_again(open_cells) -> None:
    page = open_cells(SETUP, STAGED, "%graph many")
    run_all(page)
    shown, view = output(page, 1), view_of(page, 1)
    for line, told, said in (
        (2, "staged, 1 op", "1 op"),
        (3, "staged, 4 ops, 7 in calls", "4 ops; 7 ops in functions that the graph calls"),
        (4, "staged, 11 ops", "11 ops as traced, 7 as they run"),
    ):
        row = shown.locator(f'[data-ll-line="{line}"]').first
        expect(row.locator("td").nth(1)).to_contain_text(told)
        expect(view.locator(".ll-line", has_text=STAGED.splitlines()[line - 1])).to_have_attribute(
            "aria-label", re.compile(f" line {line}, {said}:")
        )
        assert row.locator("details tbody tr").count() == sum(map(int, re.findall(r"(\d+) (?:op|in)", told)))

    many = view_of(page, 2)
    assert many.locator(".ll-box").count() < 10, "thousands of ops are closed at first"
    many.get_by_role("button", name="Open all groups and functions").click()
    expect(many.get_by_role("status")).to_contain_text("there would be too many boxes")
    assert many.locator(".ll-box").count() <= 1000, "equal steps stay one box"
    run_cell(page, 1)
    expect(cell(page, 1).locator(".ll-graph-view")).to_have_count(1)
    expect(box(view_of(page, 1), "ƒ cond true_fn, false_fn")).to_be_visible()


def test_a_picture_waits_for_its_place_on_the_page(open_cells) -> None:
    """A view that is made where nothing is shown yet is as tall as its picture needs once it is."""
    folded = """\
import ipywidgets
f = ll.function(lambda x: ll.sum(ll.tanh(x @ ll.ones((16, 4))) * ll.exp(x[:, :4]), axis=0))
f(x)
ipywidgets.Accordion([ll.widgets.graph(f).widget], titles=["graph"])"""
    page = open_cells(SETUP, folded)
    run_all(page)
    output(page, 1).get_by_text("graph", exact=True).click()
    view = view_of(page, 1)
    expect(view.locator(".ll-canvas")).to_be_in_viewport()
    assert becomes(page, lambda: out_of_sight(view), []) == []
