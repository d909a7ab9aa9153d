"""What tests/conftest.py does for the people who read pytest's output."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAILS_FIRST = """
import pytest

def test_that_fails():
    raise KeyError("what went wrong")

@pytest.fixture
def broken():
    raise KeyError("what was missing")

def test_without_what_it_needs(broken): ...
def test_that_takes_long(): ...
"""


@pytest.mark.slow  # starts pytest
@pytest.mark.parametrize("options", [[], ["--numprocesses=1"]], ids=["in one process", "by a worker"])
def test_failures_are_shown_when_they_happen(tmp_path: Path, options: list[str]) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_all.py").write_text(FAILS_FIRST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", *options]
    said = subprocess.run([*command, tmp_path], cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    happening, _, _ = said.partition("[100%]")
    for test, reason in (("test_that_fails", "what went wrong"), ("test_without_what_it_needs", "what was missing")):
        heading = happening.index(f"test_all.py::{test}")
        assert heading < happening.index(f"KeyError: '{reason}'", heading)
    assert "2 failed" not in happening
    assert "1 passed, 1 failed, 1 error" in said or "1 failed, 1 passed, 1 error" in said


MANY = """
import pytest

@pytest.mark.parametrize("i", range(20))
def test_many(i): ...

@pytest.mark.parametrize("i", range(3))
def test_few(i): ...
"""


@pytest.mark.slow  # starts pytest
def test_thinned_runs_take_parameters_from_all_along_the_list(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_all.py").write_text(MANY)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--thin=4", f"--rootdir={tmp_path}"]
    said = subprocess.run([*command, tmp_path], cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    ran = re.findall(r"::(test_\w+\[\d+\]) PASSED", said)
    assert ran == [*[f"test_many[{i}]" for i in (0, 5, 10, 15)], *[f"test_few[{i}]" for i in range(3)]]
    assert "16 deselected" in said
