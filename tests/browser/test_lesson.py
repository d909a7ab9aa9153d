"""The first lesson, from top to bottom, as a newcomer meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from harness.page import DARK, cell, command, output, run_all, run_cell, save, set_theme, wait_idle
from harness.published import as_page

LESSON = Path(__file__).parents[2] / "notebooks" / "01_first_light.ipynb"
SOURCES = [c.source for c in nbformat.read(LESSON, as_version=4).cells]


def index(beginning: str) -> int:
    """The cell whose source begins so."""
    return next(i for i, source in enumerate(SOURCES) if source.startswith(beginning))


def box(view: Locator, title: str) -> Locator:
    return view.locator(".ll-box", has=view.page.locator(f'text="{title}"')).first


@pytest.fixture
def lesson(open_notebook) -> Page:
    return open_notebook(LESSON)


def test_the_lesson_runs_answers_moves_and_is_published(
    lesson: Page, picture, lab_server, tmp_path: Path, open_notebook
) -> None:
    run_all(lesson)
    executed = saved(lesson, lab_server, tmp_path)
    answers(lesson, picture)
    moves_while_a_cell_runs(lesson, tmp_path / "seen")
    needs_no_network_and_no_trust(executed, open_notebook)


def answers(lesson: Page, picture) -> None:
    """Boxes lead to lines, and the cache and the devices tell what has happened; in both themes."""
    staged = output(lesson, index("%%stage train_step\n"))
    expect(staged).to_contain_text("trace-time only")
    view = staged.locator(".ll-graph-view")
    box(view, "softmax_residual").locator(".ll-outline").click()
    expect(view.locator(".ll-line.ll-chosen")).to_contain_text("softmax_cross_entropy(logits, labels).mean()")
    picture(cell(lesson, index("%%stage train_step\n")), "lesson-stage-light")

    view.locator(".ll-box", has_text="call network").first.locator(".ll-opener").click()
    expect(box(view, "relu")).to_be_visible()
    picture(view, "lesson-nested-light")

    cache = output(lesson, index("%trace_cache train_step"))
    expect(cache).to_contain_text("2 traces")
    expect(cache).to_contain_text("f32[29,64]")
    picture(cell(lesson, index("%trace_cache train_step")), "lesson-cache-light")
    picture(cell(lesson, index("%devices")), "lesson-devices-light")
    expect(output(lesson, index("%trace_cache train_step --why"))).to_contain_text("axis 0: 32 → 29")
    expect(output(lesson, index("guesses = "))).to_contain_text("held-out digits are right")
    expect(output(lesson, index("%devices"))).to_contain_text("CPU:0 → CPU:1")

    set_theme(lesson, DARK)
    staged_views = [("%%stage train_step\n", "stage"), ("%trace_cache train_step", "cache"), ("%devices", "devices")]
    for beginning, name in staged_views:
        picture(cell(lesson, index(beginning)), f"lesson-{name}-dark")


UNTIL_SEEN = """\
from pathlib import Path

while not Path({seen!r}).exists():
    for images, labels in batches():
        train_step(images=images, labels=labels)
        time.sleep(0.02)
print("done")"""


def moves_while_a_cell_runs(page: Page, seen: Path) -> None:
    """The cell runs until the page was seen moving, however long a busy machine takes for that."""
    loop = index("%devices") + 1
    select = "at => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = at; }"
    page.evaluate(select, loop - 1)
    command(page, "notebook:insert-cell-below")
    source = "code => window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.setSource(code)"
    page.evaluate(source, UNTIL_SEEN.format(seen=str(seen)))
    run_cell(page, loop, wait=False)
    running = cell(page, loop).locator(".jp-InputPrompt", has_text="[*]")
    running.wait_for()
    cache, devices = output(page, index("%trace_cache train_step")), output(page, index("%devices"))
    expect(devices).to_contain_text("eager ops")
    expect(devices).not_to_contain_text(re.compile(r"staged calls\s*0\b"))
    before = devices.text_content() or ""  # not its inner text, which is empty while the cell is out of sight
    expect(devices).not_to_have_text(before)
    expect(running).to_have_count(1)
    expect(cache).to_contain_text("2 traces")
    seen.touch()
    wait_idle(page)
    expect(output(page, loop)).to_contain_text("done")


def saved(lesson: Page, lab_server, tmp_path: Path) -> Path:
    """What JupyterLab has saved, which is small, as a stranger would send it."""
    save(lesson)
    (path,) = lab_server.root.glob("*published*01_first_light.ipynb")
    executed = tmp_path / "executed.ipynb"
    executed.write_text(json.dumps(_without_trust(json.loads(path.read_text()))))
    assert executed.stat().st_size < 200_000
    return executed


def needs_no_network_and_no_trust(executed: Path, open_notebook) -> None:
    """What is saved shows its figures untrusted, and as a page."""
    untrusted = open_notebook(executed)
    for beginning in ("%%stage train_step\n", "%trace_cache train_step", "%devices", "%graph train_step"):
        cell(untrusted, index(beginning)).evaluate("one => one.scrollIntoView({block: 'start'})")
        shown = output(untrusted, index(beginning)).locator("img").first
        expect(shown).to_be_visible()
        width = shown.evaluate("image => image.decode().then(() => image.naturalWidth)")
        assert width > 100, f"the figure of {beginning!r} is drawn, untrusted"

    page = as_page(executed)
    figures = page.count('src="data:image/svg+xml;base64,')
    assert figures >= 5, f"every view has its figure in the published page, found {figures}"


def _without_trust(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook as a stranger would send it: JupyterLab trusts what it has saved itself, by its contents."""
    notebook["metadata"].pop("widgets", None)
    notebook["metadata"]["from"] = "somebody else"
    return notebook
