"""The annotated cell of a run that was refused: the line that was, with what had been traced above it."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING, Any, Final

from limelight.errors import ControlFlowError, LeakedTensorError, StateCreationError, SymbolicValueError, TapeError
from limelight_kernel.cell.compiled_cell import StagedSyntaxError
from limelight_kernel.report.line_marks import annotate_refused
from limelight_kernel.report.listing import NONE, html_legend, html_listing, text_listing

if TYPE_CHECKING:
    from limelight.graph import Graph
    from limelight_kernel.cell.compiled_cell import Cell

_REFUSALS: Final = (
    *(ControlFlowError, LeakedTensorError, StagedSyntaxError, StateCreationError, SymbolicValueError, TapeError),
)
_PLACE: Final = re.compile(r"In\[\d+\] line (\d+)")


class RefusedCell:
    """The lines of a cell, one of which is marked as refused.

    Args:
        cell: the cell.
        line: the number of that line.
        traced: the graph as far as it was traced, None where tracing has not begun.
    """

    def __init__(self, cell: Cell, line: int, traced: Graph | None) -> None:
        self.lines = annotate_refused(cell, traced, line)

    def __repr__(self) -> str:
        return text_listing(self.lines)

    def _repr_html_(self) -> str:
        return html_listing(self.lines, stories=NONE) + html_legend(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """The lines, ready for JSON."""
        return {"lines": [line.to_dict() for line in self.lines]}


def refused_cell(error: BaseException, cell: Cell, traced: Graph | None) -> RefusedCell | None:
    """The cell with its refused line, if `error` is a refusal, and of one of its lines."""
    line = _line(error, cell) if isinstance(error, _REFUSALS) else 0
    return RefusedCell(cell, line, traced) if line else None


def _line(error: BaseException, cell: Cell) -> int:
    """The line of the cell on which it was refused; 0 where that is not known."""
    if isinstance(error, SyntaxError) and error.filename == cell.filename:
        return error.lineno or 0
    through = [n for frame, n in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == cell.filename]
    said = _PLACE.search(str(error))
    return through[-1] if through else int(said[1]) if said else 0
