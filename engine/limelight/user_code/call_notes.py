"""Notes on Python's own errors for calls of limelight's functions that do not fit them.

A keyword of another library's, too many arguments by place, an operand by name, a size that is called: Python says what
is wrong, and the note what to write. They are added where limelight sees an error pass: at the end of a trace, of a
script or a thread, of a cell.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import inspect
import linecache
import re
import sys
from types import FrameType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from limelight.errors import LimelightError
from limelight.user_code import equivalents, source_line
from limelight.user_code.container_notes import note_container
from limelight.user_code.definitions import parsed_expression
from limelight.user_code.hints import add_note, suggested

_MISFIT: Final = re.compile(
    r"([\w.<>]+)\(\) (?:got an unexpected keyword argument '(?P<keyword>\w+)'"
    r"|got multiple values for argument '(?P<twice>\w+)'"
    r"|got some positional-only arguments passed as keyword arguments: '(?P<by_place>[\w, ]+)'"
    r"|takes .*positional arguments? but .* given|missing \d+ required .*argument)"
)
_NOT_CALLABLE: Final = re.compile(r"'[\w.]+' object is not callable$")
_OF_METHOD: Final = re.compile(r"unsupported operand type\(s\) for .*'(method|function)'")
_NO_CONTEXT: Final = re.compile(r"'\w+' object does not support the (asynchronous )?context manager protocol")
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
    "from_arrays": "The arrays are one argument: from_arrays((x, y)), or a dictionary of them",
    "where": "With a condition alone write ll.nonzero(condition), or ll.argwhere(condition)",
    "concat": "The tensors are one argument, a list or tuple: concat([x, y])",
    "stack": "The tensors are one argument, a list or tuple: stack([x, y])",
    "Progress.show": "Values are given by name: show(loss=loss), or show(**values) of a dictionary",
    "Layer.weight": "It makes variables; a layer has them as kernel, bias, table: write layer.kernel",
    "Layer.__call__": "It is called like its method `call`",
    "scatter": "To set elements along an axis, as torch.scatter, write ll.put_along_axis(x, indices, values, axis)",
    "to": "A device alone is given to it: write x.to(device).astype(dtype)",
    "switch": "Branches take no arguments: switch(index, [lambda: f(x), lambda: g(x)])",
    "split": "The number of parts, or their sizes, come second",
}


def note_call(error: BaseException) -> None:
    """Adds a note to a TypeError of Python's for a call of a function of limelight's, and does `note_container`."""
    note_container(error)
    if isinstance(error, AttributeError) and inspect.isfunction(error.obj):
        _note_method(error, error.obj)
    elif isinstance(error, AttributeError) and error.obj is None and error.__traceback__ is not None:
        _note_unbuilt(error)
    if not isinstance(error, TypeError) or isinstance(error, LimelightError) or error.__traceback__ is None:
        return
    said = str(error)
    tb = error.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    if match := _MISFIT.match(said):
        note = _of_misfit(match, tb.tb_frame, tb.tb_lasti)
    elif _NOT_CALLABLE.match(said):
        note = _of_attribute(tb.tb_frame, tb.tb_lasti)
    elif _OF_METHOD.match(said):
        note = _of_operand(tb.tb_frame, tb.tb_lasti)
    elif _NO_CONTEXT.match(said):
        note = _of_class_entered(tb.tb_frame, tb.tb_lineno)
    else:
        note = _of_item(tb.tb_frame, tb.tb_lasti) if said == _NO_ITEMS else ""
    if note:
        add_note(error, note)


def _note_method(error: AttributeError, function: Any) -> None:
    """For `layer.weight.shape`: Python calls the method a function, and says no more."""
    if note := _of_method(function):
        add_note(error, note)


def _note_unbuilt(error: AttributeError) -> None:
    """For `layer.kernel.shape` of a layer that has no weights yet."""
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    text = None if tb is None else source_line.segment(tb.tb_frame.f_code, tb.tb_lasti)
    if tb is None or text is None or (tree := parsed_expression(text)) is None:
        return
    for node in ast.walk(tree):
        weight = node.value if isinstance(node, ast.Attribute) and node.attr == error.name else None
        if isinstance(weight, ast.Attribute) and _lacks_weights(_held(weight.value, tb.tb_frame)):
            layer = ast.unparse(weight.value)
            add_note(
                error,
                f"{layer} has no weights yet: its first call makes them, or {layer}.build((None, ...)) with the shape "
                "of its input",
            )
            return


def _held(node: ast.expr, frame: FrameType) -> Any:
    """What `name.attribute` holds, by the objects' own dictionaries; None for another expression."""
    root, names = _dotted(node)
    value = {**frame.f_globals, **source_line.locals_of(frame)}.get(root)
    for name in names:
        value = getattr(value, "__dict__", {}).get(name)
    return value


