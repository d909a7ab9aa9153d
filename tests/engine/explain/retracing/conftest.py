"""Small programs that can be run, and run again with the fix that an explanation prints."""

from __future__ import annotations

import itertools
import linecache
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import limelight as ll
from limelight.explain.fix import Fix
from limelight.explain.retracing.sentence import Miss

sys.path.insert(0, str(Path(__file__).parent))  # makes `retracing_causes` importable
_names = itertools.count(1)


@dataclass
class Program:
    """A program that stages `f`, and ends with a call of it that may stand to be mended."""

    text: str
    names: dict[str, Any]

    @property
    def f(self) -> Any:
        return self.names["f"]

    @property
    def miss(self) -> Miss:
        return ll.explain.retrace(self.f).records[-1]

    def mended(self) -> str:
        """The text with the fixes of the newest trace applied as a reader would."""
        lines = self.text.splitlines()
        for fix in self.miss.fixes:
            _apply(fix, lines)
        return "\n".join(lines)


@pytest.fixture
def program() -> Iterator[Callable[[str], Program]]:
    """Runs a program given as text. Retracing is what these programs are about, so its warning is silent."""
    files = []

    def run(text: str) -> Program:
        text = textwrap.dedent(text).strip() + "\n"
        file = f"program{next(_names)}.py"
        files.append(file)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        names: dict[str, Any] = {"ll": ll, "__name__": "program"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ll.errors.RetracingWarning)
            exec(compile(text, file, "exec"), names)
        return Program(text, names)

    yield run
    for file in files:
        linecache.cache.pop(file, None)


def _apply(fix: Fix, lines: list[str]) -> None:
    if fix.code.startswith("@ll.function"):
        lines[_only(lines, "@ll.function")] = fix.code
    elif fix.place == "once, before the loop,":
        lines.insert(_only(lines, "for "), fix.code)
    elif fix.place == "before the call":
        at = _call(lines)
        indent = len(lines[at]) - len(lines[at].lstrip())
        lines.insert(at, " " * indent + fix.code)
    else:
        at = _call(lines)
        lines[at:] = (lines[at][: lines[at].index("f(")] + fix.code).splitlines()


def _only(lines: list[str], start: str) -> int:
    (at,) = [i for i, line in enumerate(lines) if line.startswith(start)]
    return at


def _call(lines: list[str]) -> int:
    """The line that calls f: the last one that mentions it and does not define it."""
    return max(i for i, line in enumerate(lines) if "f(" in line and "def " not in line)
