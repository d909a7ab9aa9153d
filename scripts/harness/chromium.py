"""Find a Chromium; where there is none, have one installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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
    found = find()
    if found:
        return found
    on_debian = shutil.which("apt-get") is not None and hasattr(os, "geteuid") and os.geteuid() == 0
    log = _install_by_apt() if on_debian else ""
    found = find()
    if found:
        return found
    log += _run([sys.executable, "-m", "playwright", "install", "chromium"])
    found = find()
    if found:
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


def _install_by_apt() -> str:
    packages = ["chromium", "fonts-dejavu-core"]
    log = _run(["apt-get", "update", "-q"])
    return log + _run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages])


def _run(command: list[str]) -> str:
    print("Installing a browser:", " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout
