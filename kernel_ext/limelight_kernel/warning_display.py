"""Limelight's warnings, broken at words: JupyterLab breaks what goes to stderr wherever a line is full.

In a notebook they are displayed, as text and as HTML; in a terminal they go to stderr, as wide as that is. All other
warnings, and those that somebody records or sends to a file, are left to Python.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from html import escape
from typing import Any, Final

from IPython.display import display

from limelight.errors import RetracingWarning
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import is_ours
from limelight_kernel.cell.cell_warnings import StagedCellWarning
from limelight_kernel.magics.magic import text_width
from limelight_kernel.report.listing import wrapped
from limelight_widgets.figures.static_forms import marked
from limelight_widgets.live import front_end

KINDS: Final = (RetracingWarning, StagedCellWarning)
_STYLE = "border-left: 4px solid #e69f00; margin: 4px 0; padding: 2px 12px; overflow-wrap: break-word"
Show = Callable[..., Any]


def show_ours() -> tuple[Show, Show]:
    """From now on limelight's warnings are shown so; what showed them before, and what does now, for `as_before`."""
    before = warnings.showwarning

    def show(
        message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        if file is not None or not (issubclass(category, KINDS) or is_ours(message)):
            before(message, category, filename, lineno, file, line)
            return
        _show(f"{Source(filename, lineno, '').label}:{lineno}", category.__name__, str(message))

    warnings.showwarning = show
    return before, show


def as_before(before: Show, ours: Show) -> None:
    """Takes it back, but not what somebody else has put in its place."""
    if warnings.showwarning is ours:
        warnings.showwarning = before


def _show(place: str, kind: str, said: str) -> None:
    text = wrapped(f"{place}: {kind}: {said}", text_width())
    if getattr(front_end.shell(), "kernel", None) is None:
        sys.stderr.write(f"{text}\n")
        return
    html = f'<div style="{_STYLE}"><strong>{escape(kind)}</strong> at {escape(place)}: {marked(said)}</div>'
    display({"text/plain": text, "text/html": html}, raw=True)
