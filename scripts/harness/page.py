"""Drive notebooks in a real JupyterLab with a real Chromium (Playwright's synchronous interface).

    with server.running(root, state, log) as lab, browser(ensure(), profile) as context:
        page = open_notebook(context.new_page(), lab, "01_first_light.ipynb")
        run_all(page)
        screenshot(page, Path("artefacts/screenshots/first_light.png"))

JupyterLab exposes its application object to the page (`jupyterapp`). Commands that a user gives with a click are given
with a click here; the object serves to ask for state that the screen does not show, such as "has every cell finished?".
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

from harness.server import HOST, LabServer

ARGUMENTS = (
    "--no-sandbox",  # the only pages are ours, and a container's root has no other way
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
)
WINDOW: ViewportSize = {"width": 1280, "height": 900}
OPEN_MILLISECONDS = 300_000
RUN_MILLISECONDS = 300_000
DRAWN_MILLISECONDS = 120_000
"""However busy the machine is: who waits sees at once what is there, and only what is wrong waits so long."""
BARS = 240
"""Pixels that JupyterLab's menu, toolbar, status bar and margins take off a window's height."""
SETTLE_MILLISECONDS, SETTLE_TRIES = 100, 30
"""JupyterLab gives cells out of sight a guessed height: scrolling to one moves it, until the guesses are made good."""
LIGHT = "JupyterLab Light"
DARK = "JupyterLab Dark"

LATE_MODEL = "[anywidget] Failed to initialize model."
"""What it says of a model whose script took more than 2 seconds, as on a busy machine: the view is live even so."""
OF_IPYWIDGETS = ("widget model not found", "reading 'kernel'")
"""What it says on the console of a model that has gone or comes late, and of a notebook without a kernel."""

_OUTSTANDING = """() => {
  const panel = window.jupyterapp.shell.currentWidget;
  const kernel = panel.sessionContext.session.kernel;
  const waiting = panel.content.widgets.filter(cell => /\\*/.test(cell.promptNode?.textContent ?? ""));
  return waiting.length === 0 && kernel.status === "idle" && !kernel.hasPendingInput;
}"""
_CONNECTED = """path => {
  const panel = window.jupyterapp.shell.currentWidget;
  const kernel = panel?.sessionContext?.session?.kernel;
  return panel?.context?.path === path && panel.context.isReady && kernel?.connectionStatus === "connected"
    && kernel.status === "idle" && document.querySelectorAll(".jp-Notebook").length === 1;
}"""
_CLOSE = """async () => {
  const { shell } = window.jupyterapp;
  for (const area of ["main", "down", "right", "left"]) for (const widget of [...shell.widgets(area)])
    if (area === "main" || widget.id.startsWith("limelight")) widget.dispose();
  if (shell.leftCollapsed) shell.expandLeft();
}"""
_AS_AT_FIRST = """() => {
  const { shell } = window.jupyterapp;
  if (shell.leftCollapsed) shell.expandLeft();
  for (const key of Object.keys(localStorage)) if (key.startsWith("limelight")) localStorage.removeItem(key);
}"""
_ERRORS = """() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells
  .flatMap(cell => cell.outputs ?? [])
  .filter(output => output.output_type === "error")
  .map(output => `${output.ename}: ${output.evalue}\\n${output.traceback.join("\\n")}`)"""
_COMMAND = "async ([name, given]) => { await window.jupyterapp.commands.execute(name, given); }"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class CellError(AssertionError):
    """A cell of the notebook raised; the message is its traceback."""


@dataclass
class Watch:
    """What went wrong in a page without anybody looking: errors on the console, and requests to other machines."""

    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def attach(self, page: Page) -> None:
        """Listen to `page` from now on."""
        for event, heard in self._listeners:
            page.on(event, heard)  # type: ignore[call-overload]  # each of these events is known

    def detach(self, page: Page) -> None:
        """Listen no longer."""
        for event, heard in self._listeners:
            page.remove_listener(event, heard)

    def forget(self, *words: str) -> None:
        """Expects errors that say one of these."""
        self.errors[:] = [error for error in self.errors if not any(said in error for said in words)]

    @cached_property
    def _listeners(self) -> tuple[tuple[str, Any], ...]:
        return (
            ("console", self._on_console),
            ("pageerror", self._on_uncaught),
            ("request", self._on_request),
            ("websocket", lambda socket: self._check(socket.url)),
        )

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def _on_uncaught(self, error: Error) -> None:
        if error.message != LATE_MODEL:
            self.errors.append(f"uncaught: {error}")

    def _on_request(self, request: Request) -> None:
        self._check(request.url)

    def _check(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.hostname != HOST:
            self.foreign.append(url)


@contextlib.contextmanager
def browser(executable: Path, profile: Path, *, scale: float = 1) -> Iterator[BrowserContext]:
    """A headless Chromium whose profile is the empty folder `profile`, and which can reach this machine alone.

    `scale` is the number of a picture's pixels to a pixel of the page.
    """
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=executable,
            headless=True,
            args=list(ARGUMENTS),
            viewport=WINDOW,
            device_scale_factor=scale,
        )
        context.set_default_timeout(RUN_MILLISECONDS)  # what hangs ends; a busy machine is no reason to
        expect.set_options(timeout=RUN_MILLISECONDS)
        try:
            yield context
        finally:
            context.close()


def open_notebook(page: Page, server: LabServer, name: str) -> Page:
    """Open `name`, a path below the server's root, in `page`; returns when its kernel is connected and idle.

    The notebook must name its kernel in its metadata; JupyterLab asks the user otherwise.
    """
    page.goto(f"{server.url}/lab/tree/{name}?reset")
    _wait_until_connected(page)
    return page


def load_again(page: Page) -> None:
    """Load the page anew at its notebook, and at nothing else; returns when its kernel is connected and idle."""
    path = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    at = urlsplit(page.url)
    page.goto(f"{at.scheme}://{at.netloc}/lab/tree/{path}?reset")
    _wait_until_connected(page)


def _wait_until_connected(page: Page) -> None:
    page.locator(".jp-Notebook").first.wait_for(timeout=OPEN_MILLISECONDS)
    # The indicator in the notebook's own toolbar says idle before the kernel is connected; what is run then is lost.
    page.locator("#jp-main-statusbar").get_by_text(re.compile(r"\| Idle")).wait_for(timeout=OPEN_MILLISECONDS)
    _wait_until_unveiled(page)


def open_another(page: Page, name: str) -> Page:
    """Open `name` in a page where JupyterLab runs already and shows nothing, which saves loading it anew."""
    command(page, "docmanager:open", path=name)
    page.wait_for_function(_CONNECTED, arg=name, timeout=OPEN_MILLISECONDS)
    page.locator("#jp-main-statusbar").get_by_text(re.compile(r"\| Idle")).wait_for(timeout=OPEN_MILLISECONDS)
    return page


def close_all(page: Page) -> None:
    """Take everything off JupyterLab's page, without asking whether to save it, as if it had just been loaded.

    Raises:
        AssertionError: something stays, such as a dialogue.
    """
    page.set_viewport_size(WINDOW)
    page.evaluate(_CLOSE)
    page.wait_for_function("() => !document.querySelector('.jp-Notebook, .jp-Dialog')", timeout=DRAWN_MILLISECONDS)


def command(page: Page, name: str, **given: object) -> None:
    """Execute a command of JupyterLab's, and wait until it is done.

    What it gives stays in the page. That may be a widget, from which all of the application can be reached: to describe
    it to this process took 5 seconds of a processor, more than all else that opens a notebook.
    """
    page.evaluate(_COMMAND, [name, given])


def choose(page: Page, *path: str) -> None:
    """Click through JupyterLab's menus: `choose(page, "Run", "Run All Cells")`."""
    for name in path:
        page.get_by_role("menuitem", name=name, exact=True).click()


