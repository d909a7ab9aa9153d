"""The annotated cell beside its graph, and the trace cache's answers, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from harness.page import DARK, CellError, cell, output, run_all, set_theme

SETUP = """\
%load_ext limelight
import limelight as ll
x = ll.constant([[1.0, 2.0]])
w = ll.Variable([[3.0], [4.0]], name="w")
class Config:
    rate = 0.5
config = Config()"""
STEP = """\
%%stage step {}
print("tracing")
h = x @ w
k = x @ w
z = ll.tanh(h) * config.rate + 1.0
c = ll.constant(2.0) * 3.0
loss = ((z * c - k) ** 2).sum()
loss"""


def box(view: Locator, title: str) -> Locator:
    return view.locator(".ll-box", has=view.page.locator(f'text="{title}"')).first


def row(shown: Locator, line: int) -> Locator:
    return shown.locator(f'[data-ll-line="{line}"]').first


def drawn(page: Page, index: int) -> tuple[Locator, Locator]:
    shown = output(page, index)
    view = shown.locator(".ll-graph-view").first
    view.locator(".ll-box").first.wait_for()
    return shown, view


def test_lines_and_nodes_find_each_other(again, picture) -> None:
    page = again(SETUP, STEP.format(""))
    shown, view = drawn(page, 1)
    for line, word in ((2, "○ trace-time only"), (3, "● staged"), (4, "◇ merged, line 3"), (5, "◉ fused, group 1")):
        expect(row(shown, line)).to_contain_text(word)
    expect(row(shown, 2)).to_contain_text("⚠ print")

    row(shown, 5).locator("summary").first.click()
    expect(row(shown, 5)).to_contain_text("fused into group 1")
    expect(row(shown, 5)).to_have_class(re.compile("ll-row-lit"))
    expect(box(view, "tanh")).to_have_class(re.compile("ll-lit"))
    expect(box(view, "matmul")).not_to_have_class(re.compile("ll-lit"))
    picture(cell(page, 1), "annotated-line-light")

    box(view, "matmul").click()
    expect(row(shown, 3)).to_have_attribute("aria-current", "true")
    expect(row(shown, 5)).not_to_have_attribute("aria-current", "true")
    row(shown, 7).locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(row(shown, 7)).to_contain_text("fused into group 2")
    expect(box(view, "square")).to_have_class(re.compile("ll-lit"))
    set_theme(page, DARK)
    picture(cell(page, 1), "annotated-node-dark")


def test_a_node_leads_to_what_became_of_it(again, picture) -> None:
    page = again(SETUP, STEP.format(""))
    _, view = drawn(page, 1)
    view.get_by_role("button", name="Show the traced graph").click()
    second = view.locator(".ll-box", has=page.locator('text="matmul"')).nth(1)
    second.click()
    details = view.locator(".ll-details")
    expect(details).to_contain_text("shared with line 3")
    picture(view, "annotated-became-light")
    details.get_by_role("button", name=re.compile("in the optimised graph")).click()
    expect(view.get_by_role("button", name="Show the optimised graph")).to_have_attribute("aria-pressed", "true")
    expect(view.locator(".ll-line.ll-chosen")).to_contain_text("h = x @ w")
    expect(details.get_by_role("button", name=re.compile("in the traced graph"))).to_have_count(2)
    box(view, "tanh").click()
    expect(details).to_contain_text("in group 1")


def test_gradient_times_and_stories(open_cells, picture) -> None:
    page = open_cells(SETUP, STEP.format("-a -g -t"))
    run_all(page)
    shown, _ = drawn(page, 1)
    expect(shown).to_contain_text("cached call (")
    expect(shown).to_contain_text("Gradients of the result f32[]:")
    expect(shown.locator(".ll-graph-view")).to_have_count(2)
    second = shown.locator(".ll-graph-view").nth(1)
    second.get_by_role("button", name="Open all groups").click()
    expect(second.locator(".ll-box", has_text="matrix_transpose").first).to_be_visible()  # with ∇, without lanes
    picture(cell(page, 1), "annotated-all-light")
    set_theme(page, DARK)
    picture(cell(page, 1), "annotated-all-dark")


def test_the_trace_cache_answers(open_cells, picture) -> None:
    page = open_cells(
        SETUP,
        "@ll.function\ndef f(t, deep=False):\n    y = t + 1\n    if deep:\n        y = ll.exp(y)\n    return y * 2\n"
        "f(x)\nf(ll.ones([3, 2]), deep=True);",
        "%trace_cache f --diff 1 2",
        "%trace_cache --would f(x[:, :1])",
        "%explain f",
        "%%trace_cache f --expect 0\nf(ll.ones([7, 2]));",
    )
    with pytest.raises(CellError, match="TraceCountError"):
        run_all(page)
    shown = output(page, 2)
    expect(shown).to_contain_text("differ in 2 parts")
    expect(shown).to_contain_text("exp")
    expect(output(page, 3)).to_contain_text("would trace")
    expect(output(page, 3)).to_contain_text("f32[1,1]")
    expect(output(page, 4)).to_contain_text("does nothing besides what its graphs do")
    expect(output(page, 5)).to_contain_text("TraceCountError: the cell made 1 trace of f")
    output(page, 5).scroll_into_view_if_needed()
    picture(page, "cache-answers-light")
    set_theme(page, DARK)
    picture(page, "cache-answers-dark")


def test_each_line_has_a_word_and_a_list_says_what_stands_beneath(open_cells, picture) -> None:
    page = open_cells(
        SETUP,
        "%%stage step -a opt,plan --autograph\nwith ll.GradientTape() as tape:\n    y = ll.where(\n        x > 0,\n"
        "        ll.sqrt(x),\n        0.0,\n    )\n    total = ll.sum(y)\nslope = tape.gradient(total, x)\n"
        "if total > 1:\n    total = total / 2\nelse:\n    total = total + ll.ones([]) * 2\ntotal",
    )
    run_all(page)
    shown, _ = drawn(page, 1)
    words = {2: "○ trace-time only", 3: "◉ fused, group 1", 5: "◉ fused", 7: "◉ fused", 9: "○ trace-time only"}
    words |= {10: "● staged", 12: "● staged", 14: "▸ result"}
    for line, word in words.items():
        expect(row(shown, line)).to_contain_text(word)
    expect(row(shown, 9)).to_contain_text("⚠ gradient: total has no gradient for x: x was never watched")
    expect(row(shown, 5)).to_contain_text("sqrt(")
    expect(row(shown, 5)).to_contain_text(re.compile("loops|plan"))  # the first where limelight-native is installed
    expect(shown).not_to_contain_text("what happened")
    picture(cell(page, 1), "annotated-plan-light")
    set_theme(page, DARK)
    picture(cell(page, 1), "annotated-plan-dark")