def _lacks_weights(layer: Any) -> bool:
    asked = getattr(type(layer), "_lacks_weights", None)
    return asked is not None and type(layer).__module__ != "builtins" and bool(asked(layer))


def _of_method(function: Any) -> str:
    """That a function of ours is a method, and what to write; "" for another's, and for no method."""
    owner = function.__qualname__.rpartition(".")[0]
    if not source_line.is_engine(function.__code__) or not owner:
        return ""
    said = _OTHERS.get(function.__qualname__, "")
    return f"{function.__qualname__} is a method{f'. {said}' if said else ''}"


def _of_operand(frame: FrameType, instruction: int) -> str:
    """What to write for `layer.weight ** 2`."""
    text = source_line.segment(frame.f_code, instruction)
    node = None if text is None else parsed_expression(text)
    operands = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    values = [_value(operand, frame) for operand in operands]
    return next((_of_method(value) for value in values if inspect.isfunction(value)), "")


def _of_class_entered(frame: FrameType, line: int) -> str:
    """What to write for `with ll.GradientTape as tape:`, which lacks the brackets."""
    try:
        (statement,) = ast.parse(
            linecache.getline(frame.f_code.co_filename, line).strip().removesuffix(":") + ": pass"
        ).body
    except (SyntaxError, ValueError):
        return ""
    for item in statement.items if isinstance(statement, ast.With) else ():
        kind, text = _value(item.context_expr, frame), ast.unparse(item.context_expr)
        if inspect.isclass(kind) and kind.__module__.startswith("limelight."):
            return f"{text} is a class; the block is entered by one of its objects: write with {text}()"
    return ""


def _of_misfit(match: re.Match[str], frame: FrameType, instruction: int) -> str:
    """What to write where the arguments do not fit."""
    function = _called(frame, instruction, match[1])
    if (
        function is None
        or function.__name__ == "_calling"
        or not (source_line.is_engine(function.__code__) or _is_made(function))
    ):
        return ""
    name, signature = _form(function)
    if function.__module__.startswith("limelight.random.") and _is_given_a_generator(frame, instruction):
        hint = f"a generator is no argument, as keys are in JAX; draws are its methods: generator.{name}(...)"
    elif match["keyword"]:
        hint = equivalents.keyword_hint(name, match["keyword"], signature.parameters)
        hint = hint or _nearest(match["keyword"], signature)
    elif match["by_place"]:
        names = match["by_place"]
        hint = f"{names} {'are' if ',' in names else 'is'} given by place, without a name"
    else:
        hint = _OTHERS.get(function.__qualname__, "")
    if function.__module__ == "limelight.nn.initializers":
        hint = (
            f"layers are given the function itself, ll.nn.initializers.{name}, which draws from the default generator; "
            f"with settings functools.partial(ll.nn.initializers.{name}, ...)"
        )
    return f"{hint[:1].upper()}{hint[1:]}; its form: {name}{signature}" if hint else f"Its form: {name}{signature}"


def _is_made(function: Any) -> bool:
    """Whether it is the constructor of a dataclass of limelight's, which comes from no file."""
    return function.__name__ == "__init__" and str(function.__module__).startswith("limelight.")


def _is_given_a_generator(frame: FrameType, instruction: int) -> bool:
    """Whether the first argument of a call is a generator, as JAX's functions are given a key."""
    call = _call(frame, instruction)
    given = _value(call.args[0], frame) if call is not None and call.args else None
    return hasattr(type(given), "reset") and hasattr(type(given), "split")


