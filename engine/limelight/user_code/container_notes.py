"""Notes on Python's own errors where a container was taken for a tensor, or a tensor for a container.

A list of tensors that is computed with like a tensor: an argument `[1.0, 2.0]` of a staged or differentiated function
is a container of two tensors. The one result of a recurrent layer, that is unpacked like other libraries' pair. A
dataset that is taken for one of its elements, or for the iterator over them.
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
_NO_ITERATOR: Final = "'Dataset' object is not an iterator"
_STATE_ALONE: Final = ("GRUCell", "RNNCell")
_OUTPUT_ALONE: Final = ("LSTM", "GRU", "RNN", "Bidirectional")
_FIRST: Final = "next(iter(dataset))"


def note_container(error: BaseException) -> None:
    """Adds a note to a TypeError or ValueError of Python's, if a container was taken for what it is not."""
    tb = error.__traceback__
    if tb is None or type(error) not in (TypeError, ValueError):
        return
    while tb.tb_next is not None:
        tb = tb.tb_next
    said = str(error)
    if type(error) is TypeError and said.startswith(_OPERANDS):
        note = _of_list(tb.tb_frame, tb.tb_lasti)
    elif type(error) is TypeError and said == _NO_ITERATOR:
        note = (
            "A dataset may be gone over again and again, and each iterator is a pass: write batches = iter(dataset) "
            f"before the loop and next(batches) in it, {_FIRST} for the first element alone"
        )
    elif type(error) is ValueError and said.startswith(_UNPACKED):
        note = _of_unpacked(tb.tb_frame, tb.tb_lineno)
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


def _of_unpacked(frame: FrameType, line: int) -> str:
    """What to write for `y, h = cell(x, h)`, for `x, y = dataset`."""
    try:
        (statement,) = ast.parse(linecache.getline(frame.f_code.co_filename, line).strip()).body
    except (SyntaxError, ValueError):
        return ""
    if not isinstance(statement, ast.Assign):
        return ""
    if isinstance(statement.value, ast.Call):
        return _of_result(statement.value, _value(statement.value.func, frame))
    value, name = _value(statement.value, frame), ast.unparse(statement.value)
    if not type(value).__module__.startswith("limelight."):
        return ""
    if type(value).__name__ == "Dataset":
        return f"{name} is a dataset, not an element of one: write {_FIRST.replace('dataset', name)}, or go over it"
    if hasattr(type(value), "_uid"):
        return f"{name} is one tensor, {value.spec}, and unpacking goes over its first axis"
    return ""


def _of_result(call: ast.Call, layer: Any) -> str:
    """What to write where the one result of a recurrent layer or cell was unpacked."""
    kind, text = type(layer), ast.unparse(call)
    if getattr(layer, "__qualname__", "") == "clip_by_global_norm" and layer.__module__.startswith("limelight."):
        return "The gradients are returned alone: their norm is ll.optim.global_norm(gradients)"
    if not kind.__module__.startswith("limelight."):
        return ""
    if kind.__name__ in _STATE_ALONE:
        return f"A {kind.__name__} returns one tensor, its next state, which is its output as well: write h = {text}"
    if kind.__name__ in _OUTPUT_ALONE and not getattr(getattr(layer, "forward", layer), "return_state", True):
        return (
            f"{ast.unparse(call.func)} returns its output alone, without a state: write y = {text}, or make it with "
            "return_state=True"
        )
    return ""


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
