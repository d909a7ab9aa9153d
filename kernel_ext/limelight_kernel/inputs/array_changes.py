"""NumPy arrays that a cell changes in place: in the graph a tensor stands for the array, and tensors do not change.

`arr += 1` is made up for: the array gets the sum after the run. `arr.sort()` is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import nest
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight_kernel.cell.compiled_cell import StagedSyntaxError

_MOST_WORK: Final = 10_000
"""Solutions that are tried to find out whether two arrays overlap: some 0.1 ms."""
_METHODS: Final = frozenset(["sort", "fill", "partition", "put", "resize", "itemset", "setfield", "byteswap"])
_IN_PLACE: Final = frozenset(["shuffle", "copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"])

_VIEWS: Final = frozenset(["reshape", "ravel", "squeeze", "transpose", "view", "swapaxes"])


class ArrayChanges(NamedTuple):
    """The names that a cell changes in place if they are arrays: by statements that are calls, by `+=` and the like."""

    calls: tuple[tuple[str, ast.Expr], ...]
    augmented: Mapping[str, ast.AugAssign]
    aliases: tuple[tuple[str, str, ast.AST], ...] = ()
    """The names of arrays, other names that mean the same or a part of it, and where these are changed by `+=`."""


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
    return ArrayChanges(tuple(calls), only_augmented, tuple(_aliases(tree)))


def _aliases(tree: ast.Module) -> list[tuple[str, str, ast.AST]]:
    """`b = a[1:]` or `b = a`, and `b += 1` further on; of each, `a`, `b` and the latter."""
    found: list[tuple[str, str, ast.AST]] = []
    changed = {
        x.target.id: x for x in ast.walk(tree) if isinstance(x, ast.AugAssign) and isinstance(x.target, ast.Name)
    }
    for node in ast.walk(tree):
        target, value = None, None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.For):
            target, value = node.target, ast.Subscript(node.iter, ast.Constant(0), ast.Load())
        if isinstance(target, ast.Name) and target.id in changed and value is not None:
            found.append((ast.unparse(value), target.id, changed[target.id]))
    return found


def _is_view(code: str, values: Mapping[str, Any]) -> str:
    """The name of the array that an expression, as code, gives a view of; empty for all else. It runs none of it."""
    tree = ast.parse(code, mode="eval").body
    axes_left = 0
    while not isinstance(tree, ast.Name):
        if isinstance(tree, ast.Subscript):
            keys = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
            if not all(_keeps_view(key, values) for key in keys):
                return ""  # an index of numbers or of an array, which copies
            axes_left += sum(not isinstance(key, ast.Slice) and getattr(key, "value", 0) is not None for key in keys)
            tree = tree.value
        elif isinstance(tree, ast.Attribute) and tree.attr == "T":
            tree = tree.value
        elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr in _VIEWS:
            tree = tree.func.value
        else:
            return ""
    array = values.get(tree.id)
    return tree.id if isinstance(array, np.ndarray) and array.ndim > axes_left else ""


def _keeps_view(key: ast.expr, values: Mapping[str, Any]) -> bool:
    """Whether an index gives a view: a slice, a number, or a name that means an integer or a tensor of one."""
    if not isinstance(key, ast.Name):
        return isinstance(key, ast.Slice | ast.Constant | ast.UnaryOp)
    number = values.get(key.id)
    if isinstance(number, Tensor):
        return number.shape == () and number.dtype.kind in "iu"
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _sharing(name: str, values: Mapping[str, Any]) -> str:
    """Another input with an array in it that has memory in common with the array `name`; empty for none."""
    array = values.get(name)
    if not isinstance(array, np.ndarray):
        return ""
    others = {other: x for other, x in values.items() if other != name and type(x) in (np.ndarray, list, tuple, dict)}
    for other, value in others.items():
        if any(isinstance(leaf, np.ndarray) and _overlap(leaf, array) for leaf in nest.leaves_of(value)):
            return other
    return ""


def _overlap(x: Any, y: Any) -> bool:
    """Whether arrays have an element in common; yes where that is too hard to say."""
    try:
        return np.shares_memory(x, y, max_work=_MOST_WORK)  # type: ignore[arg-type]  # NumPy's types know two numbers
    except np.exceptions.TooHardError:
        return True


def refuse_shared(
    changes: ArrayChanges, values: Mapping[str, Any], filename: str, lines: list[str], header: int
) -> None:
    """Raises StagedSyntaxError where `+=` changes an array whose memory another input shares; arguments as above."""
    for name, statement in changes.augmented.items():
        other = _sharing(name, values)
        if other:
            code = ast.unparse(statement)
            message = (
                f"`{code}` changes a NumPy array in place whose memory `{other}` shares; in a staged cell each is a "
                f"tensor of its own, and `{other}` would stay as it is. Put that line into a cell above"
            )
            raise StagedSyntaxError(message, (filename, statement.lineno, 1, lines[statement.lineno - header - 1]))


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
            message = (
                f"`{ast.unparse(statement)}`: the array `{name}` of {array.dtype}{list(array.shape)} cannot take the "
                f"result, which is {spec}; NumPy refuses that, too. Write `{name} = {name} ...` for a new array"
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
    for code, alias, node in changes.aliases:
        name = _is_view(code, values)
        if name and name != alias:
            line: Any = node
            text = ast.unparse(node)
            message = (
                f"`{text}` changes the NumPy array `{name}` in place, of which `{alias}` is another name or a part; in "
                f"a staged cell a tensor stands for it, and `{name}` would stay as it is. Write `{alias} = {alias} "
                f"{text.split()[1][:-1]} ...` for a new array, or put the line into a cell above"
            )
            raise StagedSyntaxError(message, (filename, line.lineno, 1, lines[line.lineno - header - 1]))
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
