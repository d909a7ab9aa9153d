"""Batches of a list's items at once: what each item by itself would be, stacked, in a tenth of the time.

Only items of Python's own types, and arrays, all alike: whatever else there is, and whatever does not fit, is left to
the way item by item, which has the words for it.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np

from limelight.core import dtypes
from limelight.core.array_conversion import as_array
from limelight.core.nest import LEAF, Structure, opened
from limelight.data.element import Element
from limelight.errors import LimelightError

_NUMBERS: Final = {float: dtypes.float32, int: dtypes.int32, bool: dtypes.bool_}
"""The dtypes that single numbers have."""


def stacked_items(items: list[Any]) -> Element | None:
    """The items as one element, with a new first axis; None where they must be taken one by one.

    >>> stacked_items([(1.5, "a"), (2.5, "b")]).leaves
    [array([1.5, 2.5], dtype=float32), array(['a', 'b'], dtype=object)]
    """
    leaves: list[Any] = []
    structure = _stacked(items, leaves)
    return None if structure is None or not leaves else Element(structure, leaves)


def _stacked(items: list[Any], leaves: list[Any]) -> Structure | None:
    """The structure of the items, whose columns are appended to `leaves`."""
    kinds = set(map(type, items))
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    if kind is tuple or kind is dict:
        return _of_containers(items, leaves)
    column = _column(kind, items)
    if column is None:
        return None
    leaves.append(column)
    return LEAF


def _column(kind: type, items: list[Any]) -> np.ndarray[Any, Any] | None:
    if kind in _NUMBERS:
        try:
            numbers = as_array(items)
        except LimelightError:
            return None
        return numbers if numbers.dtype == _NUMBERS[kind] else None
    if kind is str or kind is bytes:
        texts = np.empty(len(items), object)
        texts[:] = items
        return texts
    if kind is list:
        return _of_lists(items)
    if issubclass(kind, np.generic):
        numbers = np.array(items, kind)
        return numbers if id(numbers.dtype) in dtypes.BY_ID else None
    if kind is not np.ndarray:
        return None
    first = items[0]
    alike = id(first.dtype) in dtypes.BY_ID and all(x.dtype is first.dtype and x.shape == first.shape for x in items)
    return np.array(items, first.dtype) if alike else None


def _of_lists(items: list[Any]) -> np.ndarray[Any, Any] | None:
    """Lists of one length, of numbers of one type, of texts, or of such lists: each is one array."""
    flat = list(itertools.chain.from_iterable(items))
    kinds = set(map(type, flat))
    if len(kinds) != 1 or len(set(map(len, items))) != 1:
        return None
    kind = kinds.pop()
    column = _column(kind, flat) if kind in _NUMBERS or kind in (list, str, bytes) else None
    return None if column is None else column.reshape(len(items), len(items[0]), *column.shape[1:])


def _of_containers(items: list[Any], leaves: list[Any]) -> Structure | None:
    first = items[0]
    if isinstance(first, dict):
        if set(map(type, first)) != {str} or any(x.keys() != first.keys() for x in items):
            return None
    elif len(set(map(len, items))) != 1:
        return None
    found = opened(first)
    if found is None or not found[1]:
        return None
    kind, keys, _ = found
    children = []
    for key in keys:
        child = _stacked([x[key] for x in items], leaves)
        if child is None:
            return None
        children.append(child)
    return Structure(kind, keys, tuple(children))
