"""docs/defining_ops.md: its snippets run in order, and print what it shows."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "defining_ops.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.filterwarnings("error")
def test_the_page_shows_what_its_snippets_print() -> None:
    scope: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for kind, text in BLOCKS:
        if kind == "text":
            assert printed.strip() == text.strip()
            printed = ""
            continue
        assert kind == "python"
        assert not printed, f"the page does not show:\n{printed}"
        linecache.cache["page.py"] = (len(text), None, text.splitlines(keepends=True), "page.py")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(text, "page.py", "exec"), scope)
        printed = out.getvalue()
    assert not printed
    assert len(BLOCKS) >= 16
