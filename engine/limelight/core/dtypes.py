"""Data types: NumPy's dtype objects, the kinds they belong to, and which of them mix.

Within a kind (float32 and float64) operands are brought to one dtype, by casts that are ops themselves; across kinds
they are not, but for floating beside complex, and Python's numbers must fit the tensor's kind. Hot paths compare dtypes
by identity, which takes 16 ns; `ml_dtypes` registers bfloat16 with NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from limelight.errors import DTypeError

DType: TypeAlias = "np.dtype[Any]"
DTypeLike: TypeAlias = "np.dtype[Any] | str | type"

bool_: Final[DType] = np.dtype("bool")
int8: Final[DType] = np.dtype("int8")
int16: Final[DType] = np.dtype("int16")
int32: Final[DType] = np.dtype("int32")
int64: Final[DType] = np.dtype("int64")
uint8: Final[DType] = np.dtype("uint8")
uint16: Final[DType] = np.dtype("uint16")
uint32: Final[DType] = np.dtype("uint32")
uint64: Final[DType] = np.dtype("uint64")
float16: Final[DType] = np.dtype("float16")
float32: Final[DType] = np.dtype("float32")
float64: Final[DType] = np.dtype("float64")
bfloat16: Final[DType] = np.dtype(ml_dtypes.bfloat16)
complex64: Final[DType] = np.dtype("complex64")
complex128: Final[DType] = np.dtype("complex128")

ALL: Final[tuple[DType, ...]] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip

_SHORT: Final[dict[DType, str]] = {
    bool_: "bool", int8: "i8", int16: "i16", int32: "i32", int64: "i64",
    uint8: "u8", uint16: "u16", uint32: "u32", uint64: "u64",
    float16: "f16", bfloat16: "bf16", float32: "f32", float64: "f64", complex64: "c64", complex128: "c128",
}  # fmt: skip
_FROM_SHORT: Final[dict[str, DType]] = {short: dtype for dtype, short in _SHORT.items()}
BY_ID: Final[dict[int, DType]] = {id(dtype): dtype for dtype in ALL}
"""The dtypes by identity, which is quicker to look up than their hashes; they live as long as the program."""
_BY_LETTER: Final = {"b": "bool", "i": "integer", "u": "integer", "f": "floating", "c": "complex"}
_KIND: Final[dict[DType, str]] = {d: "floating" if d == bfloat16 else _BY_LETTER[d.kind] for d in ALL}


def dtype(like: DTypeLike) -> DType:
    """The dtype that `like` names: a dtype, a scalar type, "float32", "bfloat16" or a short form such as "f32".

    Python's own types are those of NumPy: `float` is float64, `int` int64 and `complex` complex128, so that
    `x.astype(float).dtype == float`. Values that have no dtype get limelight's defaults, of half the width.

    Raises DTypeError for anything that is not one of the supported dtypes.
    """
    quick = BY_ID.get(id(like))
    if quick is not None:
        return quick
    try:
        candidate = _FROM_SHORT[like] if isinstance(like, str) and like in _FROM_SHORT else np.dtype(like)
    except (TypeError, ValueError, SyntaxError):  # NumPy reads "f4,, 1" as a list of fields
        candidate = None
    if candidate is not None and not candidate.isnative:  # of a file, mostly: the same numbers, once they are in memory
        candidate = candidate.newbyteorder("=")
    if candidate not in _SHORT:
        names = ", ".join(d.name for d in ALL)
        raise DTypeError(f"{like!r} is not a dtype of limelight; write one of {names}")
    assert candidate is not None
    return ALL[ALL.index(candidate)]  # the canonical object, so that hot paths may compare with `is`


_PYTHON: Final[dict[type, DType]] = {bool: bool_, int: int32, float: float32, complex: complex64}


def short(of: DType) -> str:
    """The two- or three-letter name used in graphs and views: "f32"."""
    return _SHORT.get(of) or of.name  # NumPy takes microseconds to say a dtype's name


def kind(of: DType) -> str:
    """What `of` is a kind of: "bool", "integer", "floating" or "complex"."""
    name = _KIND.get(of)
    if name is None:
        raise DTypeError(f"dtype {of} is not supported; convert to one of {', '.join(d.name for d in ALL)}")
    return name


def is_floating(of: DType) -> bool:
    return kind(of) == "floating"


def is_inexact(of: DType) -> bool:
    """Whether gradients exist for this dtype: floating or complex."""
    return kind(of) in ("floating", "complex")


def holds(wide: DType, narrow: DType) -> bool:
    """Whether values of `narrow` keep their kind in `wide`: booleans fit everywhere, complex in complex alone."""
    order = ("bool", "integer", "floating", "complex")
    return order.index(kind(narrow)) <= order.index(kind(wide))


def default_for(value: Any) -> DType:
    """The dtype that a Python scalar becomes: bool, int32 (int64 beyond 32 bits), float32, complex64."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int32 if -(2**31) <= value < 2**31 else int64
    return _PYTHON[type(value)] if type(value) in _PYTHON else dtype(np.asarray(value).dtype)


def promote(*given: DType) -> DType | None:
    """The dtype in which operands meet: the larger one of a kind, complex for floating with complex, else None.

    Follows the Python Array API standard; uint64 with a signed integer has no common type there, nor here.
    """
    first = given[0]
    for other in given[1:]:
        if other is first or other == first:
            continue
        kinds = {kind(first), kind(other)}
        if len(kinds) > 1 and kinds != {"floating", "complex"}:
            return None
        first = _promote_pair(first, other)
        if kind(first) not in kinds:
            return None
    return first


def _promote_pair(a: DType, b: DType) -> DType:
    if "c" in (a.kind, b.kind):
        return complex128 if {a, b} & {float64, complex128} else complex64
    if {a, b} == {bfloat16, float16}:
        return float32
    if bfloat16 in (a, b):
        return b if a == bfloat16 else a
    return np.promote_types(a, b)


def beside(scalar: object, target: DType) -> DType:
    """The dtype in which a Python scalar meets a tensor of `target`: that one, or complex for a complex number.

    Whether the scalar is of a kind that may stand there is for `fits` to say.
    """
    return _promote_pair(target, complex64) if type(scalar) is complex and is_floating(target) else target


def in_range(value: int, target: DType) -> bool:
    """Whether an int fits into a dtype; any int fits into one that is not an integer type."""
    if kind(target) != "integer":
        return True
    limits = np.iinfo(target)
    return int(limits.min) <= value <= int(limits.max)


def fits(scalar: object, target: DType) -> bool:
    """Whether a Python scalar may stand beside a tensor of `target` without changing its kind."""
    if isinstance(scalar, bool):
        return target == bool_
    allowed = {"bool": (), "integer": (int,), "floating": (int, float), "complex": (int, float, complex)}[kind(target)]
    return isinstance(scalar, allowed)


KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "any": ("bool", "integer", "floating", "complex"),
    "numeric": ("integer", "floating", "complex"),
    "real": ("integer", "floating"),
    "inexact": ("floating", "complex"),
    "wide": ("floating", "complex"),
    "floating": ("floating",),
    "complex": ("complex",),
    "integer": ("integer",),
    "bits": ("bool", "integer"),
    "bool": ("bool",),
}
"""What an op accepts, in one word, as kinds of dtype. "wide" leaves out the 16-bit floats, as LAPACK does."""


@functools.cache
def accepted(word: str) -> frozenset[DType]:
    """The dtypes that a word of `KINDS` stands for."""
    return frozenset(d for d in ALL if kind(d) in KINDS[word] and (word != "wide" or d.itemsize >= 4))
