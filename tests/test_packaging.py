"""What a package index shows of the project, and what its source distribution holds."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
import tomllib
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_what_an_index_shows_has_no_relative_links():
    metadata = ProjectMetadata(str(ROOT), PluginManager())
    targets = re.findall(r"\]\(([^)]*)\)", metadata.core.readme)
    assert not [target for target in targets if "://" not in target]
    assert "![" not in metadata.core.readme
    assert metadata.core.authors


def test_classifiers_name_pythons_and_systems():
    classifiers = PROJECT["project"]["classifiers"]
    pythons = [c.rpartition(" :: ")[2] for c in classifiers if re.search(r"Python :: 3\.\d+$", c)]
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in pythons
    assert len([c for c in classifiers if c.startswith("Operating System")]) == 3


def test_extras_bring_what_some_code_imports():
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for home in ("engine", "benchmarks", "tests", "scripts")
        for path in (ROOT / home).rglob("*.py")
    )
    for package in ("ray", "onnx", "onnxruntime"):
        wanted = any(
            re.match(rf"{package}\b", r) for rs in PROJECT["project"]["optional-dependencies"].values() for r in rs
        )
        assert not wanted or re.search(rf"^\s*(import|from) {package}\b", sources, re.MULTILINE)


def test_the_source_distribution_holds_what_tests_read():
    included = {entry.strip("/") for entry in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    assert not [entry for entry in included if not (ROOT / entry).exists()]
    always = {"pyproject.toml", "LICENSE", ".git", ".gitignore"}
    known = {path.name for path in ROOT.iterdir() if path.name not in always}
    read = {name for path in (ROOT / "tests").rglob("*.py") for name in known if f'"{name}"' in path.read_text("utf-8")}
    generated = {name for name in known if name.startswith((".venv", "artefacts", "dist"))}
    assert read - generated <= included | {"LICENSE"}


def test_the_source_distribution_holds_the_site_where_it_was_built(tmp_path):
    project = tmp_path / "project"
    for name in ("pyproject.toml", "LICENSE", ".gitignore", "docs/package_index.md"):
        (project / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, project / name)
    assert not _site_in(project, tmp_path / "without")
    (project / "artefacts/docs/html").mkdir(parents=True)
    (project / "artefacts/docs/html/index.html").write_text("the site")
    (project / "artefacts/pytest.xml").write_text("no part of it")
    assert _site_in(project, tmp_path / "with") == ["artefacts/docs/html/index.html"]


def _site_in(project, folder):
    (archive,) = SdistBuilder(str(project)).build(directory=str(folder))
    with tarfile.open(archive) as packed:
        names = [name.partition("/")[2] for name in packed.getnames()]
    return [name for name in names if name.startswith("artefacts")]
