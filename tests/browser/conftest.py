"""Fixtures for tests in a real JupyterLab with a real Chromium.

A test asks for `open_notebook` (a file of `notebooks/` or `tests/browser/notebooks/`, or any path) or for `open_cells`
(sources of code cells), gets Playwright's `Page`, and drives it with the functions of `harness.page`:

    from harness.page import DARK, output, run_all, set_theme

    def test_a_graph_is_drawn(open_cells, picture):
        page = open_cells("%load_ext limelight", "%graph step")
        run_all(page)
        output(page, 1).locator("svg").wait_for()
        picture(page, "graph-light")
        set_theme(page, DARK)
        picture(output(page, 1), "graph-dark")

One server and one browser serve a whole run, or one of its workers: a page waits for its kernel and a test for its page
half of the time, and so two workers on two cores take little more than half as long. Every test has notebooks and
kernels of its own, which end with it: the kernel of the next test starts while this one is at work, since starting
takes longer than most tests. JupyterLab is loaded once, and its page is emptied between tests, and between the
notebooks of one test; where a test has failed, it is loaded anew.

After each test the console must hold no error and no request may have left this machine: a test that expects errors
takes them out of `watch.errors`. All of these tests carry the marker `browser` without saying so. When one fails, what
the page showed is kept in `artefacts/screenshots/failed-*.png`, and each worker's server has its log in
`artefacts/jupyterlab-*.log`.

`LIMELIGHT_PICTURES=1 make browser-test` keeps pictures of what is looked at in `artefacts/screenshots`.

They run after all others: while Playwright is at work, this thread has an asyncio loop, so a test that wants to execute
a notebook by nbclient as well does that in a subprocess (`jupyter nbconvert --execute`).
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import BrowserContext, Locator, Page

from harness import chromium, server
from harness import page as lab_page
from harness.page import LIGHT, Watch

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ARTEFACTS = ROOT / "artefacts"
SCREENSHOTS = ARTEFACTS / "screenshots"
IMPORTS = "import limelight_kernel.extension\ndel limelight_kernel\n"
"""Kernels import what every notebook will ask for while the test before is still at work, and bind no name."""
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[server.LabServer]:
    """JupyterLab over an empty temporary folder."""
    root, state = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyter")
    with server.running(root, state, ARTEFACTS / f"jupyterlab-{worker_id}.log", IMPORTS) as running:
        yield running


@pytest.fixture(scope="session")
def chromium_context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """A headless Chromium with an empty profile."""
    with lab_page.browser(chromium.ensure(), tmp_path_factory.mktemp("chromium")) as context:
        yield context


@dataclass
class Tab:
    """JupyterLab's page between two tests: empty, or with a notebook of `sources` for who asks for the same next."""

    page: Page | None = None
    sources: tuple[str, ...] = ()


@pytest.fixture(scope="session")
def tab() -> Tab:
    """The page of JupyterLab that the next test may use."""
    return Tab()


@pytest.fixture
def watch() -> Iterator[Watch]:
    """What the test's pages did wrong in silence; must be empty at the end."""
    seen = Watch()
    yield seen
    assert not seen.foreign, f"requests left this machine: {seen.foreign}"
    assert not seen.errors, "errors on the browser's console:\n" + "\n".join(seen.errors)


@pytest.fixture
def pages(request: pytest.FixtureRequest, lab_server: server.LabServer, watch: Watch, tab: Tab) -> Iterator[list[Page]]:
    """The test's page, as soon as it has one; afterwards that is left to the next test."""
    used: list[Page] = []
    yield used
    failed = getattr(request.node, "failed", False)
    for page in used:
        if failed:
            lab_page.screenshot(page, SCREENSHOTS / f"failed-{_slug(request.node.name)}.png")
        if page.evaluate("() => document.body.dataset.jpThemeName") != LIGHT:
            lab_page.set_theme(page, LIGHT)
        watch.detach(page)
        if failed:
            page.close()
            tab.sources = ()
        else:
            tab.page = page
            if not tab.sources:
                lab_page.close_all(page)
    if not tab.sources:
        lab_server.end_kernels()


