"""Run a notebook in a real JupyterLab and write pictures of its cells: how the pictures in `docs/images` are made.

    python scripts/screenshot.py notebooks/01_first_light.ipynb docs/images --cell '%%stage=stage' --theme dark

`--cell START=NAME` takes the first cell whose source begins with START (or, if START is a number, the cell of that
index, text cells counted), with its output, and writes `NAME.png`, or `NAME-dark.png` with `--theme dark`; `--output`
leaves the source out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from harness import chromium, server
from harness.page import DARK, browser, cell, command, open_notebook, output, run_all, screenshot, set_theme

SETTLE_MILLISECONDS = 1500
"""Views draw at most every 50 ms, and a graph is laid out in a worker: this lets the last of it arrive."""


def main() -> None:
    """Parse the command line, run the notebook, write the pictures."""
    arguments = _parse()
    wanted = [_split(pair, arguments.notebook) for pair in arguments.cell]
    with tempfile.TemporaryDirectory(prefix="limelight-screenshot-") as folder:
        root = Path(folder, "notebooks")
        root.mkdir()
        shutil.copy(arguments.notebook, root)
        with (
            server.running(root, Path(folder, "state"), Path(folder, "jupyterlab.log")) as lab,
            browser(chromium.ensure(), Path(folder, "profile"), scale=arguments.scale) as context,
        ):
            page = open_notebook(context.new_page(), lab, arguments.notebook.name)
            page.set_viewport_size({"width": arguments.width, "height": 900})
            command(page, "application:toggle-left-area")
            if arguments.theme == "dark":
                set_theme(page, DARK)
            run_all(page)
            page.wait_for_timeout(SETTLE_MILLISECONDS)
            _write(page, wanted, arguments)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cell", action="append", required=True, metavar="START=NAME")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--output", action="store_true", help="the cell's output alone")
    parser.add_argument("--width", type=int, default=1280, help="of the window, in pixels")
    parser.add_argument("--scale", type=float, default=1.5, help="pixels of the picture to a pixel of the page")
    return parser.parse_args()


def _split(pair: str, notebook: Path) -> tuple[int, str]:
    """`START=NAME` as the cell's index and the picture's name."""
    start, _, name = pair.rpartition("=")
    if start.isdigit():
        return int(start), name
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for index, one in enumerate(cells):
        if "".join(one["source"]).startswith(start):
            return index, name
    sys.exit(f"{notebook} has no cell that begins with {start!r}")


def _write(page: Page, wanted: list[tuple[int, str]], arguments: argparse.Namespace) -> None:
    suffix = "-dark" if arguments.theme == "dark" else ""
    for index, name in wanted:
        target = output(page, index) if arguments.output else cell(page, index)
        print(screenshot(target, arguments.folder / f"{name}{suffix}.png"))


if __name__ == "__main__":
    main()
