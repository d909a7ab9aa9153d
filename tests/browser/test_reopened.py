"""A notebook that ran in JupyterLab, saved, and opened again when its kernel has gone."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from harness.page import DARK, OF_IPYWIDGETS, open_notebook, output, run_all, run_cell, save, set_theme

CELLS = [
    "%load_ext limelight\nimport limelight as ll\n"
    "w = ll.Variable([[1.0, 2.0], [3.0, 4.0]], name='w')\n"
    "@ll.function\ndef step(x):\n    return ll.tanh(x @ w) * 2.0\n"
    "step(ll.ones((3, 2)))\nwith ll.GradientTape() as tape:\n    y = ll.sum(w * w)",
    "%graph step",
    "%trace_cache step",
    "%tape",
    "%devices",
    "%%stage again\nz = ll.tanh(w) * 2.0",
    "n = globals().get('n', 4) + 1\nfor _ in range(2):\n    step(ll.ones((n, 2)))\nprint(f'{step.trace_count} traces')",
]
WITHOUT_KERNEL = """async () => {
  const { shell, commands } = window.jupyterapp;
  const { context, sessionContext } = shell.currentWidget;
  const path = context.path;
  await sessionContext.shutdown();
  shell.currentWidget.dispose();
  await commands.execute("docmanager:open", { path, factory: "Notebook", kernelPreference: { shouldStart: false } });
}"""


@pytest.fixture
def saved(open_cells, lab_server):
    """The notebook, run and saved, and the page in which it ran."""
    before = set(lab_server.root.glob("*.ipynb"))
    page = open_cells(*CELLS)
    run_all(page)
    save(page)
    (path,) = set(lab_server.root.glob("*.ipynb")) - before
    save_when(page, path, 1, "Graph of step: optimised, trace #2 of 2")
    return path, page


def save_when(page, path, index: int, words: str) -> None:
    """Saves until a cell's output says `words`: what a view shows reaches the page after the cell has ended."""
    for _ in range(300):
        save(page)
        if told(path, index).startswith(words):
            return
        page.wait_for_timeout(300)
    pytest.fail(f"cell {index} still says {told(path, index)[:200]!r}")


def told(path, index: int) -> str:
    """What the output of a cell says in plain text, as it is saved."""
    (shown,) = [one for one in json.loads(path.read_text())["cells"][index]["outputs"] if "data" in one]
    return "".join(shown["data"]["text/plain"])


def test_what_is_saved_is_the_end_of_the_story_also_in_a_second_page_that_outlives_the_first(
    saved, chromium_context, lab_server, pages, watch
):
    path, page = saved
    save_when(page, path, 2, "Trace cache of step: 2 traces, 1 hit")
    assert "again: traced" in told(path, 5), "what a staged cell says is of its run"
    for data in [
        one["data"] for cell in json.loads(path.read_text())["cells"] for one in cell["outputs"] if "data" in one
    ]:
        assert "image/svg+xml" not in data, "each picture is stored once"
    is_live_once_its_model_comes(page)
    first, page = page, chromium_context.new_page()
    pages[:] = [page]
    watch.attach(page)
    open_notebook(page, lab_server, path.name)
    shows_views(page, traces=2, hits=1)
    run_cell(first, 6)
    for one in (first, page):  # of one kernel, whichever of them asked it to run something
        shows_views(one, traces=3, hits=2)
    watch.detach(first)
    first.close()
    save_when(page, path, 2, "Trace cache of step: 3 traces, 2 hits")
    watch.forget(*OF_IPYWIDGETS)


def shows_views(page, *, traces: int, hits: int) -> None:
    """All four views are alive in a page."""
    ops = output(page, 4).locator(".ll-devices-view")
    expect(output(page, 1).locator(".ll-graph-view .ll-title")).to_contain_text(f"trace #{traces} of {traces}")
    expect(output(page, 1).locator(".ll-graph-view .ll-box").first).to_be_visible()
    expect(output(page, 2).locator(".ll-cache-view")).to_contain_text(f"{traces} traces, {hits} hit")
    expect(output(page, 3).locator(".ll-tape-view")).to_contain_text("multiply")
    expect(ops).to_contain_text("CPU:0")


WITHOUT_MODEL = """async () => {
  const { shell } = window.jupyterapp;
  const cell = shell.currentWidget.content.widgets[2];
  const find = (one) => (one._manager ? one : [...(one.children?.() ?? [])].map(find).find(Boolean));
  const manager = (window.ofWidgets = await find(cell.outputArea)._manager.promise);
  const id = cell.model.outputs.get(0).data["application/vnd.limelight.view+json"].model_id;
  window.late = [id, manager._models[id]];
  delete manager._models[id];
  const copy = cell.cloneOutputArea();
  copy.id = "late-output";
  shell.add(copy, "main", { mode: "split-right" });
}"""
RESTORED = "() => { ofWidgets._models[late[0]] = late[1]; ofWidgets._restored.emit(); }"


def is_live_once_its_model_comes(page) -> None:
    """On a busy machine ipywidgets has a view's model after it has said that there is none."""
    page.evaluate(WITHOUT_MODEL)
    copy = page.locator("#late-output")
    copy.locator("img").first.wait_for()
    page.evaluate(RESTORED)
    expect(copy.locator(".ll-cache-view")).to_contain_text("2 traces")
    expect(copy.locator("img")).to_have_count(0)


def test_it_shows_its_pictures_with_another_kernel_and_with_none(saved, open_notebook, lab_server, watch, picture):
    path, _ = saved
    page = open_notebook(path)
    page.set_viewport_size({"width": 1280, "height": 720})
    shows_pictures(page)
    picture(page, "reopened-light")
    set_theme(page, DARK)
    picture(page, "reopened-dark")
    page.evaluate(WITHOUT_KERNEL)
    shows_pictures(page)
    assert page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session") is None
    watch.forget(*OF_IPYWIDGETS)


def shows_pictures(page) -> None:
    for index in range(1, 6):
        output(page, index).evaluate("one => one.scrollIntoView({block: 'start'})")
        image = output(page, index).locator("img")
        image.wait_for()
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
        expect(output(page, index)).not_to_contain_text("Loading widget")
        expect(output(page, index)).not_to_contain_text("not found")
