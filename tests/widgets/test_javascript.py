"""The JavaScript of the views: the committed bundle was made from the sources that are here.

Their own tests are no part of these: `make javascript-test` runs them, with the types, beside mypy.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from limelight_widgets import VIEWS

ROOT = Path(__file__).parents[2] / "widgets"
JS = ROOT / "js"
STATIC = ROOT / "limelight_widgets" / "static"
NODE = shutil.which("node")
SCRIPTS = [f"{view.name}.js" for view in VIEWS]
SMALL = (*SCRIPTS, "view.js", "views.css")

needs_node = pytest.mark.skipif(NODE is None, reason="no Node.js here (`node` is not on the path)")


def test_the_bundle_was_made_from_these_sources():
    made_from = json.loads((STATIC / "build.json").read_text(encoding="utf-8"))
    files = [*(path for path in (JS / "src").rglob("*") if path.is_file()), JS / "build.mjs", JS / "package-lock.json"]
    here = {path.relative_to(JS).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert made_from == here, "run `npm ci && npm run build` in widgets/js, and commit the bundle"


def test_the_bundle_is_complete_and_reaches_for_nothing():
    for name in ("engine.js", *SMALL):
        text = (STATIC / name).read_text(encoding="utf-8")
        assert text.strip()
        assert "https://cdn" not in text
        assert "@import" not in text
        assert "sourceMappingURL" not in text
    size = sum((STATIC / name).stat().st_size for name in SMALL)
    assert size < 215_000  # eight views; the layout engine is 16,000 of its own


def test_every_view_has_its_script_and_no_script_is_without_a_view():
    assert {path.name for path in STATIC.glob("*.js")} == {"engine.js", "view.js", "player_steps.js", *SCRIPTS}
    assert {path.name for path in (JS / "src" / "views").iterdir()} == set(SCRIPTS)
    for view in VIEWS:
        assert view.widget_type.script_path == STATIC / f"{view.name}.js"


def test_the_lock_file_names_no_registry():
    lock = (JS / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert json.loads(lock)["lockfileVersion"] == 3


def test_there_are_tests_where_node_looks_for_them():
    """Else `node --test` finds none, and all is well."""
    assert len(list((JS / "test").glob("*.test.js"))) > 5


@needs_node
@pytest.mark.skipif(not (JS / "node_modules" / "esbuild").is_dir(), reason="no node_modules (npm ci in widgets/js)")
def test_building_again_gives_the_same_bundle():
    names = sorted(path.name for path in STATIC.iterdir() if path.suffix in {".js", ".css", ".json"})
    before = {name: (STATIC / name).read_bytes() for name in names}
    try:
        subprocess.run([NODE, "build.mjs"], cwd=JS, capture_output=True, check=True, timeout=500)
        after = {name: (STATIC / name).read_bytes() for name in names}
    finally:
        for name, content in before.items():
            (STATIC / name).write_bytes(content)
    assert [name for name in names if after[name] != before[name]] == []
