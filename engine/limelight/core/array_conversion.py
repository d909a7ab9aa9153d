"""Python values as NumPy arrays, with limelight's default dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Number
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import dtypes
from limelight.core.dtypes import DType, DTypeLike
from limelight.errors import DTypeError, ShapeError
from limelight.user_code import unknown_sizes

_NUMBERS: Final = {bool, int, float, complex}


class Elements(NamedTuple):
    """What lies in a nested list: the dtypes of NumPy values and tensors, the types of Python's numbers."""

    own: set[DType]
    weak: set[type]
    has_tensors: bool = False
    has_others: bool = False
    """Whether there is anything else, of which NumPy shall say what it takes it for."""

    @property
    def dtype(self) -> DType | None:
        """The dtype in which all meet, as operands do; None where there are Python numbers only, which have defaults.

        Raises DTypeError where values of different kinds meet.
        """
        target = dtypes.promote(*self.own) if self.own else None
        for number in [kind() for kind in self.weak]:
            if target is not None:
                target = dtypes.beside(number, target) if dtypes.fits(number, target) else None
        if self.own and target is None:
            names = sorted({*[dtype.name for dtype in self.own], *[f"Python {kind.__name__}" for kind in self.weak]})
            raise DTypeError(
                f"a list of {', '.join(names[:-1])} and {names[-1]} values: dtypes of different kinds are never "
                "converted silently; write dtype=..., or convert the values first"
            )
        return target


_NOTHING: Final = Elements(set(), set())


def elements(value: Any) -> Elements:
    """The kinds of what lies in `value`, if that is a list or tuple."""
    if not isinstance(value, (list, tuple)):
        return _NOTHING
    types = set(map(type, value))  # in C: a look at each of a million numbers takes longer than all else
    scalars = {kind for kind in types if issubclass(kind, np.generic) and np.dtype(kind) in dtypes.ALL}
    own = {np.dtype(kind) for kind in scalars}
    found = Elements(own, types & _NUMBERS)
    others = types - _NUMBERS - scalars
    for item in value if others else ():
        if type(item) in others:
            found = _joined(found, elements(item) if isinstance(item, (list, tuple)) else _of_object(item))
    return found


def _joined(a: Elements, b: Elements) -> Elements:
    return Elements(a.own | b.own, a.weak | b.weak, a.has_tensors or b.has_tensors, a.has_others or b.has_others)


def _of_object(item: Any) -> Elements:
    if hasattr(item, "_uid"):
        return Elements({item.dtype}, set(), has_tensors=True)
    if hasattr(item, "dtype") or hasattr(item, "__array__"):
        refuse_masked(item)
        return Elements({dtypes.dtype(np.asarray(item).dtype)}, set())
    return Elements(set(), set(), has_others=True)


def refuse_masked(value: Any) -> None:
    """Refuses an array of `np.ma` in which something is masked, and the masked element of one."""
    if type(value).__name__ in ("MaskedArray", "MaskedConstant") and np.any(getattr(value, "mask", False)):
        raise DTypeError(
            "cannot make a tensor of a masked array, whose mask would be lost: write x.filled(0.0), or compute with "
            "ll.where(ll.constant(~x.mask), ll.constant(x.data), 0.0)"
        )


def has_own_dtype(value: Any) -> bool:
    """Whether `value` is or holds something of a dtype: Python's numbers have none, and take on what is wanted."""
    return hasattr(value, "dtype") or bool(elements(value).own)


def as_array(value: Any, dtype: DTypeLike | None = None) -> np.ndarray[Any, Any]:
    """A fresh NumPy array from Python numbers, nested lists or arrays, with limelight's default dtypes.

    Python floats become float32 and ints int32 (int64 beyond 32 bits); arrays and NumPy scalars keep their dtype, in
    lists too, where they meet as operands do.
    """
    if dtype is None:  # Python's numbers, one by one, as data and tests have them
        kind = type(value)
        if kind is float:
            return np.array(value, dtypes.float32)
        if kind is int and -(2**31) <= value < 2**31:
            return np.array(value, dtypes.int32)
    refuse_masked(value)
    inside = elements(value)
    wanted = dtypes.dtype(dtype) if dtype is not None else inside.dtype
    meeting = None if dtype is not None or inside.has_others else wanted  # NumPy's own choice may be float64 for uint64
    keeps = isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__") or hasattr(value, "dtype")
    try:
        array = np.array(value, meeting)
    except OverflowError as error:
        raise DTypeError(f"{error}; give a wider dtype, such as dtype=ll.int64") from None
    except ValueError as error:
        raise ShapeError(f"a tensor must be rectangular: {_ragged(value) or error}") from None
    if array.dtype.kind == "O" and _has_none(value):
        size = unknown_sizes.here()
        raise DTypeError(
            f"cannot make a tensor of None: it is no number; if a function made it, does that end with `return`? If "
            f"it is a size of {size.tensor}.shape, unknown while tracing, write {size}, or "
            f"{size.tensor}.sizes()[{size.axis}]"
        )
    if array.dtype.kind in "OSUMm":
        instead = _instead_of(value) if array.dtype.kind == "O" else _TEXT if array.dtype.kind in "US" else ""
        given = instead or f"{array.dtype} values; give booleans, or numbers of at most 64 bits"
        raise DTypeError(f"cannot make a tensor of {given}")
    if wanted is None:
        wanted = dtypes.dtype(array.dtype) if keeps else _default(array)
    _check_conversion(
        array, wanted, array.dtype.name if keeps or inside.own else _WORDS.get(array.dtype.kind, "Python")
    )
    return array.astype(wanted, copy=False)


