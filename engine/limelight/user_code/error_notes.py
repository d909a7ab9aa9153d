"""Notes on errors of Python's that have a reason here: sizes that are unknown, keywords of other libraries."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Mapping
from types import FrameType, ModuleType
from typing import Any, Final

from limelight.user_code import source_line

_OF_NUMBERS: Final = re.compile(r"unsupported operand|not supported between|as an integer|real number|must be")
_KEYWORD: Final = re.compile(r"got an unexpected keyword argument '(\w+)'")
KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "dim": ("axis", "axes"), "dims": ("axes", "axis"), "axes": ("axis",), "axis": ("axes",), "keepdim": ("keepdims",),
    "keep_dims": ("keepdims",), "unbiased": ("correction",), "ddof": ("correction",),
    "a_min": ("min",), "a_max": ("max",),
}  # fmt: skip
"""What keywords of other libraries are called here, the likeliest first."""


def note_sizes(error: BaseException) -> None:
    """For a trace in which sizes are unknown: says what to write if it was one of them that Python could not use."""
    said = str(error) if type(error) is TypeError else ""
    if "NoneType" in said and _OF_NUMBERS.search(said):
        _add(
            error,
            "If that None is a size of x.shape, unknown while tracing: write ll.shape_of(x)[0], or x.sizes()[0]; for "
            "x.size write ll.prod(ll.shape_of(x))",
        )


def note_keyword(error: BaseException) -> None:
    """Says what a keyword is called here, where a function of limelight's was called with that of another library."""
    found = _KEYWORD.search(str(error)) if type(error) is TypeError else None
    if found is None or found[1] not in KEYWORDS or error.__traceback__ is None:
        return
    tb = error.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    function = _called(tb.tb_frame, tb.tb_lasti)
    if function is None or not source_line.is_engine(function.__code__):
        return
    known = inspect.signature(function).parameters
    name = next((name for name in KEYWORDS[found[1]] if name in known), None)
    if name is not None:
        _add(error, f"In limelight it is called {name}: write {name}=...")


def _add(error: BaseException, note: str) -> None:
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _called(frame: FrameType, instruction: int) -> Any:
    """The Python function that an instruction of `frame` calls by a name; None where there is none to be found."""
    text = source_line.segment(frame.f_code, instruction)
    try:
        node: Any = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    names: list[str] = []
    node = node.func if isinstance(node, ast.Call) else None
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    value = {**vars(builtins), **frame.f_globals, **source_line.locals_of(frame)}.get(node.id)
    for name in names:  # of other objects the class is asked: an attribute of theirs may do anything
        value = inspect.getattr_static(value if isinstance(value, ModuleType) else type(value), name, None)
    return value if inspect.isfunction(value) else None


AUTOGRAPH_DOES_IT: Final = ", or let ll.function(autograph=True) rewrite the `if`, `while` and `for` of the source"
_BRANCHES: Final = (
    "For a choice by value write ll.cond(pred, true_fn, false_fn) or ll.where(pred, x, y), for a loop "
    f"ll.while_loop(cond, body, loop_vars){AUTOGRAPH_DOES_IT}"
)
_CONVERSIONS: Final = (".numpy()", ".item()", "float()", "complex()")
_PYTHON: Final = "; for arbitrary Python on real values ll.py_func(fn, inputs, output_specs)"
_ARGUMENT: Final = "; or take the value as a plain Python argument, which is known while tracing"


def without_value(asked: str) -> str:
    """What to write instead of asking a symbolic tensor for its value: control flow for what steers Python."""
    if asked.startswith(("bool()", "int()", "use as")):
        return _BRANCHES + _PYTHON + _ARGUMENT
    way = f"Leave out `{asked}`" if asked in _CONVERSIONS else "Compute with ll"
    return f"{way}: limelight's ops take the tensor as it is{_PYTHON}{_ARGUMENT}"
