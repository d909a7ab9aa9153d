"""Build or test the JavaScript of the views: `python scripts/javascript.py build|test`.

The built bundle is committed, so that nobody needs Node to use Limelight. Without Node, `test` says that it is skipped
and succeeds, and `build` fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "widgets" / "js"


def main() -> None:
    """Do what the command line says."""
    if sys.argv[1:] not in (["build"], ["test"]):
        sys.exit(__doc__)
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        without_node(sys.argv[1])
        return
    install(npm)
    for script in {"build": ["build"], "test": ["types", "test"]}[sys.argv[1]]:
        subprocess.run([npm, "run", "--silent", script], cwd=SOURCES, check=True)


def without_node(task: str) -> None:
    """Say so; exits with a failure where the task cannot do without."""
    reason = "there is no Node on the path (install Node.js 20 or newer)"
    if task == "build":
        sys.exit(f"JavaScript not built: {reason}")
    print(f"JavaScript tests skipped: {reason}")


def install(npm: str) -> None:
    """`npm ci`, unless it was done since the lock file changed."""
    lock, mark = SOURCES / "package-lock.json", SOURCES / "node_modules" / ".package-lock.json"
    if not mark.exists() or mark.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=SOURCES, check=True)


if __name__ == "__main__":
    main()