def run_all(page: Page, *, wait: bool = True, timeout: float = RUN_MILLISECONDS) -> None:
    """Run every cell from the top, as with Run > Run All Cells; `timeout` in milliseconds.

    With `wait=False` it returns at once, for looking at what happens meanwhile; call `wait_idle` later.

    Raises:
        CellError: if a cell raised (only when waiting).
    """
    choose(page, "Run", "Run All Cells")
    if wait:
        wait_idle(page, timeout=timeout)
        check_cells(page)


def run_cell(page: Page, index: int, *, wait: bool = True, timeout: float = RUN_MILLISECONDS) -> None:
    """Run the cell `index` (counted from 0, text cells too), as with a click into it and Ctrl+Enter."""
    cell(page, index).locator(".cm-content").first.click()
    page.keyboard.press("Control+Enter")
    if wait:
        wait_idle(page, timeout=timeout)
        check_cells(page)


def show_again(page: Page, index: int) -> None:
    """Run the cell `index` anew, in a page as it was when it ran first: nothing is remembered of what was looked at."""
    page.evaluate(_AS_AT_FIRST)
    run_cell(page, index)


def wait_idle(page: Page, *, timeout: float = RUN_MILLISECONDS) -> None:
    """Wait until no cell is running or queued and the kernel is idle."""
    page.wait_for_function(_OUTSTANDING, timeout=timeout)


