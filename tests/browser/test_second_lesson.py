"""The second lesson in JupyterLab: annotated cells that answer, control flow that opens, explanations."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import nbformat
from playwright.sync_api import Locator, expect
from playwright.sync_api import TimeoutError as NotThere

from harness.page import DARK, cell, output, run_all, save, set_theme

LESSON = Path(__file__).parents[2] / "notebooks" / "02_tracing_and_retracing.ipynb"
SOURCES = [c.source for c in nbformat.read(LESSON, as_version=4).cells]


def index(beginning: str) -> int:
    """The cell whose source begins so."""
    return next(i for i, source in enumerate(SOURCES) if source.startswith(beginning))


def choose(shown: Locator, line: int) -> None:
    """Clicks a line as a reader does: once more where the graph beside it was not there yet."""
    lit = shown.locator(".ll-graph-view .ll-box.ll-lit").first
    for _ in range(10):
        shown.locator(f'[data-ll-line="{line}"]').first.click()
        with contextlib.suppress(NotThere):
            return lit.wait_for(timeout=10_000)
    raise AssertionError(f"line {line} lights no box of the graph")


def test_the_lesson_runs_and_its_views_answer(open_notebook, lab_server, picture) -> None:
    page = open_notebook(LESSON)
    run_all(page)
    save(page)
    (saved,) = lab_server.root.glob("*02_tracing_and_retracing.ipynb")
    assert saved.stat().st_size < 200_000

    step = output(page, index("%%stage step"))
    expect(step.locator('[data-ll-line="2"]')).to_contain_text("⚠ print")
    choose(step, 4)  # the cell has been run again since, elsewhere
    picture(cell(page, index("%%stage step")), "lesson2-step-light")

    flow = output(page, index("%%stage collatz")).locator(".ll-graph-view")
    flow.locator(".ll-box", has_text="while_loop").first.locator(".ll-opener").click()
    branch = flow.locator(".ll-box", has_text=re.compile("cond .*_branch")).first
    expect(branch).to_be_visible()
    picture(cell(page, index("%%stage collatz")), "lesson2-flow-light")

    expect(output(page, index("%trace_cache power --diff"))).to_contain_text("axis 0: 2 → 3")
    expect(output(page, index("with ll.GradientTape"))).to_contain_text("has no gradient for")
    set_theme(page, DARK)
    for beginning, name in (
        ("%%stage step", "step"),
        ("%%stage collatz", "flow"),
        ("%%stage -g -t", "gradient"),
        ("settings.scale = 20.0", "explain"),
        ("%trace_cache power --diff", "diff"),
        ("with ll.GradientTape", "why-none"),
    ):
        picture(cell(page, index(beginning)), f"lesson2-{name}-dark")
