"""Static parameters and specs as words of a graph's text; `limelight.graph.lexer` reads them back.

word    ::= None | True | False | int | float | nan | inf | complex(re, im) | "string" | bytes("hex") | ...
          | (word, ...) | [word, ...] | slice(word, word, word) | device("CPU:0") | @function
          | dtype | dtype(number) | spec | literal | <something that text cannot hold>
spec    ::= dtype[size, ...] | var spec | frozen var spec | object kind      unknown sizes are "?"
literal ::= spec data                                                        f32[2] [1.0, 2.0]
data    ::= number | [data, ...] | <n elements>                              the last form is elided: not readable
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from limelight.core import dtypes
from limelight.core.devices import Device
from limelight.core.dtypes import DType
from limelight.core.spec import ObjectSpec, Spec, TensorSpec, VariableSpec
from limelight.graph.ir import Literal, is_function

BARE: Final = re.compile(r"[A-Za-z_<][\w.<>]*\Z")
"""Names that need no quotes."""
ELIDE_ABOVE: Final = 16
"""Literals of more elements than this are shortened, unless asked for in full."""

_WRITTEN_BY_REPR: Final = {type(None), bool, int, float}


def write(value: Any, functions: Mapping[int, str], full: bool = False) -> str:
    """The word for a static parameter; `functions` maps ids of staged functions to their names in the text."""
    kind = type(value)
    if kind in _WRITTEN_BY_REPR:
        return repr(value)
    if kind is tuple or kind is list:
        inside = ", ".join([write(item, functions, full) for item in value])
        return f"[{inside}]" if kind is list else f"({inside},)" if len(value) == 1 else f"({inside})"
    if kind is Literal:
        return write_literal(value, full)
    if id(value) in functions:
        return f"@{quote(functions[id(value)])}"
    return _write_other(value, functions, full)


def _write_other(value: Any, functions: Mapping[int, str], full: bool) -> str:
    match value:
        case str() if type(value) is str:
            return json.dumps(value, ensure_ascii=False)
        case complex() if type(value) is complex:
            return f"complex({value.real!r}, {value.imag!r})"
        case bytes() if type(value) is bytes:
            return f'bytes("{value.hex()}")'
        case slice():
            parts = [write(part, functions, full) for part in (value.start, value.stop, value.step)]
            return f"slice({', '.join(parts)})"
        case np.dtype() if value in dtypes.ALL:
            return dtypes.short(value)
        case np.generic() if value.dtype in dtypes.ALL:
            return f"{dtypes.short(value.dtype)}({value!s})"
        case Device():
            return f"device({json.dumps(device_word(value))})"
        case TensorSpec() | VariableSpec() | ObjectSpec():
            return write_spec(value)
    return "..." if value is Ellipsis else opaque(value)


def opaque(value: Any) -> str:
    """Stands for what text cannot hold: readable, stable from run to run, refused by the parser."""
    name = value.name if is_function(value) else getattr(value, "__qualname__", "")
    return f"<{type(value).__name__}{' ' if name else ''}{name}>".replace("\n", " ")


def write_spec(spec: Spec) -> str:
    if isinstance(spec, ObjectSpec):
        return f"object {quote(spec.kind)}"
    return str(spec)


def write_literal(literal: Literal, full: bool = False) -> str:
    array = np.asarray(literal.array)
    sizes = ",".join(map(str, array.shape))
    head = f"{dtypes.short(array.dtype)}[{sizes}]"
    if array.size > ELIDE_ABOVE and not full:
        return f"{head} <{array.size} elements>"
    return f"{head} {_data(array)}"


def _data(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return str(array[()])
    if array.ndim == 1:
        return "[" + ", ".join([str(item) for item in array]) + "]"
    return "[" + ", ".join([_data(row) for row in array]) + "]"


def read_number(token: str, dtype: DType) -> Any:
    """The element that `token` stands for in a literal of `dtype`. Raises ValueError for anything else."""
    match dtypes.kind(dtype):
        case "bool":
            return {"True": True, "False": False}.get(token) if token in ("True", "False") else _refuse(token)
        case "integer":
            return int(token)
        case "complex":
            return complex(token)
    return float(token)


def _refuse(token: str) -> Any:
    raise ValueError(f"{token!r} is neither True nor False")


def quote(name: str) -> str:
    """`name` as it is if it is a plain word, else as a JSON string."""
    return name if BARE.match(name) else json.dumps(name, ensure_ascii=False)


def device_word(device: Device) -> str:
    """The short name of a local device, the full name of any other."""
    return device.short if device.job == "localhost" and device.task == 0 else device.name
