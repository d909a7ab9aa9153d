"""`%%tape`: runs a cell within gradient tapes, one inside the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from limelight.autodiff import GradientTape
from limelight_kernel.run.ordinary_cell import run_ordinary
from limelight_kernel.tracebacks import runs_cells

runs_cells(__file__)


def run_and_record(
    shell: InteractiveShell, line: str, cell: str, watched: Sequence[Any], persistent: bool, order: int
) -> tuple[Any, tuple[GradientTape, ...]]:
    """Runs a cell as an ordinary one; returns its value and the tapes that recorded it, the outermost first.

    Args:
        shell: whose namespace the code runs in.
        line: what stands on the line of the magic.
        cell: the text below it.
        watched: tensors and variables that the tapes watch.
        persistent: whether the tapes may be asked more than once.
        order: how many tapes; gradients that the outer ones can differentiate are computed in the cell.
    """
    __tracebackhide__ = True
    tapes = tuple([GradientTape(persistent=persistent) for _ in range(order)])
    with ExitStack() as stack:
        for tape in tapes:
            stack.enter_context(tape)
            tape.watch(list(watched))
        value = run_ordinary(shell, "tape", line, cell)
    return value, tapes
