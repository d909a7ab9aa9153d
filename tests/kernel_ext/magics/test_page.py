"""docs/magics.md, which is written from the parsers."""

from __future__ import annotations

import magics_page


def test_the_page_is_as_the_magics_are():
    written = magics_page.PAGE.read_text(encoding="utf-8")
    assert written == magics_page.page(), "run `python scripts/magics_page.py`"