def _nearest(keyword: str, signature: inspect.Signature) -> str:
    """The parameter that was perhaps meant by a misspelt keyword, as the end of a sentence; "" where none is near."""
    known = [p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    near = difflib.get_close_matches(keyword, known, 1, 0.8)
    return f"did you mean {near[0]}=?" if near else ""


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
    if call is None or not isinstance(call.func, ast.Attribute):
        return ""
    if call.func.attr not in _ATTRIBUTES:
        return _of_module(call, frame)
    holder = _value(call.func.value, frame)
    if holder is not None and not type(holder).__module__.startswith("limelight."):
        return ""
    return f"In limelight {call.func.attr} is no function: {_ATTRIBUTES[call.func.attr]}"


def _of_module(call: ast.Call, frame: FrameType) -> str:
    """What to write for `ll.checkpoint(f)`, where that is a module, and for `ll.float32(3)`."""
    module = _value(call.func, frame)
    if isinstance(module, np.dtype):
        return f"Dtypes are not called: write ll.constant(value, ll.{module.name}), or x.astype(ll.{module.name})"
    if not isinstance(module, ModuleType) or not module.__name__.startswith("limelight."):
        return ""
    hint = suggested(module.__name__.rpartition(".")[2])
    return f"{module.__name__} is a module{hint}"


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
        return _named(frame, said) or _of_class(frame, said)
    function = _value(call.func, frame)
    if function is None and isinstance(call.func, ast.Attribute):  # of a result: of a tensor, most likely
        tensor = vars(sys.modules["limelight"])["Tensor"]
        function = inspect.getattr_static(tensor, call.func.attr, None)
    if not callable(function) or getattr(function, "__qualname__", said) != said:
        function = _of_class(frame, said) or function
    if inspect.isclass(function):
        function = inspect.getattr_static(function, said.rpartition(".")[2], None)
    if isinstance(function, (MethodType, staticmethod)):
        function = function.__func__
    return function if inspect.isfunction(function) and function.__qualname__ == said else None


def _named(frame: FrameType, said: str) -> Any:
    """The function of limelight's that Python calls `said`, by the names in code that has no source, as at a prompt."""
    if said not in frame.f_code.co_names:
        return None
    known = {**frame.f_globals, **source_line.locals_of(frame)}
    homes = [known.get(name) for name in frame.f_code.co_names]
    homes += [vars(home).get(name) for home in homes[:] if _is_ours(home) for name in frame.f_code.co_names]
    found = [inspect.getattr_static(home, said, None) for home in homes if _is_ours(home)]
    found += [known.get(said), *[inspect.getattr_static(type(home), said, None) for home in homes if _is_of_ours(home)]]
    return next((f for f in found if inspect.isfunction(f) and f.__qualname__ == said), None)


def _is_of_ours(holder: Any) -> bool:
    return type(holder).__module__.startswith("limelight.")


def _is_ours(home: Any) -> bool:
    return isinstance(home, ModuleType) and home.__name__.partition(".")[0] == "limelight"


def _of_class(frame: FrameType, said: str) -> Any:
    """The method that Python calls `said`, "Place.set", of a class of limelight's; None where another has that name."""
    owner, _, name = said.partition(".")
    others = {**frame.f_globals, **source_line.locals_of(frame)}.get(owner)
    if not name or (others is not None and not others.__module__.startswith("limelight.")):
        return None
    homes = [module for path, module in list(sys.modules.items()) if path.startswith("limelight.")]
    kinds = [vars(module).get(owner) for module in homes]
    methods = {inspect.getattr_static(kind, name, None) for kind in kinds if inspect.isclass(kind)} - {None}
    return methods.pop() if len(methods) == 1 else None


def _dotted(node: ast.expr) -> tuple[str, list[str]]:
    """The name that an expression begins with, and the attributes after it; an empty name where it is no dotted one."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return (node.id, names) if isinstance(node, ast.Name) else ("", [])


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What a dotted name is in `frame`; None where it is another expression, or a property, which may do anything."""
    root, names = _dotted(node)
    if not root:
        return None
    value = {**vars(builtins), **frame.f_globals, **source_line.locals_of(frame)}.get(root)
    for name in names:
        home = value if isinstance(value, ModuleType) or inspect.isclass(value) else type(value)
        value = inspect.getattr_static(home, name, None)
    return value
