"""A cell as the body of a function, for what reads code: nobody ever calls it.

Those are `explain.side_effects` and `explain.baked`. What the cell reads by name is an input of it, in its helpers
too, so only attributes of its objects are baked in; they are compared on the object that the trace has
(`explain.tracing.snapshot`).
"""

from __future__ import annotations

import ast
from types import CodeType, FunctionType
from typing import Any

from limelight_kernel.cell.compiled_cell import Cell


def as_function(cell: Cell, namespace: dict[str, Any]) -> FunctionType | None:
    """A function with the statements of `cell` on their own lines, whose globals are the notebook's names.

    What the cell assigns are its local names. None for the rare cell that no function can hold.
    """
    module = ast.parse("def cell(): pass", cell.filename)
    definition = module.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.body = list(cell.tree.body) or definition.body
    try:
        code = compile(module, cell.filename, "exec", dont_inherit=True)
    except SyntaxError:
        return None
    inner = next(constant for constant in code.co_consts if isinstance(constant, CodeType))
    return FunctionType(inner.replace(co_name="<module>"), namespace)
