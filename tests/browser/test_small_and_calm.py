"""Views in small windows, enlarged, without motion, and after a change of theme in a long notebook."""

from __future__ import annotations

from functools import partial

from playwright.sync_api import Locator, Page, expect

from harness.page import DARK, LIGHT, becomes, command, output, run_all, set_theme
from harness.sight import ENLARGED, LOST, settle

PROGRAM = """\
%load_ext limelight
import limelight as ll
w = ll.Variable(ll.ones((8, 8)) * 0.1, name="w")
def call(x):
    h = ll.tanh(x @ w)
    a = ll.exp(h).sum(axis=0)
    b = ll.sin(h).mean(axis=1)
    c = ll.sort(h, axis=1)[:, :2]
    d = ll.cumsum(h, axis=0).max(axis=1)
    e = ll.transpose(h) @ x
    return a.sum() + b.sum() + c.sum() + d.sum() + e.sum()
step = ll.function(call)
x = ll.ones((4, 8))
with ll.GradientTape(persistent=True) as tape:
    tape.watch(x)
    loss = call(x)
step(x);"""
VIEWS = {
    "graph": "%graph step", "cache": "%trace_cache step", "tape": "%tape tape", "devices": "%devices",
    "steps": "%steps step(x)",
}  # fmt: skip
"""The dashboard has a test of its own (`test_dashboard.py`)."""
LONG = ["1", "2", "3"]
"""Cells with nothing to show, so that the graph is far away from the last."""
NARROW = {"width": 360, "height": 720}
MOVES = """root => [...root.querySelectorAll("*")].filter(element => {
  const { animationName, animationDuration, transitionDuration, scrollBehavior } = getComputedStyle(element);
  const lasts = (text) => text.split(",").some(one => parseFloat(one) > 0.01);
  const moves = (animationName !== "none" && lasts(animationDuration)) || lasts(transitionDuration);
  return moves || scrollBehavior === "smooth";
}).map(element => element.className.baseVal ?? element.className).slice(0, 5)"""


def shown(page: Page, name: str):
    at = 1 + list(VIEWS).index(name)
    view = output(page, at).locator(".ll-steps" if name == "steps" else f".ll-{name}-view").first
    view.scroll_into_view_if_needed()
    return view


