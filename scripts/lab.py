"""Open JupyterLab at the first lesson, or check that it would open.

python scripts/lab.py open     for a person: the browser opens at the lesson
python scripts/lab.py check    for CI: the same server without a browser, asked whether it can show and run the lesson
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.server import LabServer, ServerError, running

ROOT = Path(__file__).resolve().parent.parent
LESSON = "notebooks/01_first_light.ipynb"
FRONT_ENDS = ("@jupyter-widgets/jupyterlab-manager", "anywidget")
"""The JupyterLab extensions without which the live views would be blank."""


def open_lab() -> int:
    """Run JupyterLab until the user ends it; its exit status."""
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # in a container, say
    at_lesson = f"--LabApp.default_url=/lab/tree/{LESSON}"  # also in the link that it prints, for lack of a browser
    return subprocess.run([sys.executable, "-m", "jupyterlab", *as_root, at_lesson], cwd=ROOT, check=False).returncode


def check_lab() -> None:
    """Start JupyterLab over the project and ask for all that `open_lab` needs.

    Raises:
        ServerError: naming what is missing.
    """
    with (
        tempfile.TemporaryDirectory(prefix="limelight-lab-") as state,
        running(ROOT, Path(state), ROOT / "artefacts" / "lab-check.log") as server,
    ):
        for problem in problems(server):
            raise ServerError(problem)
        print(f"JupyterLab served {server.url}/lab/tree/{LESSON}")


def problems(server: LabServer) -> list[str]:
    """What keeps `server` from showing and running the lesson; empty when nothing does."""
    found = []
    if not (ROOT / LESSON).is_file():
        return [f"The first lesson is missing: {LESSON}"]
    if server.get_json(f"/api/contents/{LESSON}?content=0")["type"] != "notebook":
        found.append(f"JupyterLab does not take {LESSON} for a notebook")
    if "python3" not in server.get_json("/api/kernelspecs")["kernelspecs"]:
        found.append("There is no kernel python3: is ipykernel installed?")
    page = server.get(f"/lab/tree/{LESSON}")
    found += [f"JupyterLab's extension {name} is not installed" for name in FRONT_ENDS if f'"{name}"' not in page]
    return found


def main() -> None:
    """Do what the command line says."""
    if sys.argv[1:] == ["open"]:
        sys.exit(open_lab())
    if sys.argv[1:] != ["check"]:
        sys.exit(__doc__)
    try:
        check_lab()
    except ServerError as error:
        sys.exit(f"lab-check: {error}")


if __name__ == "__main__":
    main()
