"""Create the project's virtual environment and install the project into it.

    python scripts/environment.py EXTRA [--venv DIR]

EXTRA is one of the extras in `pyproject.toml`. Where there is a C compiler, limelight-native is built, too. Needs
nothing but a Python of its own: no package of the project, and not even the version that the project needs, as long as
one that is new enough can be found. A file `DIR/.installed-EXTRA` marks success; the Makefile compares its age with
that of `pyproject.toml` and of the C files.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import debian
import native
import packages

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
NEWEST = (3, 14)
CONTAINS = {"test": ("test", "workshop")}
"""Extras that bring other extras along: these are marked as installed too."""

NOT_COMPILED = r"[\\/](tests?|mypyc?|pip|setuptools|pkg_resources|virtualenv|fontTools|lexers|transformers)[\\/]"
"""Folders of packages, in their paths, of which little or nothing is ever imported: a quarter of all modules."""

NO_PYTHON = """No Python {oldest} or newer was found. Looked at: {tried}.
Install one, or name it: make {goal} PYTHON=/path/to/python"""
NO_VENV = """{python} cannot create a virtual environment:
{reason}
On Debian and Ubuntu its package is called python3-venv."""


def candidates() -> list[str]:
    """Pythons to try: the one that runs this, then those on the path, newest first."""
    names = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    found = [shutil.which(name) for name in [*names, "python3", "python"]]
    return list(dict.fromkeys([sys.executable, *[path for path in found if path]]))


def is_new_enough(python: str) -> bool:
    """Whether `python` starts and is a version that the project supports."""
    test = f"import sys; sys.exit(sys.version_info[:2] < {OLDEST})"
    try:
        return subprocess.run([python, "-c", test], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def create(venv: Path) -> None:
    """Create `venv` with the first Python that can; exits with a sentence when none can."""
    tried = candidates()
    suitable = [python for python in tried if is_new_enough(python)]
    if not suitable:
        sys.exit(NO_PYTHON.format(oldest="{}.{}".format(*OLDEST), tried=", ".join(tried), goal="test"))
    reasons = _attempt(suitable, venv)
    if reasons and debian.install("python3-venv"):
        reasons = _attempt(suitable, venv)
    if reasons:
        sys.exit("\n".join(reasons))


def _attempt(pythons: list[str], venv: Path) -> list[str]:
    """Why each of `pythons` could not create `venv`; empty as soon as one could."""
    reasons = []
    for python in pythons:
        print(f"Creating {venv.name} with {python}", flush=True)
        made = subprocess.run([python, "-m", "venv", "--clear", str(venv)], capture_output=True, text=True, check=False)
        if made.returncode == 0:
            return []
        reasons.append(NO_VENV.format(python=python, reason=(made.stdout + made.stderr).strip()))
    return reasons


def python_of(venv: Path) -> Path:
    """Where the interpreter of `venv` lies."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(venv: Path, extra: str) -> None:
    """Install the project, editable, with `extra`, and leave the mark."""
    print(f"Installing limelight[{extra}] into {venv.name}; the first time takes a minute or two", flush=True)
    with tempfile.TemporaryDirectory() as wheels, ThreadPoolExecutor(1) as beside:
        python = python_of(venv)
        packages.update_installers(python)
        built = beside.submit(native.build, python, Path(wheels)) if native.has_compiler() else None
        status = packages.install(python, "--editable", f"{ROOT}[{extra}]")
        if status:
            sys.exit(status)
        # Nothing is compiled yet: pip does so with one core.
        modules = str(venv / ("Lib" if os.name == "nt" else "lib"))
        with subprocess.Popen([str(python), "-m", "compileall", "-qq", "-j", "0", "-x", NOT_COMPILED, modules]):
            reason = built.result() or native.install_built(python, Path(wheels)) if built else native.install(python)
    if reason:
        print(native.WITHOUT.format(reason=reason), flush=True)
    for installed in CONTAINS.get(extra, (extra,)):
        (venv / f".installed-{installed}").touch()


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extra")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    arguments = parser.parse_args()
    if not is_new_enough(str(python_of(arguments.venv))):  # none there, or its Python was removed
        create(arguments.venv)
    install(arguments.venv, arguments.extra)


if __name__ == "__main__":
    main()
