"""Look at the documentation in a real browser: `make docs-check`, after `make docs`.

One page of each kind is opened in light and dark, at 1280 and at 360 pixels. axe must find nothing, nothing may lie
beyond the right edge, no request may leave this machine, the search must find a name, and the keyboard must reach the
skip link, the search, and blocks that scroll. Pictures are kept in `artefacts/docs/pictures`.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

from harness import chromium
from harness.page import browser

ROOT: Final = Path(__file__).resolve().parent.parent
SITE: Final = ROOT / "artefacts" / "docs" / "html"
PICTURES: Final = ROOT / "artefacts" / "docs" / "pictures"
AXE: Final = ROOT / "widgets" / "js" / "node_modules" / "axe-core" / "axe.min.js"
KINDS: Final = (
    "index",
    "guide/README",
    "guide/training",
    "guide/coming_from_numpy",
    "guide/coming_from_pytorch",
    "guide/coming_from_tensorflow_and_jax",
    "guide/glossary",
    "gallery/README",
    "reference/README",
    "reference/elementwise",
    "reference/nn_layers",
    "errors/ShapeError",
    "retracing",
    "magics",
    "architecture",
    "genindex",
)
WIDTHS: Final = (1280, 360)
_BEYOND: Final = """() => {
    const width = document.documentElement.clientWidth;
    return document.documentElement.scrollWidth > width
        ? [...document.querySelectorAll("article *")].filter(e => e.getBoundingClientRect().right > width + 1)
            .slice(0, 3).map(e => e.outerHTML.slice(0, 120)) : [];
}"""
_WIDE_INDEX: Final = """() => {
    const width = document.querySelector("article").clientWidth;
    return [...document.querySelectorAll(".genindextable")].some(e => e.scrollWidth > width);
}"""


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *told: Any) -> None:
        """Says nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Sends a file; the browser may go on to the next page before it has all of it."""
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, outputfile)


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    handler = functools.partial(_Silent, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def faults(page: Page, address: str, *, pictures: bool = True) -> Iterator[str]:
    """What is wrong with the site at `address`."""
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for name in KINDS:
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                page.goto(f"{address}/{name}.html")
                yield from (f"{name} {theme} {width}: {fault}" for fault in _of_page(page))
                if pictures:
                    page.screenshot(path=PICTURES / f"{name.replace('/', '-')}-{theme}-{width}.png")
    yield from _of_search(page, address)
    yield from _of_keyboard(page, address)
    yield from (f"asks for {url}" for url in sorted(asked) if not url.startswith((address, "data:")))


def _of_page(page: Page) -> Iterator[str]:
    page.add_script_tag(path=AXE)
    found = page.evaluate("() => axe.run().then(r => r.violations.map(v => [v.id, v.nodes.length, v.nodes[0].html]))")
    yield from (f"axe {rule} ({count}): {html[:200]}" for rule, count, html in found)
    yield from (f"beyond the edge: {html}" for html in page.evaluate(_BEYOND))
    if page.evaluate(_WIDE_INDEX):
        yield "the index is to be scrolled sideways"


def _of_search(page: Page, address: str) -> Iterator[str]:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{address}/search.html?q=vectorize")
    page.wait_for_selector("#search-results li")
    links = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.getAttribute('href'))")
    if not any("ll.vectorize" in link for link in links):
        yield f"the search for vectorize finds {links[:5]}"


def _of_keyboard(page: Page, address: str) -> Iterator[str]:
    page.goto(f"{address}/reference/gradients.html")
    reached = []
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement.tagName + ' ' + document.activeElement.className"))
    for what in ("skip-to-content", "sidebar-search", "PRE"):
        if not any(what in one for one in reached):
            yield f"the keyboard does not reach {what}"


def main() -> None:
    """Look at the site, and say what is wrong with it."""
    if not (SITE / "index.html").is_file():
        sys.exit("There is no documentation yet: make docs")
    if not AXE.is_file():
        sys.exit("axe-core is not there: npm ci, in widgets/js")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="limelight-docs-") as profile,
        _served(SITE) as address,
        browser(chromium.ensure(), Path(profile)) as context,
    ):
        found = list(faults(context.new_page(), address))
    print("\n".join(found) or f"{len(KINDS)} kinds of page, light and dark, {WIDTHS} pixels: nothing wrong")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