def _default(array: np.ndarray[Any, Any]) -> DType:
    if array.size == 0 or array.dtype.kind == "f":
        return dtypes.float32
    if array.dtype.kind in "iu":
        fits = array.dtype != np.uint64 and -(2**31) <= array.min() and array.max() < 2**31
        return dtypes.int32 if fits else dtypes.dtype(array.dtype)
    return dtypes.complex64 if array.dtype.kind == "c" else dtypes.bool_


_TEXT: Final = "text, which no tensor holds: write float(text) for a number, an ll.lookup.HashTable for words"
_WORDS: Final = {"f": "floating", "c": "complex", "i": "integer", "u": "integer", "b": "boolean"}
"""What Python's numbers are called, which have no dtype before they are an array."""


def _check_conversion(array: np.ndarray[Any, Any], wanted: DType, kind: str) -> None:
    if array.size and not dtypes.holds(wanted, dtypes.dtype(array.dtype)):
        raise DTypeError(
            f"{kind} values would lose information as {wanted.name}; convert them explicitly first: "
            f"ll.astype(x, ll.{wanted.name})"
        )
    if array.size and dtypes.kind(wanted) == "integer" and array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        outside = [n for n in (low, high) if not dtypes.in_range(n, wanted)]
        if outside:
            raise DTypeError(f"{outside[0]} does not fit into {wanted.name}; give a wider dtype, such as ll.int64")


def _ragged(value: Any, path: str = "") -> str:
    """Which two rows of a nested list differ in shape, and what to write; "" where none do."""
    if not _has_rows(value):
        return ""
    inside = next(filter(None, [_ragged(row, f"{path}[{i}]") for i, row in enumerate(value)]), "")
    shapes = [] if inside else [_shape(row) for row in value]  # which rows have that agree within themselves
    other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if other is None:
        return inside
    rows, by_length = (value[0], value[other]), shapes[0][:1] != shapes[other][:1]
    first, second = [_said(row, by_length) for row in rows]
    remedy = (
        "fill rows up to one length, and keep what is there in a mask, ll.arange(length) < lengths[:, None]"
        if all(_shape(row) or _is_number(row) for row in rows)
        else "give numbers, or rows of numbers"
    )
    return f"x{path}[0] {first}, and x{path}[{other}] {second}; {remedy}"


def _has_rows(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _shape(row: Any) -> tuple[int, ...]:
    """That of a nested list by its first rows, of an array, or of anything else, which is a single element."""
    if _has_rows(row):
        return (len(row), *(_shape(row[0]) if len(row) else ()))
    return tuple(getattr(row, "shape", ()))


def _is_number(x: Any) -> bool:
    return isinstance(x, Number) or (hasattr(x, "dtype") and x.dtype in dtypes.ALL)


def _said(row: Any, by_length: bool) -> str:
    """A row as the end of a sentence: "has 2 elements", "has the shape (2, 3)", "is a number", "is a str"."""
    shape = _shape(row)
    if not shape:
        kind = "number" if _is_number(row) else type(row).__name__
        return "is None" if row is None else f"is {'an' if kind[0] in 'AEIOaeio' else 'a'} {kind}"
    if not by_length:
        return f"has the shape {shape}"
    return f"has {shape[0]} {'element' if len(shape) == 1 else 'row'}{'' if shape[0] == 1 else 's'}"


def _instead_of(value: Any) -> str:
    """For an object that is no number, in a list or by itself: what it is, and what to write; "" for an unknown one."""
    if isinstance(value, (list, tuple)):
        inside = next(filter(None, map(_instead_of, value)), "")
        return f"a {type(value).__name__} with {inside}" if inside else ""
    kind = type(value).__name__
    if isinstance(value, Mapping):
        return f"a {kind}, which holds several: give its values one by one, as ll.tree.map(function, {kind}) does"
    if hasattr(value, "toarray"):
        return f"a sparse {kind}: write x.toarray()"
    if hasattr(value, "_uid"):
        return (
            f"a {kind}, which is state: it is no operand, and no value that a loop carries; use it in the function "
            "from outside, or give that its numbers"
        )
    if isinstance(value, (Iterator, AbstractSet)):
        return f"a {kind}, which has no places: write list(x)"
    if callable(value):
        return f"a {kind}, which is to be called first"
    return "" if hasattr(value, "dtype") else f"an object of type {kind}; give booleans, or numbers of at most 64 bits"


def _has_none(value: Any) -> bool:
    return value is None or (isinstance(value, (list, tuple)) and any(map(_has_none, value)))
