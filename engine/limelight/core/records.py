"""Dataclasses and the like (attrs) as holders of state: their fields lead on, as the attributes of modules do."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any, Final

_LIBRARY: Final = ("limelight.", "limelight_")


def fields_of(x: Any) -> dict[str, Any] | None:
    """What the fields of a record hold, by name; None for what is no record. A field that is not set yet is left out.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Weights:
    ...     __module__ = "__main__"  # of the user's
    ...     w: float
    >>> fields_of(Weights(2.0)), fields_of(2.0)
    ({'w': 2.0}, None)
    """
    names = _names(type(x))
    return None if names is None else {name: getattr(x, name) for name in names if hasattr(x, name)}


def is_record(x: Any) -> bool:
    """Whether `x` is a dataclass or an object of attrs, of somebody else's than limelight's.

    >>> import limelight as ll
    >>> is_record(ll.TensorSpec((2,))), is_record(2.0)
    (False, False)
    """
    return _names(type(x)) is not None


_known: Final[weakref.WeakKeyDictionary[type, tuple[str, ...] | None]] = weakref.WeakKeyDictionary()


def _names(kind: type) -> tuple[str, ...] | None:
    try:
        return _known[kind]
    except KeyError:
        names = _known[kind] = _field_names(kind)
        return names


def _field_names(kind: type) -> tuple[str, ...] | None:
    if kind.__module__.startswith(_LIBRARY) or getattr(kind, "__limelight_leaf__", False):
        return None
    if dataclasses.is_dataclass(kind):
        return tuple([field.name for field in dataclasses.fields(kind)])
    attributes = getattr(kind, "__attrs_attrs__", None)
    return None if attributes is None else tuple([attribute.name for attribute in attributes])
