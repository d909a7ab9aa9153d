"""Plain Python values as JSON: what a `State` holds, and what objects give as their state.

None, booleans, integers, finite floats, strings, lists and dictionaries with string keys are what JSON has for them.
All else is a dictionary whose key "~" says what it is; arrays, NumPy's scalars and tensors lie among the arrays of the
file, and JSON has their keys. Nothing in a file is ever called or imported: there is no pickle.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from limelight.core import dtypes
from limelight.core.tensor import Tensor, constant
from limelight.errors import CheckpointError

_DEEPEST: Final = 64
_DEEPEST_JSON: Final = 4 * _DEEPEST  # a dictionary with other keys than strings is three levels of JSON
_MOST: Final = 1 << 24  # elements, of which JSON has room for fewer
_CONTAINERS: Final = (list, tuple, dict, set, frozenset)
_TAG: Final = "~"
_LONG: Final = 1000  # numbers
_LISTS: Final[dict[type, Any]] = {float: dtypes.float64, int: dtypes.int64}
_WITH_ARRAYS: Final = ("array", "scalar", "tensor", "list")
_SMALL: Final = 2**63  # larger integers are hexadecimal: Python limits the digits of decimals that it reads
_DTYPES: Final = frozenset(dtypes.ALL)


def encode(value: Any, keep: Callable[[np.ndarray[Any, Any]], str], what: str, depth: int = 0) -> Any:
    """A value as JSON.

    Args:
        value: what is to be kept.
        keep: takes an array and returns its key.
        what: where the value is, for messages.
        depth: how many containers are around it.

    Raises:
        CheckpointError: it is, or holds, something that is no plain value.
    """
    if depth == 0 and isinstance(value, _CONTAINERS) and _elements(value, {}, 0) > _MOST:
        raise CheckpointError(
            f"{what} has more than {_MOST} elements, those of lists that are in several counted as often: make it an "
            "array, or smaller"
        )
    if depth > _DEEPEST:
        raise CheckpointError(f"{what} is nested more than {_DEEPEST} levels deep, or contains itself: make it flatter")
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        return value if abs(value) < _SMALL else {_TAG: "int", "hex": hex(value)}
    if type(value) is float:
        return value if math.isfinite(value) else {_TAG: "float", "text": repr(value)}
    if isinstance(value, _CONTAINERS):
        return _container(value, keep, what, depth + 1)
    return _tagged(value, keep, what)


def _elements(value: Any, known: dict[int, int], depth: int) -> int:
    """How many elements a container has, and those in it, which a list that is in two counts twice for."""
    if depth > _DEEPEST:
        return 0  # it is refused for that
    if id(value) not in known:
        known[id(value)] = 0  # within itself
        items = value.values() if isinstance(value, dict) else value
        inner = [_elements(x, known, depth + 1) for x in items if isinstance(x, _CONTAINERS)]
        known[id(value)] = len(value) + sum(inner)
    return known[id(value)]


def _container(value: Any, keep: Callable[[Any], str], what: str, depth: int) -> Any:
    def inner(x: Any) -> Any:
        return encode(x, keep, what, depth)

    if isinstance(value, list):
        numbers = _numbers(value)
        return [inner(x) for x in value] if numbers is None else {_TAG: "list", "key": keep(numbers)}
    if not isinstance(value, dict):
        return {_TAG: "tuple" if isinstance(value, tuple) else "set", "items": [inner(x) for x in value]}
    if _TAG not in value and all(type(key) is str for key in value):
        return {key: inner(x) for key, x in value.items()}
    return {_TAG: "dict", "items": [[inner(key), inner(x)] for key, x in value.items()]}


def _numbers(items: list[Any]) -> np.ndarray[Any, Any] | None:
    """A long list of floats, or of integers of 64 bits, as an array: JSON of it takes more memory than the list."""
    kinds = set(map(type, items)) if len(items) >= _LONG else ()
    try:
        return np.array(items, _LISTS[kind]) if len(kinds) == 1 and (kind := next(iter(kinds))) in _LISTS else None
    except OverflowError:  # larger integers
        return None


def _tagged(value: Any, keep: Callable[[Any], str], what: str) -> Any:
    if type(value) is complex:
        return {_TAG: "complex", "text": [repr(value.real), repr(value.imag)]}
    if isinstance(value, (bytes, bytearray)):
        return {_TAG: "bytes", "base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, np.ndarray) and value.dtype.kind == "U":
        return {_TAG: "strings", "shape": list(value.shape), "items": value.ravel().tolist()}
    if isinstance(value, np.str_):
        return str(value)
    array = value.numpy() if type(value) is Tensor else value
    if isinstance(array, (np.ndarray, np.generic)) and array.dtype.newbyteorder("=") in _DTYPES:
        tag = "tensor" if type(value) is Tensor else "scalar" if isinstance(array, np.generic) else "array"
        return {_TAG: tag, "key": keep(np.asarray(array))}
    raise CheckpointError(
        f"{what} is, or holds, a {type(value).__name__}, which a file cannot keep: numbers, strings, bytes, lists, "
        "tuples, dictionaries, sets and NumPy arrays of them can be; or give its class get_state() and set_state(state)"
    )


def decode(data: Any, fetch: Callable[[str], np.ndarray[Any, Any]]) -> Any:
    """The value that `encode` made JSON of; `fetch` has the array of a key. Raises CheckpointError for other JSON."""
    if isinstance(data, list):
        return [decode(x, fetch) for x in data]
    if not isinstance(data, dict):
        return data
    if _TAG not in data:
        return {key: decode(x, fetch) for key, x in data.items()}
    try:
        return _DECODERS[data[_TAG]](data, fetch)
    except (KeyError, TypeError, ValueError, OverflowError, binascii.Error) as error:
        raise CheckpointError(f"the file has a value that is none: {_excerpt(data)} ({error})") from None


def array_keys(data: Any) -> list[str]:
    """The keys of the arrays that a value needs. Raises CheckpointError for what is nested too deeply."""
    found, level = [], [data]
    for _ in range(_DEEPEST_JSON):
        inner = []
        for x in level:
            if isinstance(x, list):
                inner += x
            elif isinstance(x, dict) and x.get(_TAG) in _WITH_ARRAYS:
                found += [x["key"]] if isinstance(x.get("key"), str) else []
            elif isinstance(x, dict):
                inner += x.values()
        level = [x for x in inner if isinstance(x, (list, dict))]
        if not level:
            return found
    raise CheckpointError(f"the file has a value that is nested more than {_DEEPEST_JSON} levels deep")


def _excerpt(data: Any) -> str:
    text = repr(data)
    return text if len(text) < 100 else text[:100] + "..."


def _dict(data: Mapping[str, Any], fetch: Any) -> Any:
    return {decode(key, fetch): decode(x, fetch) for key, x in data["items"]}


def _strings(data: Mapping[str, Any], fetch: Any) -> Any:
    items = data["items"]
    if not all(type(x) is str for x in items):
        raise ValueError("not all are strings")
    widest = max(map(len, items), default=0)
    if widest * len(items) > 64 * (sum(map(len, items)) + len(items) + 1024):
        raise ValueError("strings of too different lengths for one array")
    return np.array(items, dtype=f"U{widest}" if widest else "U1").reshape(data["shape"])


def _list(data: Mapping[str, Any], fetch: Any) -> Any:
    array = fetch(data["key"])
    if array.ndim != 1 or array.dtype not in _LISTS.values():
        raise ValueError("not a row of numbers")
    return array.tolist()


def _tensor(data: Mapping[str, Any], fetch: Any) -> Any:
    return constant(fetch(data["key"]))


_DECODERS: Final[dict[str, Callable[[Mapping[str, Any], Any], Any]]] = {
    "int": lambda data, fetch: int(data["hex"], 16),
    "float": lambda data, fetch: float(data["text"]),
    "complex": lambda data, fetch: complex(*map(float, data["text"])),
    "bytes": lambda data, fetch: base64.b64decode(data["base64"], validate=True),
    "tuple": lambda data, fetch: tuple([decode(x, fetch) for x in data["items"]]),
    "set": lambda data, fetch: {decode(x, fetch) for x in data["items"]},
    "dict": _dict,
    "strings": _strings,
    "array": lambda data, fetch: fetch(data["key"]),
    "scalar": lambda data, fetch: fetch(data["key"])[()],
    "tensor": _tensor,
    "list": _list,
}


def same(a: Any, b: Any) -> bool:
    """Whether two plain values are equal, NaN to itself.

    >>> same({"x": [float("nan"), np.ones(2)]}, {"x": [float("nan"), np.ones(2)]})
    True
    """
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _same_arrays(np.asarray(a), np.asarray(b))
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (float, complex)) and a != a:  # noqa: PLR0124  # NaN is not itself
        return bool(b != b)  # noqa: PLR0124  # the same
    return bool(a == b)


def _same_arrays(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tobytes() == b.tobytes() or bool(((a == b) | ((a != a) & (b != b))).all())  # noqa: PLR0124  # NaN is not itself
