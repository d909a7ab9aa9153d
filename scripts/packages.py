"""Install packages into an environment: by uv, which takes a fifth of pip's processor time, else by pip.

uv reads none of pip's configuration, so it is given what that says of indexes and constraints. Where pip's says more,
or uv cannot be had, or fails, pip does it.
"""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SHARED = ("index-url", "extra-index-url", "find-links", "constraint")
"""What both understand, under the same name."""
OF_PIP_ALONE = {
    *("cert", "client-cert", "timeout", "default-timeout", "retries", "cache-dir", "no-cache-dir"),
    *("disable-pip-version-check", "root-user-action", "no-input", "no-color", "progress-bar", "quiet", "verbose"),
}
"""What leaves the choice of packages alone; uv is told of `cert` in the environment."""


def update_installers(python: Path) -> None:
    """Install uv and the newest pip: pip 26 takes two fifths of the processor time of pip 23, which comes with Pythons.

    Where these are not to be had, the old pip does. To be called before anything else runs pip.
    """
    for installers in (("pip", "uv"), ("pip",)):
        if subprocess.run([*_pip(python), "--retries", "0", "--upgrade", *installers], check=False).returncode == 0:
            return


def install(python: Path, *wanted: str) -> int:
    """Install what is wanted, as on pip's command line, without compiling it; returns the status."""
    settings = configuration(python)
    options = options_of(settings)
    if options is not None and _runs([str(python), "-m", "uv", "--version"]) == "":
        uv = [str(python), "-m", "uv", "pip", "install", "--quiet", "--python", str(python), *options, *wanted]
        certificates = {"SSL_CERT_FILE": settings["cert"]} if "cert" in settings else {}
        failed = _runs(uv, os.environ | certificates)
        if not failed:
            return 0
        print(f"uv does not install it, so pip does: {failed}", flush=True)
    return subprocess.run([*_pip(python), "--no-compile", *wanted], check=False).returncode


def configuration(python: Path) -> dict[str, str]:
    """What the files and the environment set for `pip install`, by the names of its options."""
    listing = [str(python), "-m", "pip", "--disable-pip-version-check", "config", "list"]
    lines = subprocess.run(listing, capture_output=True, text=True, check=False).stdout.splitlines()
    found: dict[str, str] = {}
    for section in ("global.", "install.", ":env:."):  # the later ones win
        of_section = [line.removeprefix(section) for line in lines if line.startswith(section)]
        found.update({name: str(ast.literal_eval(value)) for name, _, value in (x.partition("=") for x in of_section)})
    return found


def options_of(settings: Mapping[str, str]) -> list[str] | None:
    """The options by which uv chooses among the same packages; None where there are none for a setting of pip's."""
    if not settings.keys() <= {*SHARED, *OF_PIP_ALONE}:
        return None
    given = [(name, value) for name in SHARED for value in settings.get(name, "").split()]
    return ["--index-strategy", "unsafe-best-match", *[word for name, x in given for word in (f"--{name}", x)]]


def _runs(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Runs a command; returns the last line of why it failed, or nothing."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return (done.stderr.strip() or "it says nothing").splitlines()[-1] if done.returncode else ""


def _pip(python: Path) -> list[str]:
    return [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
