"""The guide: its pages run and print what they say, every link of the docs leads somewhere, tables are as written."""

from __future__ import annotations

import contextlib
import gc
import io
import re
import urllib.parse
import warnings
from pathlib import Path
from typing import Any

import pytest

import guide_pictures
import names_pages

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(path.name for path in GUIDE.glob("*.md"))
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s]+)\)")
_TIME = re.compile(r"Cost [\d.]+ m?s")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page_runs_and_prints_what_is_said(name, tmp_path, monkeypatch):
    page = GUIDE / name
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    printed, said = io.StringIO(), ""
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")  # as in the pages: what is warned of is told in their text
        gc.collect()  # what other tests have left would be freed while a page measures what is live
        for block in _BLOCK.finditer(text):
            kind, code = block.groups()
            if kind == "console":
                said += code
                continue
            above = "\n" * (text.count("\n", 0, block.start()) + 1)  # lines have the page's numbers
            exec(compile(above + code, str(page), "exec"), names)
    assert _TIME.sub("Cost", printed.getvalue()) == _TIME.sub("Cost", said)


def test_each_page_has_a_picture():
    shown = {page for page, _ in guide_pictures.PICTURES.values()}
    assert [name for name in PAGES if f"docs/guide/{name}" not in shown] == ["README.md", "glossary.md"]


def test_each_page_is_listed():
    listed = _LINK.findall((GUIDE / "README.md").read_text(encoding="utf-8"))
    assert set(PAGES) - {"README.md"} <= set(listed)
    assert "docs/guide/README.md" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", names_pages.PAGES)
def test_tables_of_names_are_as_the_hints(name):
    written = (GUIDE / name).read_text(encoding="utf-8")
    assert written == names_pages.page(name), "run `python scripts/names_pages.py`"
    assert written.count("\n| `") > 200


def test_every_link_of_the_docs_leads_to_a_file_and_a_heading():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    broken = [f"{page.relative_to(ROOT)}: {link}" for page in pages for link in _broken_links(page)]
    assert not broken


def _broken_links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = []
    for link in _LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        path, _, heading = link.partition("#")
        target = (page.parent / urllib.parse.unquote(path)).resolve() if path else page
        if not target.exists() or (heading and heading not in _anchors(target)):
            found.append(link)
    return found


def _anchors(page: Path) -> set[str]:
    """The headings of a page, as a browser's address has them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_pictures_of_the_guide_are_small_and_shown():
    for name, (page, _) in guide_pictures.PICTURES.items():
        assert f"images/{name})" in (ROOT / page).read_text(encoding="utf-8")
        assert (ROOT / "docs" / "images" / name).stat().st_size < 20_000


def test_the_lines_that_a_picture_names_are_those_of_its_page():
    for name, (page, _) in guide_pictures.PICTURES.items():
        files = set(re.findall(r"\w+\.(?:md|py)\b", (ROOT / "docs" / "images" / name).read_text(encoding="utf-8")))
        assert files <= {Path(page).name}, name


def test_a_picture_is_drawn_of_what_its_page_makes(tmp_path):
    drawn = guide_pictures.draw("guide_gradients.svg", tmp_path).read_text(encoding="utf-8")
    assert "Gradient tape" in drawn
