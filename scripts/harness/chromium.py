"""Find a Chromium; where there is none, have one installed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import debian

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
)
VARIABLE = "LIMELIGHT_CHROMIUM"


class NoBrowserError(RuntimeError):
    """There is no Chromium on this machine, and none could be installed."""


def find() -> Path | None:
    """The Chromium named by LIMELIGHT_CHROMIUM, else one on the path, in its usual place, or of Playwright's own."""
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise NoBrowserError(f"{VARIABLE}={named}, but there is no such file. Name an executable, or unset it.")
        return Path(named)
    on_path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if on_path:
        return Path(on_path)
    return next((place for place in map(Path, PLACES) if place.is_file()), None) or _of_playwright()


def ensure() -> Path:
    """`find()`, after installing a Chromium if need be.

    As root on Debian it is Debian's own package, which brings the libraries it needs; elsewhere the one that
    Playwright downloads into the user's cache.

    Raises:
        NoBrowserError: with what the installer said.
    """
    log = ""
    found = find()
    if found is None:
        log += debian.install("chromium", "fonts-dejavu-core")
        found = find()
    if found is None:
        log += debian.run(sys.executable, "-m", "playwright", "install", "chromium")
        found = find()
    if found is not None:
        return found
    raise NoBrowserError(f"No Chromium was found, and none could be installed. Set {VARIABLE} to one.\n{log}")


def _of_playwright() -> Path | None:
    """The browser that `playwright install chromium` put into its cache, if it did."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  (finding a system browser needs no Playwright)
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return path if path.is_file() else None
