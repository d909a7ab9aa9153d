"""Notes on Python's own errors where a container was taken for a tensor, or a tensor for a container.

A list of tensors that is computed with like a tensor: an argument `[1.0, 2.0]` of a staged or differentiated function
is a container of two tensors. The state of a recurrent cell, one tensor, that is unpacked like other libraries' pair.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from types import FrameType
from typing import Any, Final

from limelight.user_code import source_line
from limelight.user_code.definitions import parsed_expression
from limelight.user_code.hints import add_note

_OPERANDS: Final = ("unsupported operand type", "can't multiply sequence", "bad operand type for unary")
_UNPACKED: Final = ("too many values to unpack", "not enough values to unpack")
_STATE_ALONE: Final = ("GRUCell", "RNNCell")


def note_container(error: BaseException) -> None:
    """Adds a note to a TypeError or ValueError of Python's, if a list of tensors or a cell's state brought it about."""
    tb = error.__traceback__
    if tb is None or type(error) not in (TypeError, ValueError):
        return
    while tb.tb_next is not None:
        tb = tb.tb_next
    said = str(error)
    if type(error) is TypeError and said.startswith(_OPERANDS):
        note = _of_list(tb.tb_frame, tb.tb_lasti)
    elif type(error) is ValueError and said.startswith(_UNPACKED):
        note = _of_state(tb.tb_frame, tb.tb_lineno)
    else:
        return
    if note:
        add_note(error, note)


def _of_list(frame: FrameType, instruction: int) -> str:
    """What to write for `x**2` of a list of tensors."""
    text = source_line.segment(frame.f_code, instruction)
    node = None if text is None else parsed_expression(text)
    operands = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    operands = [node.operand] if isinstance(node, ast.UnaryOp) else operands
    for operand in operands:
        value = _value(operand, frame)
        if type(value) in (list, tuple) and any(hasattr(type(x), "_uid") for x in value):
            name, kind = ast.unparse(operand), type(value).__name__
            return (
                f"{name} is a {kind} of tensors, each an argument of its own: give one tensor, as "
                f"ll.constant([1.0, 2.0]), or write ll.stack({name}) here"
            )
    return ""


def _of_state(frame: FrameType, line: int) -> str:
    """What to write for `y, h = cell(x, h)`."""
    try:
        (statement,) = ast.parse(linecache.getline(frame.f_code.co_filename, line).strip()).body
    except (SyntaxError, ValueError):
        return ""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return ""
    kind = type(_value(statement.value.func, frame))
    if kind.__name__ not in _STATE_ALONE or not kind.__module__.startswith("limelight."):
        return ""
    call = ast.unparse(statement.value)
    return f"A {kind.__name__} returns one tensor, its next state, which is its output as well: write h = {call}"


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What a dotted name is in `frame`, found without running code; None where it is another expression."""
    if isinstance(node, ast.Attribute):
        try:
            return object.__getattribute__(_value(node.value, frame), "__dict__").get(node.attr)
        except AttributeError:
            return None
    if not isinstance(node, ast.Name):
        return None
    return {**vars(builtins), **frame.f_globals, **source_line.locals_of(frame)}.get(node.id)
