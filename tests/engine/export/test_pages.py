"""The examples of docs/saving.md and docs/checkpoints.md run, and say what stands behind them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["saving.md", "checkpoints.md"])
def test_the_examples_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    examples = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert examples
    for code in examples:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, page, "exec"), names)
        for value, said in re.findall(r"^(\S.*?)  # (\(.*\)|\[.*\]|\d+)$", code, flags=re.MULTILINE):
            assert eval(value, names) == eval(said, names), value
