"""The examples of docs/data.md run, and print what stands behind them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")


def test_the_examples_run_and_print_what_is_said() -> None:
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        for code in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
            exec(compile(code, "data.md", "exec"), names)
    assert printed.getvalue() == "".join(re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL))


def test_the_example_with_grain_runs_where_it_is_installed() -> None:
    pytest.importorskip("grain")
    (code,) = re.findall(r"```py\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "data.md", "exec"), {})
