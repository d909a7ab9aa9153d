"""Arguments and results as JSON: containers, plain values, and whatever stands for a tensor.

nest  ::= null | true | number | string                            itself
        | {"list": [nest, ...]} | {"tuple": [nest, ...]}
        | {"dict": [[key, nest], ...]}                             keys: strings, numbers, None
        | {"named": name, "fields": [...], "items": [nest, ...]}   a named tuple, or as argument a dataclass
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

from limelight.core import dtypes, nest
from limelight.core.nest import Structure
from limelight.core.spec import TensorSpec
from limelight.errors import ExportError
from limelight.staging.key import Key


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


@functools.lru_cache(maxsize=1024)
def canonical(structure: Structure) -> Structure:
    """A structure in which named tuples and dataclasses are known by name and fields, as they are to a file."""
    return Structure(
        _canonical_kind(structure.kind, structure.keys), structure.keys, tuple(map(canonical, structure.children))
    )


def _canonical_kind(kind: type | None, keys: tuple[Any, ...]) -> type | None:
    if kind is None or kind in (list, tuple, dict):
        return kind
    if not (hasattr(kind, "_fields") or dataclasses.is_dataclass(kind)):
        return kind
    try:
        known: type = named_tuple(kind.__name__, keys)
    except ValueError:  # a field that begins with an underscore: `encode` refuses it in words
        return kind
    return known


def canonical_key(key: Key) -> Key:
    """A key whose structure is canonical."""
    return key if key.structure is None else key._replace(structure=canonical(key.structure))


def leaves_like(structure: Structure, tree: Any) -> list[Any] | None:
    """The parts of `tree` at the leaves of `structure`; None where it has another container there."""
    if structure.kind is None:
        return [tree]
    node = nest.opened(tree)
    if node is None or node[1] != structure.keys:
        return None
    if _canonical_kind(node[0], node[1]) != _canonical_kind(structure.kind, structure.keys):
        return None
    below = [leaves_like(child, part) for child, part in zip(structure.children, node[2], strict=True)]
    return (
        None
        if any(leaves is None for leaves in below)
        else [leaf for leaves in below if leaves is not None for leaf in leaves]
    )


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
