"""NumPy arrays that a cell changes in place: in the graph a tensor stands for the array, and tensors do not change.

`arr += 1` is made up for: the array gets the sum after the run. `arr.sort()` is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core.spec import TensorSpec
from limelight_kernel.cell.compiled_cell import StagedSyntaxError

_METHODS: Final = frozenset(["sort", "fill", "partition", "put", "resize", "itemset", "setfield", "byteswap"])
_IN_PLACE: Final = frozenset(["shuffle", "copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"])


class ArrayChanges(NamedTuple):
    """The names that a cell changes in place if they are arrays: by statements that are calls, by `+=` and the like."""

    calls: tuple[tuple[str, ast.Expr], ...]
    augmented: Mapping[str, ast.AugAssign]


def array_changes(tree: ast.Module) -> ArrayChanges:
    """Reads a cell.

    >>> found = array_changes(ast.parse("a.sort(); np.random.shuffle(b); c += 1; d = d + 0; d += 1"))
    >>> [name for name, _ in found.calls], sorted(found.augmented)
    (['a', 'b'], ['c'])
    """
    calls = [
        (name, node) for node in ast.walk(tree) if isinstance(node, ast.Expr) and (name := _changed_by(node.value))
    ]
    augmented = {
        x.target.id: x for x in ast.walk(tree) if isinstance(x, ast.AugAssign) and isinstance(x.target, ast.Name)
    }
    again = {id(x.target) for x in ast.walk(tree) if isinstance(x, ast.AugAssign)}
    bound = {
        x.id for x in ast.walk(tree) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) and id(x) not in again
    }
    only_augmented = {name: node for name, node in augmented.items() if name not in bound}
    return ArrayChanges(tuple(calls), only_augmented)


def shared(code: str, other: str) -> str:
    """What is said of code that changes an array whose memory can be reached in another way."""
    return (
        f"`{code}` changes a NumPy array in place whose memory `{other}` shares; in a staged cell each is a "
        f"tensor of its own, and `{other}` would stay as it is. Put that line into a cell above"
    )


def changed_elsewhere(other: str, own: str) -> str:
    """What is said of code that changes an array itself, where a tensor stands for the same memory."""
    return (
        f"the cell changes the NumPy array `{other}` in place, which shares memory with its input `{own}`; in a staged "
        f"cell a tensor stands for `{own}`, which would stay as it is. Make that change in a cell above"
    )


def refuse_casts(
    changes: ArrayChanges,
    made: Mapping[str, TensorSpec],
    values: Mapping[str, Any],
    filename: str,
    lines: list[str],
    header: int,
) -> None:
    """Raises StagedSyntaxError where an array cannot take what is computed for it, as NumPy refuses it.

    Args:
        changes: what the cell does.
        made: the type of what each array is to hold.
        values: what the cell's inputs mean.
        filename: of its code.
        lines: of its text.
        header: how many lines stand above these.
    """  # fmt: skip
    for name, spec in made.items():
        array, statement = values[name], changes.augmented[name]
        fits = None in spec.shape or spec.shape == array.shape
        if not fits or not np.can_cast(spec.dtype, array.dtype, "same_kind"):
            anew = ast.unparse(ast.BinOp(statement.target, statement.op, statement.value))
            message = (
                f"`{ast.unparse(statement)}`: the NumPy array `{name}` of {array.dtype}{list(array.shape)} cannot take "
                f"the result, which is {spec}; NumPy refuses that, too. Write `{name} = {anew}` for a new array"
            )
            raise StagedSyntaxError(message, (filename, statement.lineno, 1, lines[statement.lineno - header - 1]))


def _changed_by(call: ast.expr) -> str:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return ""
    changed: Any = call.args[0] if call.func.attr in _IN_PLACE and len(call.args) else None
    if call.func.attr in _METHODS and isinstance(call.func.value, ast.Name):
        changed = (
            changed if isinstance(changed, ast.Name) and call.func.value.id in ("np", "numpy") else call.func.value
        )
    return changed.id if isinstance(changed, ast.Name) else ""


def refuse_calls(
    changes: ArrayChanges, values: Mapping[str, Any], filename: str, lines: list[str], header: int
) -> None:
    """Raises StagedSyntaxError for a call that changes an array in place.

    Args:
        changes: what the cell does.
        values: what its inputs mean.
        filename: of its code.
        lines: of its text.
        header: how many lines stand above these.
    """
    for name, node in changes.calls:
        if isinstance(values.get(name), np.ndarray):
            code = ast.unparse(node)
            instead = f"write `{name} = ll.sort({name})` here" if ".sort(" in code else "make a new tensor here"
            message = (
                f"`{code}` changes the NumPy array `{name}` in place; in a staged cell a tensor stands for it, and the "
                f"array would stay as it is. Put that line into a cell above, or {instead}"
            )
            raise StagedSyntaxError(
                message, (filename, node.lineno, node.col_offset + 1, lines[node.lineno - header - 1])
            )
