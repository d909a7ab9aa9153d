"""Cards in JupyterLab: read in both themes, Copy fills the clipboard, Insert makes a cell below, links find lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page

from harness.page import DARK, cell, output, run_all, set_theme

AXE = Path(__file__).parents[2] / "widgets" / "js" / "node_modules" / "axe-core" / "axe.min.js"
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


def violations(page: Page) -> list[str]:
    """What axe finds in the cards."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run('.ll-explain-view').then(({violations}) => violations)")
    return [f"{one['id']}: {json.dumps([node['html'] for node in one['nodes']])}" for one in found]


def test_cards(page: Page, picture) -> None:
    shown = output(page, 3).locator(".ll-story")
    retrace = shown.filter(has_text="Step traced again").first
    for index, name in ((3, "explain"), (4, "would"), (6, "nan"), (8, "why-none")):
        picture(cell(page, index), f"card-{name}-light")
    set_theme(page, DARK)
    for index, name in ((3, "explain"), (6, "nan")):
        picture(cell(page, index), f"card-{name}-dark")
