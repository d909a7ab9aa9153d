"""Arguments and results as JSON: containers, plain values, and whatever stands for a tensor.

nest  ::= null | true | number | string                            itself
        | {"list": [nest, ...]} | {"tuple": [nest, ...]}
        | {"dict": [[key, nest], ...]}                             keys: strings, numbers, None
        | {"named": name, "fields": [...], "items": [nest, ...]}   a named tuple
        | {"spec": [dtype, [size or null, ...]]}                   a tensor of this type
        | {"float": "nan"} | {"complex": [re, im]} | {"bytes": hex} | {"dtype": name}
        | {"range": [...]} | {"slice": [nest, nest, nest]} | {"ellipsis": true}
        | {"output": n}                                            the n-th result of the graph
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.spec import TensorSpec
from limelight.errors import ExportError


@dataclasses.dataclass(frozen=True)
class Output:
    """Stands for the n-th result of a graph."""

    __limelight_leaf__ = True
    index: int


def encode(value: Any, path: str) -> Any:
    """`value` as JSON. Raises ExportError that names the place, from `path` on, of what has no such form."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind in (list, tuple):
        return {kind.__name__: [encode(item, f"{path}[{i}]") for i, item in enumerate(value)]}
    if kind is dict:
        return {"dict": [[_key(key, path), encode(item, f"{path}[{key!r}]")] for key, item in value.items()]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = [encode(item, f"{path}.{field}") for field, item in zip(value._fields, value, strict=True)]
        return {"named": kind.__name__, "fields": list(value._fields), "items": items}
    for known, (name, write, _) in _WRITTEN.items():
        if isinstance(value, known):
            return {name: write(value, path)}
    raise ExportError(
        f"`{path}` is a {kind.__name__}, which a file cannot hold: use tensors, plain Python values, and lists, "
        "tuples, dictionaries and named tuples of these"
    )


def _key(key: Any, path: str) -> Any:
    if key is None or type(key) in (bool, int, str):
        return key
    raise ExportError(f"`{path}` has the key {key!r}, a {type(key).__name__}; a file holds strings, integers, None")


def decode(data: Any) -> Any:
    """The inverse of `encode`. Raises ExportError for what it never writes."""
    if data is None or type(data) in (bool, int, float, str):
        return data
    try:
        return _decoded(data)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ExportError(f"the file is damaged: {str(data)[:80]} stands for no value") from error


def _decoded(data: Any) -> Any:
    name = next(iter(data))
    if name in _SEQUENCES:
        return _SEQUENCES[name](map(decode, data[name]))
    if name == "dict":
        return {key: decode(item) for key, item in data[name]}
    if name == "named":
        return named_tuple(data["named"], tuple(data["fields"]))(*map(decode, data["items"]))
    return _READ[name](data[name])


@functools.lru_cache(maxsize=1024)
def named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """One class for each name and fields, so that equal structures are equal."""
    return collections.namedtuple(name, fields)  # its fields are known from the file only


_SEQUENCES: dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple}
_WRITTEN: dict[type, tuple[str, Callable[[Any, str], Any], Callable[[Any], Any]]] = {
    Output: ("output", lambda x, path: x.index, Output),
    TensorSpec: (
        "spec",
        lambda x, path: [x.dtype.name, list(x.shape)],
        lambda data: TensorSpec(tuple(data[1]), dtypes.dtype(data[0])),
    ),
    float: ("float", lambda x, path: repr(float(x)), float),
    complex: ("complex", lambda x, path: [repr(x.real), repr(x.imag)], lambda d: complex(float(d[0]), float(d[1]))),
    bytes: ("bytes", lambda x, path: x.hex(), bytes.fromhex),
    np.dtype: ("dtype", lambda x, path: x.name, dtypes.dtype),
    range: ("range", lambda x, path: [x.start, x.stop, x.step], lambda data: range(*data)),
    slice: (
        "slice",
        lambda x, path: [encode(part, path) for part in (x.start, x.stop, x.step)],
        lambda data: slice(*map(decode, data)),
    ),
    type(...): ("ellipsis", lambda x, path: True, lambda data: ...),
}
_READ = {name: read for name, _, read in _WRITTEN.values()}
