"""The views as people meet them: a real notebook, a real engine, a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from harness.page import (
    DARK,
    OF_IPYWIDGETS,
    becomes,
    cell,
    command,
    load_again,
    output,
    run_all,
    run_cell,
    save,
    set_theme,
    wait_idle,
)
from harness.sight import settle

PROGRAM = """\
%load_ext limelight
import numpy as np
import limelight as ll

rng = np.random.default_rng(0)
w1 = ll.Variable(rng.normal(size=(64, 32)).astype("float32") * 0.1, name="w1")
b1 = ll.Variable(np.zeros(32, "float32"), name="b1")
w2 = ll.Variable(rng.normal(size=(32, 10)).astype("float32") * 0.1, name="w2")

@ll.function
def dense(x, w, b):
    return ll.tanh(x @ w + b)

@ll.function
def predict(x):
    hidden = dense(x, w1, b1)
    scores = hidden @ w2
    return scores * 2.0

def batch(n):
    return ll.constant(rng.normal(size=(n, 64)).astype("float32"))

predict(batch(32))
predict(batch(32));"""

LINE = ".ll-line.ll-chosen"
FRAME = ".ll-frame:not(.ll-fused)"  # of an open group or function


def graph(page, index=1):
    view = output(page, index).locator(".ll-graph-view")
    view.locator(".ll-box").first.wait_for()
    return view


def box(view, title):
    return view.locator(".ll-box", has=view.page.locator(f'text="{title}"')).first


def line(view, code):
    return view.locator(".ll-line", has_text=code).first


def test_a_node_shows_its_line_and_a_line_its_nodes(again, picture):
    page = again(PROGRAM, "ll.widgets.graph(predict)")
    view = graph(page)
    box(view, "matmul").click()
    expect(view.locator(LINE)).to_have_count(1)
    expect(view.locator(LINE)).to_contain_text("scores = hidden @ w2")
    details = view.locator(".ll-details")
    expect(details).to_contain_text("f32[32,10]")
    expect(details).to_contain_text("gradient")
    picture(view, "graph-node-light")
    line(view, "return scores * 2.0").click()
    expect(view.locator(".ll-lit")).not_to_have_count(0)
    expect(box(view, "multiply(·, 2.0)")).to_have_class(re.compile("ll-lit"))
    expect(box(view, "matmul")).not_to_have_class(re.compile("ll-lit"))
    set_theme(page, DARK)
    picture(view, "graph-line-dark")


def in_sight(view):
    """Whether every box lies within the picture."""
    canvas = view.locator(".ll-canvas").bounding_box()
    places = [one.bounding_box() for one in view.locator(".ll-box .ll-outline").all()]
    return all(
        canvas["x"] <= one["x"]
        and one["x"] + one["width"] <= canvas["x"] + canvas["width"]
        and canvas["y"] <= one["y"]
        and one["y"] + one["height"] <= canvas["y"] + canvas["height"]
        for one in places
    )


def test_what_is_opened_is_in_sight(again, picture):
    page = again(PROGRAM, "ll.widgets.graph(predict)")
    view = graph(page)
    box(view, "ƒ call dense").locator(".ll-opener").click()
    expect(view.locator(FRAME)).to_have_count(1)
    view.get_by_role("button", name="Fit").click()  # what is opened does not move, and may be larger than the view
    assert becomes(page, lambda: in_sight(view), True)
    box(view, "tanh").click()
    expect(view.locator(LINE)).to_contain_text("return ll.tanh(x @ w + b)")
    picture(view, "graph-open-light")
    view.locator(".ll-close:not(.ll-fused-title)").click()
    expect(view.locator(FRAME)).to_have_count(0)
    view.get_by_role("button", name="Fit").click()
    assert becomes(page, lambda: in_sight(view), True)


TAB_STOPS = """root => [...root.querySelectorAll("button, input, select, summary, a[href], [tabindex]")]
  .filter(one => one.tabIndex >= 0 && one.checkVisibility()).map(one => one.ariaLabel ?? one.textContent)"""


def test_everything_by_keyboard(again):
    page = again(PROGRAM, "ll.widgets.graph(predict)")
    view = graph(page)
    assert becomes(page, lambda: len(view.evaluate(TAB_STOPS)), 1) == 1
    view.get_by_role("searchbox").focus()
    assert view.evaluate(TAB_STOPS) == ["Find ops"]
    page.keyboard.press("ArrowDown")
    expect(view.get_by_role("combobox", name="Told on the boxes")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(view.locator(FRAME)).to_have_count(0)  # "Close all groups and functions"
    assert becomes(page, lambda: view.evaluate(TAB_STOPS), ["Close all groups and functions"])
    page.keyboard.press("F6")
    expect(view.locator(".ll-box:focus")).to_have_count(1)
    for large in (True, False):  # all is drawn anew
        page.keyboard.press("p")
        assert ("ll-projector" in (settle(view).get_attribute("class") or "")) is large
        expect(view.locator(".ll-box:focus")).to_have_count(1)
    page.keyboard.press("/")
    page.keyboard.type("call dense")
    expect(view.get_by_role("status")).to_have_text("1 match")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    focused = page.locator(":focus")
    expect(focused).to_have_attribute("aria-label", re.compile("nested function, call dense.*Enter opens it"))
    page.keyboard.press("Enter")
    expect(view.locator(FRAME)).to_have_count(1)
    expect(focused).to_have_attribute("aria-label", re.compile("^input"))
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_attribute("aria-label", re.compile("matmul"))
    expect(view.locator(LINE)).to_contain_text("return ll.tanh(x @ w + b)")
    page.keyboard.press("Escape")
    expect(view.locator(FRAME)).to_have_count(0)
    expect(focused).to_have_attribute("aria-label", re.compile("call dense"))
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(view.locator(":focus")).to_have_count(0)
    view.locator(".ll-box").first.focus()
    page.keyboard.press("F6")
    expect(view.locator(".ll-source:focus")).to_have_count(1)  # where the arrows scroll
    page.keyboard.press("F6")
    expect(view.locator(".ll-choosable:focus")).to_have_count(1)
    assert becomes(page, lambda: len(view.evaluate(TAB_STOPS)), 1) == 1
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(":focus")).to_have_attribute("aria-pressed", "true")
    expect(view.locator(".ll-lit")).not_to_have_count(0)
    view.locator(".ll-outline-pane summary").click()
    tree = view.get_by_role("tree")
    expect(tree.get_by_role("treeitem")).to_have_count(view.locator(".ll-box, .ll-frame").count())


def test_both_versions_of_the_graph(open_cells):
    page = open_cells(
        PROGRAM,
        "@ll.function\ndef wasteful(x):\n    unused = ll.exp(x)\n    return (x + 1.0) * (x + 1.0)\nwasteful(batch(4));",
        "ll.widgets.graph(wasteful)",
    )
    run_all(page)
    view = graph(page, 2)
    expect(view.get_by_role("button", name="Show the optimised graph")).to_have_attribute("aria-pressed", "true")
    expect(box(view, "exp")).to_have_count(0)
    expect(view.locator(".ll-passes")).to_contain_text("prune")
    view.get_by_role("searchbox").fill("exp")
    expect(view.get_by_role("status")).to_have_text("0 matches")
    view.get_by_role("button", name="Show the traced graph").click()
    expect(box(view, "exp")).to_be_visible()
    view.get_by_role("searchbox").press("Enter")  # what is sought is sought in the graph that is shown
    expect(view.get_by_role("status")).to_have_text("1 of 1 match")


def is_asked(cache) -> None:
    """Enter asks, which JupyterLab keeps from forms in outputs; another question takes the answer away."""
    question = cache.get_by_role("textbox", name="What if")
    question.fill("predict(batch(17))")
    question.press("Enter")
    expect(cache.locator(".ll-what-if-answer")).to_contain_text("hit")
    question.fill("predict(")
    expect(cache.locator(".ll-what-if-answer")).to_be_empty()


def test_views_move_while_a_cell_is_running(open_cells, picture, tmp_path):
    """The cell runs until the page was seen moving, however long a busy machine takes for that."""
    seen_old, seen_new = tmp_path / "seen_old", tmp_path / "seen_new"
    page = open_cells(
        PROGRAM,
        "ll.widgets.trace_cache(predict)",
        "ll.config.set_virtual_devices(CPU=2)\nll.widgets.devices()",
        "tape = ll.GradientTape(persistent=True)\nll.widgets.tape(tape)",
        "import time\n"
        "from pathlib import Path\n"
        f"old, new = Path({str(seen_old)!r}), Path({str(seen_new)!r})\n"
        "calls = {32: 0, 17: 0}\n"
        "while not new.exists():\n"
        "    with tape:\n"
        "        loss = ll.sum(w1 * w1)\n"
        "    x = batch(8)\n"
        "    with ll.device('cpu:1'):\n"
        "        copied = x + 1.0\n"
        "    size = 17 if old.exists() else 32\n"
        "    predict(batch(size))\n"
        "    calls[size] += 1\n"
        "    time.sleep(0.02)\n"
        "print('finished', calls[32], calls[17])",
    )
    run_all(page, wait=False)
    cache, devices, tape = (
        output(page, i).locator(f".ll-{name}-view") for i, name in [(1, "cache"), (2, "devices"), (3, "tape")]
    )
    expect(devices.locator(".ll-card", has_text="CPU:")).to_have_count(2)  # and XLA:0 where JAX is installed
    rows = cache.locator("tbody tr[data-entry]")
    expect(rows).to_have_count(1)
    seen_old.touch()
    expect(rows).to_have_count(2)
    ops = devices.locator(".ll-figures dd").nth(2)
    first = ops.text_content() or ""  # not its inner text, which is empty while a cell is out of sight
    expect(ops).not_to_have_text(first)
    entries = tape.locator(".ll-title")
    seen = entries.text_content() or ""
    expect(entries).not_to_have_text(seen)
    expect(devices.locator(".ll-table tbody tr").first).to_contain_text("CPU:0 → CPU:1")
    expect(cell(page, 4).locator(".jp-InputPrompt")).to_have_text("[*]:")  # all this was seen while it ran
    seen_new.touch()
    expect(rows.last).to_contain_text("newest")
    expect(rows.last).to_contain_text("f32[17,64]")
    wait_idle(page)
    _, with_old, with_new = (output(page, 4).text_content() or "").split()
    expect(cache.locator(".ll-title")).to_contain_text("2 traces")
    expect(rows.first.locator("td").nth(2)).to_have_text(str(int(with_old) + 1))  # and the call of the first cell
    expect(rows.last.locator("td").nth(2)).to_have_text(str(int(with_new) - 1))  # one was traced
    expect(entries).to_contain_text("entries")
    is_asked(cache)
    for name, view in [("cache", cache), ("devices", devices), ("tape", tape)]:
        picture(view, f"{name}-light")
    set_theme(page, DARK)
    for name, view in [("cache", cache), ("devices", devices), ("tape", tape)]:
        picture(view, f"{name}-dark")


def test_the_kernel_hears_a_view_while_a_cell_is_running(open_cells):
    """Version 7.4 of ipykernel needs `limelight_widgets.live.widget.Responsive` for this."""
    page = open_cells(
        PROGRAM,
        "import time, ipykernel\n"
        "view = ll.widgets.trace_cache(predict)\n"
        "display(view)\n"
        "end = time.monotonic() + 300\n"
        "while not view._lookers and time.monotonic() < end:\n"
        "    predict(batch(32))\n"
        "    time.sleep(0.05)\n"
        "print('heard' if view._lookers else 'deaf', ipykernel.version_info[0])",
    )
    run_all(page)
    text = output(page, 1).text_content() or ""
    if text.split()[-1] == "6":
        pytest.skip("ipykernel 6 has no subshells: messages wait for the end of the cell")
    assert "heard" in text


def test_a_view_whose_output_is_gone_costs_nothing(open_cells):
    page = open_cells(
        PROGRAM,
        "view = ll.widgets.trace_cache(predict)\nview",
        "print(view.is_live, ll.events.wanted(ll.events.CacheMiss))",
    )
    run_all(page)
    expect(output(page, 2)).to_contain_text("True True")
    command(page, "notebook:clear-all-cell-outputs")
    page.locator(".ll-cache-view").wait_for(state="detached")
    run_cell(page, 2)
    expect(output(page, 2)).to_contain_text("False False")


def test_a_page_that_is_loaded_again_shows_the_view_as_it_is_now(open_cells, watch):
    page = open_cells(PROGRAM, "ll.widgets.trace_cache(predict)", "predict(batch(5));")
    run_all(page)
    expect(page.locator(".ll-cache-view tbody tr[data-entry]")).to_have_count(2)
    save(page)
    load_again(page)
    rows = page.locator(".ll-cache-view tbody tr[data-entry]")
    expect(rows).to_have_count(2)
    run_cell(page, 2)
    expect(rows.last.locator("td").nth(2)).to_have_text("1")
    watch.forget(*OF_IPYWIDGETS)  # its model may come late


WITHOUT_WORKERS = """() => {
  window.Workers = window.Worker;
  window.Worker = class { constructor() { throw new Error("no workers here"); } };
}"""


def test_without_web_workers_graphs_are_still_drawn(open_cells, picture):
    page = open_cells(PROGRAM, "ll.widgets.graph(predict)")
    page.evaluate(WITHOUT_WORKERS)
    run_all(page)
    view = graph(page)
    expect(box(view, "matmul")).to_be_visible()
    picture(view, "graph-without-worker-light")
    page.evaluate("() => { window.Worker = window.Workers; }")


EVIL = """\
import limelight as ll
broken = 'document.title="broken in"'
evil = f"<img src=x onerror='{broken}'><script>{broken}</script>"
v = ll.Variable(1.0, name=evil)
F = ll.function(lambda x: x * v, name=evil)
with ll.GradientTape() as tape:
    tape.watch(v)
    F(ll.constant(2.0))"""


def test_names_are_never_markup(open_cells):
    page = open_cells(
        EVIL,
        "display(ll.widgets.graph(F), ll.widgets.trace_cache(F), ll.widgets.tape(tape), ll.widgets.devices())",
        "display(ll.widgets.graph(F).static(), ll.widgets.trace_cache(F).static(), ll.widgets.tape(tape).static())",
    )
    run_all(page)
    graph(page)
    expect(page.locator(".ll-tape-view")).to_be_visible()
    assert page.title() != "broken in"
    assert page.locator("img[src='x']").count() == 0
    expect(page.locator(".ll-graph-view .ll-title")).to_contain_text("<script>")


def test_a_large_graph_is_drawn_at_once_with_its_groups_closed(open_cells, picture):
    page = open_cells(
        "import limelight as ll\n"
        "def f(x):\n    for n in range(5000):\n        x = x * 0.5\n        x = x + 1.0\n    return x\n"
        "F = ll.function(f)\nF(ll.constant(1.0));",
        "view = ll.widgets.graph(F, which='traced')\nview",
    )
    run_cell(page, 0)
    run_cell(page, 1, wait=False)
    view = graph(page)
    assert 1 < view.locator(".ll-box").count() < 80  # of 10,000 ops: equal steps are one box
    wait_idle(page)
    view.locator(".ll-opener").first.click()
    expect(view.locator(FRAME)).to_have_count(1)
    picture(view, "graph-large-light")