@pytest.fixture
def open_notebook(
    request: pytest.FixtureRequest,
    lab_server: server.LabServer,
    chromium_context: BrowserContext,
    watch: Watch,
    pages: list[Page],
    tab: Tab,
) -> Callable[[str | Path], Page]:
    """Call it with a notebook's file name or path: copies it to the server, opens the copy, waits for its kernel.

    A second notebook takes the place of the first.
    """
    numbers = itertools.count()

    def open_one(notebook: str | Path) -> Page:
        source = _find(notebook)
        name = f"{_slug(request.node.name)}-{next(numbers)}-{source.name}"
        shutil.copy(source, lab_server.root / name)
        if pages:
            tab.page = pages.pop()
            watch.detach(tab.page)
            lab_page.close_all(tab.page)
        elif tab.page is not None and tab.sources:
            lab_page.close_all(tab.page)
            lab_server.end_kernels()
        tab.sources = ()
        emptied, tab.page = tab.page, None
        pages.append(emptied or chromium_context.new_page())
        watch.attach(pages[0])
        lab_server.give_kernel(name)
        lab_server.prepare_kernel()
        if emptied is not None:
            return lab_page.open_another(emptied, name)
        return lab_page.open_notebook(pages[0], lab_server, name)

    return open_one


@pytest.fixture
def open_cells(tmp_path: Path, open_notebook: Callable[[str | Path], Page]) -> Callable[..., Page]:
    """Call it with the sources of code cells: opens a notebook of them."""

    def open_them(*sources: str) -> Page:
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        path = tmp_path / "cells.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL}), path)
        return open_notebook(path)

    return open_them


@pytest.fixture
def small(open_cells: Callable[..., Page]) -> Callable[..., Page]:
    """The same in a low window, as on a projector, with all cells run."""

    def open_them(*sources: str) -> Page:
        page = open_cells(*sources)
        page.set_viewport_size({"width": 1280, "height": 720})
        lab_page.run_all(page)
        return page

    return open_them


@pytest.fixture
def again(small: Callable[..., Page], pages: list[Page], watch: Watch, tab: Tab) -> Callable[..., Page]:
    """The same for tests that only look: who asks for the same cells next has the last of them run anew."""

    def open_them(*sources: str) -> Page:
        if tab.page is None or tab.sources != sources:
            page = small(*sources)
        else:
            page, tab.page = tab.page, None
            pages.append(page)
            watch.attach(page)
            page.set_viewport_size({"width": 1280, "height": 720})
            lab_page.show_again(page, len(sources) - 1)
        tab.sources = sources
        return page

    return open_them


@pytest.fixture
def picture() -> Callable[[Page | Locator, str], None]:
    """Call it with a page or an element, and a name: keeps a PNG in `artefacts/screenshots/NAME.png`, if asked for.

    A picture takes seconds where a browser draws without a GPU, and all of them a fifth of the time of these tests.
    """

    def keep(target: Page | Locator, name: str) -> None:
        if "LIMELIGHT_PICTURES" in os.environ:
            lab_page.screenshot(target, SCREENSHOTS / f"{name}.png")

    return keep


LONG = (("test_first_sight", "test_reopened"), ("test_lesson", "test_second_lesson", "test_views_static"))
"""Files of long tests, with which each of two workers begins: at the end one would wait for the other."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and move them behind all others: each worker's half begins with long ones."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.browser)
    first, second = ([item for item in ours if item.path.stem in stems] for stems in LONG)
    short = [item for item in ours if item not in first and item not in second]
    middle = max(len(ours) // 2 - len(first), 0)
    items[:] = [item for item in items if item not in ours] + first + short[:middle] + second + short[middle:]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Tell fixtures whether their test failed (`request.node.failed`)."""
    report = yield
    if report.when == "call":  # type: ignore[attr-defined]
        item.failed = report.failed  # type: ignore[attr-defined]
    return report


def _find(notebook: str | Path) -> Path:
    places = [Path(notebook), HERE / "notebooks" / notebook, ROOT / "notebooks" / notebook]
    found = next((place for place in places if place.is_file()), None)
    assert found is not None, f"no notebook {notebook} among {[str(place) for place in places]}"
    return found


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-")
