"""Cards in JupyterLab: read in both themes, Copy fills the clipboard, Insert makes a cell below, links find lines."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from harness.axe import violations
from harness.page import DARK, LIGHT, cell, output, run_all, set_theme

CELLS = [
    "%load_ext limelight\nimport limelight as ll, numpy as np, time\n"
    "class Settings:\n    rate = 0.5\nsettings = Settings()",
    "@ll.function\ndef step(x):\n    print('<b>tracing</b>')\n    return x * settings.rate + time.time()",
    "for n in range(2, 9):\n    step(ll.ones((n, 2)))\nsettings.rate = 0.25",
    "%explain step",
    "%trace_cache --would step(ll.ones((3, 3)))",
    "@ll.function\ndef entropy(p):\n    return -ll.sum(p * ll.log(p))",
    "%explain --nan entropy(ll.constant([0.0, 1.0]))",
    "x = ll.constant(2.0)\nwith ll.GradientTape() as tape:\n    tape.watch(x)\n    y = ll.stop_gradient(x * x)",
    "%tape --why y x",
]
STAGED = [
    "%load_ext limelight\nimport limelight as ll\n"
    "w1, w2 = ll.Variable(ll.ones((8, 4))), ll.Variable(ll.ones((4, 2)))\nweights = [w1, w2]\nx = ll.ones((3, 8))",
    "%%stage train_step\nwith ll.GradientTape() as tape:\n    loss = ll.sum(ll.tanh(x @ w1) @ w2)\n"
    "gradients = tape.gradient(loss, weights)\nfor variable, gradient in zip(weights, gradients):\n"
    "    variable.assign_sub(0.3 * gradient)\nloss",
]
DEFINITION = "def step(x):\n    print('<b>tracing</b>')\n    return x * settings.rate + time.time()"
FIX = '@ll.function(input_signature=[ll.TensorSpec((None, 2), "float32")])'


@pytest.fixture
def page(open_cells, chromium_context) -> Page:
    chromium_context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = open_cells(*CELLS)
    run_all(page)
    return page


def sources(page: Page) -> list[str]:
    return page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.sharedModel.getSource())"
    )


def test_cards(page: Page, picture) -> None:
    explained = output(page, 3)
    retrace = explained.locator(".ll-story", has_text="step traced again")
    expect(retrace).to_have_count(1)
    expect(retrace).to_contain_text("6 traces for this reason (x, shape) cost")
    expect(explained.locator(".ll-story")).to_have_count(5)
    for index, name in ((3, "explain"), (4, "would"), (6, "nan"), (8, "why-none")):
        picture(cell(page, index), f"card-{name}-light")

    copy = retrace.get_by_role("button", name="Copy the code")
    copy.click()
    expect(copy).to_have_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == FIX
    expect(output(page, 6).get_by_role("button", name="Insert")).to_have_count(0)  # a `return` is no cell

    retrace.get_by_role("link", name="In[3] line 2").first.click()
    expect(cell(page, 2).locator(".cm-line").nth(1)).to_have_class(re.compile("ll-flash"))

    before = sources(page)
    retrace.get_by_role("button", name="Insert the code").click()
    inserted = f"{FIX}\n{DEFINITION}"
    page.wait_for_function(
        "code => window.jupyterapp.shell.currentWidget.content.widgets[4].model.sharedModel.getSource() === code",
        arg=inserted,
    )
    assert sources(page) == [*before[:4], inserted, *before[4:]]

    for theme in (LIGHT, DARK):
        set_theme(page, theme)
        assert not violations(page, ".ll-explain-view"), theme
    for index, name in ((3, "explain"), (7, "nan")):
        picture(cell(page, index), f"card-{name}-dark")


def test_a_staged_cell_stands_on_one_low_screen(open_cells, picture) -> None:
    page = open_cells(*STAGED)
    page.set_viewport_size({"width": 1280, "height": 720})
    run_all(page)
    shown = output(page, 1)
    shown.locator(".ll-box").first.wait_for()
    page.wait_for_function("() => document.querySelector('.ll-graph-view').getBoundingClientRect().height < 400")
    assert shown.bounding_box()["height"] < 600
    code = "gradients = tape.gradient(loss, weights)"
    expect(shown.get_by_text(code).filter(visible=True)).to_have_count(1)
    shown.locator("[data-ll-line='4']").click()
    expect(shown.locator(".ll-side .ll-line.ll-chosen")).to_contain_text(code)
