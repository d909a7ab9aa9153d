"""Where in the user's code are we?

A position is found by walking the Python stack past every frame that belongs to limelight itself. In a notebook the
file name of a code object means nothing to a reader, so the notebook extension installs a namer that turns it into
the label of a cell ("In[3]").
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import NamedTuple

CellNamer = Callable[[str], str | None]

_ENGINE_ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep
GENERATED_PREFIX = "<limelight "
"""Code that limelight writes (plans, wrapped cells) is compiled under file names that begin so."""

_is_library: dict[CodeType, bool] = {}
_hidden_roots: list[str] = [_ENGINE_ROOT]
_cell_namer: CellNamer | None = None


class Source(NamedTuple):
    """A line of the user's code.

    `file` is the code object's file name, `line` counts from 1, `function` is the enclosing function's name.
    """

    file: str
    line: int
    function: str

    @property
    def label(self) -> str:
        """What a reader calls the file: "In[3]" for a notebook cell, else the file's last name."""
        named = _cell_namer(self.file) if _cell_namer is not None else None
        return named if named is not None else os.path.basename(self.file)

    @property
    def text(self) -> str:
        """The line of code, stripped; empty where the source cannot be had."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.label} line {self.line}"


def set_cell_namer(namer: CellNamer | None) -> CellNamer | None:
    """Installs `namer`, which maps a code object's file name to a cell's label or None; returns the previous one."""
    global _cell_namer
    previous, _cell_namer = _cell_namer, namer
    return previous


def hide(folder: str) -> None:
    """Treats the code under `folder` as part of the library: its frames are not the user's."""
    _hidden_roots.append(os.path.join(os.path.abspath(folder), ""))
    _is_library.clear()


def is_library(code: CodeType) -> bool:
    """Whether `code` belongs to limelight rather than to the user."""
    known = _is_library.get(code)
    if known is None:
        name = code.co_filename
        known = name.startswith(GENERATED_PREFIX) or name.startswith(tuple(_hidden_roots))
        if len(_is_library) > 10_000:  # code objects made in a loop must not be kept for ever
            _is_library.clear()
        _is_library[code] = known
    return known


def user_stack(limit: int = 8) -> tuple[Source, ...]:
    """The user's frames, innermost first, at most `limit` of them."""
    found: list[Source] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < limit:
        code = frame.f_code
        if not is_library(code):
            found.append(Source(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(found)


def user_line() -> Source | None:
    """The innermost frame of the user's, or None when there is none (a library thread)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_library(code):
            return Source(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


def at(source: Source | None) -> str:
    """`source` as a suffix for a message: " (In[3] line 4: y = x @ w)", or nothing."""
    if source is None:
        return ""
    text = source.text
    if len(text) > 80:
        text = text[:77] + "..."
    return f" ({source}: {text})" if text else f" ({source})"
