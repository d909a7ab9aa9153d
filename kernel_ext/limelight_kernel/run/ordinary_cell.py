"""Runs a cell as an ordinary one, for magics that only look on."""

from __future__ import annotations

import ast
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from limelight_kernel.cell.cell_source import lines_above, register, show_as_typed
from limelight_kernel.cell.compiled_cell import parse_cell
from limelight_kernel.tracebacks import runs_cells, trim

runs_cells(__file__)


def run_ordinary(shell: InteractiveShell, magic: str, line: str, cell: str) -> Any:
    """Runs a cell; returns the value of its last expression. Errors show the user's frames only.

    Args:
        shell: whose namespace the code runs in.
        magic: the name of the magic above it.
        line: what stands on the line of the magic.
        cell: the text below it.
    """
    __tracebackhide__ = True
    show_as_typed(shell)
    above = lines_above(shell, line, cell, magic)
    filename = register(shell, cell, above)
    try:
        return _executed(shell, cell, filename, len(above))
    except BaseException as error:
        trim(shell, error, filename)
        raise


def _executed(shell: InteractiveShell, cell: str, filename: str, header: int) -> Any:
    __tracebackhide__ = True
    tree = shell.transform_ast(parse_cell(shell.transform_cell(cell), filename, header))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, filename, "exec", dont_inherit=True), shell.user_global_ns, shell.user_ns)
    if last is None:
        return None
    return eval(
        compile(ast.Expression(last.value), filename, "eval", dont_inherit=True), shell.user_global_ns, shell.user_ns
    )