def check_cells(page: Page) -> None:
    """Raise CellError if an output of the notebook is a traceback."""
    errors = page.evaluate(_ERRORS)
    if errors:
        raise CellError(_ANSI.sub("", "\n".join(errors)))


def cell(page: Page, index: int) -> Locator:
    """The cell `index`, counted from 0, text cells too."""
    return page.locator(".jp-Notebook .jp-Cell").nth(index)


def output(page: Page, index: int) -> Locator:
    """The output area of the cell `index`."""
    return cell(page, index).locator(".jp-Cell-outputArea")


def set_theme(page: Page, name: str) -> None:
    """Switch to a theme (`LIGHT`, `DARK`), and wait until it is drawn. It lasts for all pages of the server."""
    command(page, "apputils:change-theme", theme=name)
    page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
    _wait_until_unveiled(page)


def _wait_until_unveiled(page: Page) -> None:
    """JupyterLab fades a splash out over the page when it starts, and at a change of theme."""
    page.locator("#jupyterlab-splash").wait_for(state="detached", timeout=OPEN_MILLISECONDS)


def notebook_json(page: Page) -> dict[str, Any]:
    """The notebook as JupyterLab holds it now, outputs included, saved or not."""
    return dict(page.evaluate("() => window.jupyterapp.shell.currentWidget.content.model.toJSON()"))


def save(page: Page) -> None:
    """Save the notebook to the server's folder."""
    command(page, "docmanager:save")


def becomes(page: Page, ask: Callable[[], Any], wanted: Any, *, timeout: float = DRAWN_MILLISECONDS) -> Any:
    """What `ask` answers once it is `wanted`, or at last: a page is drawn some frames after what changes it.

    For `assert becomes(page, ask, wanted) == wanted`, where no `expect` of Playwright's says it.
    """
    for _ in range(int(timeout / SETTLE_MILLISECONDS)):
        if (answer := ask()) == wanted:
            return answer
        page.wait_for_timeout(SETTLE_MILLISECONDS)
    return ask()


def screenshot(target: Page | Locator, path: Path) -> Path:
    """Write a PNG to `path`: of a page as it is, or of one element, for which the window grows if it must."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(target, Locator):
        _make_room(target)
    target.screenshot(path=path)
    return path


def _make_room(element: Locator) -> None:
    """Bring `element` to the top, in a window so high that none of JupyterLab's bars covers it."""
    page = element.page
    previous = None
    for _ in range(SETTLE_TRIES):
        element.evaluate("one => one.scrollIntoView({block: 'start', behavior: 'instant'})")
        page.wait_for_timeout(SETTLE_MILLISECONDS)
        box, window = element.bounding_box(), page.viewport_size
        if box == previous or box is None or window is None:
            return
        previous = box
        if box["height"] + BARS > window["height"]:
            page.set_viewport_size({"width": window["width"], "height": int(box["height"]) + BARS})