def test_in_small_windows_without_motion_and_after_a_change_of_theme(open_cells, picture):
    page = open_cells(PROGRAM, *VIEWS.values(), *LONG)
    run_all(page)
    signs_stay(page)
    page.emulate_media(reduced_motion="reduce")
    command(page, "application:toggle-left-area")
    wrong = {}
    for size in (ENLARGED, NARROW):
        page.set_viewport_size(size)
        for name in VIEWS:
            view = shown(page, name)
            lost = becomes(page, partial(view.evaluate, LOST), [])
            wrong |= {(name, size["width"]): lost} if lost else {}
            if size is NARROW:
                moving = becomes(page, partial(view.evaluate, MOVES), [])
                wrong |= {(name, "moves"): moving} if moving else {}
        picture(shown(page, "graph"), f"small-graph-{size['width']}")
        page.set_viewport_size(size)
        assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    page.emulate_media(reduced_motion="no-preference")
    assert wrong == {}
    page.emulate_media(forced_colors="active")
    view = shown(page, "graph")
    view.locator(".ll-box").nth(2).evaluate("box => box.dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    assert becomes(page, lambda: view.evaluate(FORCED), [True, True, True])
    picture(view, "small-graph-forced-colours")
    page.emulate_media(forced_colors="none")


FORCED = """view => {
  const colour = name => {
    const probe = document.body.appendChild(Object.assign(document.createElement("i"), { style: `color: ${name}` }));
    const seen = getComputedStyle(probe).color;
    probe.remove();
    return seen;
  };
  const drawn = one => one.querySelector(":scope > path") ?? one;
  const stroke = which => [...view.querySelectorAll(which)].map(one => getComputedStyle(drawn(one)).stroke);
  const [text, highlight] = ["CanvasText", "Highlight"].map(colour);
  const plain = stroke(".ll-box:not(.ll-chosen) .ll-outline");
  const near = stroke(".ll-edge.ll-near");
  const [chosen, edges] = [".ll-box.ll-chosen .ll-outline", ".ll-edge:not(.ll-near)"].map(stroke);
  const all = (seen, wanted) => seen.length > 0 && seen.every(one => one === wanted);
  return [all(plain, text), all([...chosen, ...near], highlight), all(edges, text)];
}"""
"""Whether boxes and edges have the colours that the reader's system forces, and what is chosen another."""


DEEP = """\
%load_ext limelight
import limelight as ll
from limelight import nn
net = nn.Sequential(*(nn.Dense(8, activation="tanh") for _ in range(6)), nn.Dense(2))
@ll.function
def train(x):
    with ll.GradientTape() as tape:
        loss = ll.mean(net(x))
    return tape.gradient(loss, net.trainable_variables)
train(ll.ones((2, 8)));"""
SLIVER = 244
UNCUT = """(view, which) => [...view.querySelectorAll(which)].every(one => {
  const [seen, all] = [one.getBoundingClientRect(), view.getBoundingClientRect()];
  return seen.width > 0 && seen.left >= all.left && seen.right <= all.right;
})"""
"""Whether all of these lie within a view."""
COVERED = """view => {
  const canvas = view.querySelector(".ll-canvas").getBoundingClientRect();
  const side = view.querySelector(".ll-side").getBoundingClientRect();
  const chosen = view.querySelector(".ll-box.ll-chosen").getBoundingClientRect();
  const [across, down] = [["left", "right"], ["top", "bottom"]].map(([low, high]) =>
    [(a, b) => Math.max(0, Math.min(a[high], b[high]) - Math.max(a[low], b[low]))][0]);
  const share = (of) => across(side, of) * down(side, of) / (of.width * of.height);
  return [share(canvas), share(chosen), side.width > 150 && side.height > 90];
}"""


WRAPPED = """view => {
  const lines = [...view.querySelectorAll(".ll-source .ll-line")].filter(line => line.getClientRects().length);
  const pane = view.querySelector(".ll-source");
  const end = pane.getBoundingClientRect().right;
  const isWhole = (code) => code.scrollWidth <= code.clientWidth && code.getBoundingClientRect().right <= end;
  const whole = lines.every(line => isWhole(line.lastChild));
  return [lines.length > 0 && whole, lines.some(line => line.offsetHeight > 25)];
}"""
"""Whether no line of code is cut, and a long one takes more than one row."""


def test_code_beside_a_large_graph_leaves_most_of_it_in_sight_in_a_sliver(open_cells, picture):
    page = open_cells(DEEP, "%graph train")
    run_all(page)
    view = output(page, 1).locator(".ll-graph-view").first
    view.evaluate("(view, width) => { view.style.inlineSize = `${width}px`; }", SLIVER)
    settle(view)
    assert view.evaluate(UNCUT, ".ll-heading .ll-switch button")
    for box in (view.locator(".ll-box").first, view.locator(".ll-box").last):
        view.evaluate("view => view.querySelector('.ll-body').classList.remove('ll-drawer')")
        box.evaluate("box => box.dispatchEvent(new MouseEvent('click', { bubbles: true }))")
        expect(view.locator(".ll-large.ll-drawer .ll-side")).to_be_visible()
        canvas, chosen, readable = view.evaluate(COVERED)
        assert canvas <= 0.5, canvas
        assert chosen <= 0.5, chosen
        assert readable
    assert becomes(page, lambda: view.evaluate(WRAPPED), [True, True]) == [True, True]
    picture(view, "small-graph-244")


COUNTS = """canvas => {
  const view = canvas.querySelector("svg").getBoundingClientRect();
  const sides = ["above", "below", "left", "right"];
  const counts = Object.fromEntries(sides.map(side => [side, [0, 0]])); // at least, at most
  for (const box of canvas.querySelectorAll(".ll-box")) {
    const { left, right, top, bottom } = box.getBoundingClientRect();
    const [above, below] = [view.top - bottom, top - view.bottom];
    const by = { above, below, left: view.left - right, right: left - view.right };
    const [up, down] = [view.top - top, bottom - view.bottom];
    const around = { above: up, below: down, left: view.left - left, right: right - view.right };
    const out = sides.filter(side => by[side] > 0);
    for (const side of sides) if (around[side] > 0) counts[side][1] += 1;
    if (out.length === 1 && sides.every(side => side === out[0] || around[side] <= 0)) counts[out[0]][0] += 1;
  }
  return sides.map(side => {
    const sign = canvas.querySelector(`.ll-beyond-${side}`);
    return [sign.hidden ? 0 : Number(/[0-9]+/.exec(sign.textContent)[0]), ...counts[side]];
  });
}"""
"""For each side what its sign says, how many boxes lie beyond it as a whole, and how many at least in part."""


def counted(canvas: Locator) -> bool:
    """Whether the signs agree with the boxes: the room for the picture may change with the page around it."""
    counts = canvas.evaluate(COUNTS)
    return any(said for said, _, _ in counts) and all(least <= said <= most for said, least, most in counts)


def signs_stay(page: Page) -> None:
    """Boxes beyond the edges are counted there, also after the theme has changed while the graph was out of sight."""
    view = shown(page, "graph")
    view.locator(".ll-box").first.wait_for()
    canvas = view.locator(".ll-canvas")
    for _ in range(6):
        view.get_by_role("button", name="Zoom in").click()
    signs = canvas.locator(".ll-beyond:not([hidden])")
    expect(signs.first).to_be_visible()
    for theme, away in ((DARK, True), (LIGHT, False)):
        assert becomes(page, lambda: counted(canvas), True), canvas.evaluate(COUNTS)
        if away:
            page.locator(".jp-Cell").last.scroll_into_view_if_needed()
        set_theme(page, theme)
        shown(page, "graph")
        expect(signs.first).to_be_visible()
    assert becomes(page, lambda: counted(canvas), True), canvas.evaluate(COUNTS)
