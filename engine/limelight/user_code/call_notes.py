"""Notes on Python's own errors for calls of limelight's functions that do not fit them.

A keyword of another library's, too many arguments by place, an operand by name, a size that is called: Python says what
is wrong, and the note what to write. They are added where limelight sees an error pass: at the end of a trace, of a
script or a thread, of a cell.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
from types import FrameType, MethodType, ModuleType
from typing import Any, Final

from limelight.errors import LimelightError
from limelight.user_code import equivalents, source_line
from limelight.user_code.definitions import parsed_expression
from limelight.user_code.hints import add_note

_MISFIT: Final = re.compile(
    r"([\w.<>]+)\(\) (?:got an unexpected keyword argument '(?P<keyword>\w+)'"
    r"|got some positional-only arguments passed as keyword arguments: '(?P<by_place>[\w, ]+)'"
    r"|takes .*positional arguments? but .* given|missing \d+ required .*argument)"
)
_NOT_CALLABLE: Final = re.compile(r"'\w+' object is not callable$")
_NO_ITEMS: Final = "'Dataset' object is not subscriptable"
_ATTRIBUTES: Final = {
    "size": "write x.size for all elements, x.shape[i] along an axis",
    "shape": "write x.shape",
    "ndim": "write x.ndim",
    "dtype": "write x.dtype",
    "device": "write x.device",
    "T": "write x.T",
    "mT": "write x.mT",
    "variables": "write module.variables",
    "trainable_variables": "write module.trainable_variables",
}
_OTHERS: Final = {
    "where": "With a condition alone write ll.nonzero(condition), or ll.argwhere(condition)",
    "concat": "The tensors are one argument, a list or tuple: concat([x, y])",
    "stack": "The tensors are one argument, a list or tuple: stack([x, y])",
    "Progress.show": "Values are given by name: show(loss=loss), or show(**values) of a dictionary",
    "Layer.weight": ", which makes variables; a layer has them as kernel, bias, table: write layer.kernel.shape",
    "scatter": "To set elements along an axis, as torch.scatter, write ll.put_along_axis(x, indices, values, axis)",
    "to": "A device alone is given to it: write x.to(device).astype(dtype)",
    "split": "The number of parts, or their sizes, come second",
}


def note_call(error: BaseException) -> None:
    """Adds a note to a TypeError of Python's for a call of a function of limelight's, if it is one."""
    if isinstance(error, AttributeError) and inspect.isfunction(error.obj):
        _note_method(error, error.obj)
    if not isinstance(error, TypeError) or isinstance(error, LimelightError) or error.__traceback__ is None:
        return
    said = str(error)
    match = _MISFIT.match(said)
    if match is None and not _NOT_CALLABLE.match(said) and said != _NO_ITEMS:
        return
    tb = error.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    if said == _NO_ITEMS:
        note = _of_item(tb.tb_frame, tb.tb_lasti)
    else:
        note = _of_misfit(match, tb.tb_frame, tb.tb_lasti) if match else _of_attribute(tb.tb_frame, tb.tb_lasti)
    if note:
        add_note(error, note)


def _note_method(error: AttributeError, function: Any) -> None:
    """For `layer.weight.shape`: Python calls the method a function, and says no more."""
    owner, _, name = function.__qualname__.rpartition(".")
    if source_line.is_engine(function.__code__) and owner:
        add_note(error, f"{owner}.{name} is a method{_OTHERS.get(f'{owner}.{name}', '')}")


def _of_misfit(match: re.Match[str], frame: FrameType, instruction: int) -> str:
    """What to write where the arguments do not fit."""
    function = _called(frame, instruction, match[1])
    if function is None or not (source_line.is_engine(function.__code__) or _is_made(function)):
        return ""
    name, signature = _form(function)
    if match["keyword"]:
        hint = equivalents.keyword_hint(name, match["keyword"], signature.parameters)
    elif match["by_place"]:
        hint = f"{match['by_place']} are given by place, without a name"
    else:
        hint = _OTHERS.get(function.__qualname__, "")
        if function.__module__.startswith("limelight.random."):
            hint = f"A generator is no argument; draws are its methods: generator.{name}(...)"
    return f"{hint[:1].upper()}{hint[1:]}. Its form: {name}{signature}" if hint else f"Its form: {name}{signature}"


def _is_made(function: Any) -> bool:
    """Whether it is the constructor of a dataclass of limelight's, which comes from no file."""
    return function.__name__ == "__init__" and str(function.__module__).startswith("limelight.")


def _form(function: Any) -> tuple[str, inspect.Signature]:
    """The name of a function, that of the class for a constructor, and its parameters, without types and `self`."""
    parameters = list(inspect.signature(function).parameters.values())
    owner, _, name = function.__qualname__.rpartition(".")
    if parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    kept = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return (owner if name in ("__init__", "__new__") else name), inspect.Signature(kept)


def _of_attribute(frame: FrameType, instruction: int) -> str:
    """What to write for `x.size()`."""
    call = _call(frame, instruction)
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr not in _ATTRIBUTES:
        return ""
    holder = _value(call.func.value, frame)
    if holder is not None and not type(holder).__module__.startswith("limelight."):
        return ""
    return f"In limelight {call.func.attr} is no function: {_ATTRIBUTES[call.func.attr]}"


def _of_item(frame: FrameType, instruction: int) -> str:
    """What to write for `dataset[0]`."""
    text = source_line.segment(frame.f_code, instruction)
    node = None if text is None else parsed_expression(text)
    holder = _value(node.value, frame) if isinstance(node, ast.Subscript) else None
    if holder is not None and not type(holder).__module__.startswith("limelight."):
        return ""
    return "Datasets are gone over: write next(iter(dataset)) for the first element, list(dataset.take(n)) for some"


def _call(frame: FrameType, instruction: int) -> ast.Call | None:
    """The call that an instruction of `frame` is part of."""
    text = source_line.segment(frame.f_code, instruction)
    node = None if text is None else parsed_expression(text)
    return node if isinstance(node, ast.Call) else None


def _called(frame: FrameType, instruction: int, said: str) -> Any:
    """The Python function that an instruction of `frame` calls, and Python calls `said`; None where it is unknown."""
    call = _call(frame, instruction)
    if call is None:
        return None
    function = _value(call.func, frame)
    if function is None and isinstance(call.func, ast.Attribute):  # of a result, whose class Python names
        function = inspect.getattr_static(_class_named(said.rpartition(".")[0]), call.func.attr, None)
    if inspect.isclass(function):
        function = inspect.getattr_static(function, said.rpartition(".")[2], None)
    if isinstance(function, MethodType):
        function = function.__func__
    return function if inspect.isfunction(function) and function.__qualname__ == said else None


def _class_named(name: str) -> Any:
    """The engine's class of that name, as far as it is imported; without one Tensor, whose methods ops attach."""
    modules = [module for home, module in list(sys.modules.items()) if home.partition(".")[0] == "limelight"]
    classes = [vars(module).get(name or "Tensor") for module in modules]
    return next(filter(inspect.isclass, classes), None)


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What a dotted name is in `frame`; None where it is another expression, or a property, which may do anything."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    value = {**vars(builtins), **frame.f_globals, **source_line.locals_of(frame)}.get(node.id)
    for name in names:
        home = value if isinstance(value, ModuleType) or inspect.isclass(value) else type(value)
        value = inspect.getattr_static(home, name, None)
    return value
