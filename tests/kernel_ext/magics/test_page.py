"""docs/magics.md, which is written from the parsers."""

from __future__ import annotations

import importlib
import re

import magics_page


def test_the_page_is_as_the_magics_are():
    written = magics_page.PAGE.read_text(encoding="utf-8")
    assert written == magics_page.page(), "run `python scripts/magics_page.py`"


def test_what_it_names_in_python_is_there():
    for line in re.findall(r"^From Python: `(.*)`$", magics_page.PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        for module, name in re.findall(r"\b(limelight[\w.]*)\.(\w+)", line):
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
