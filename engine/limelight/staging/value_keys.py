"""Values that are keyed by words: by their `repr`, or by what their `__limelight_key__` returns.

Besides plain Python values these are values that never change and whose `repr` says all: dates, paths, exact numbers.
An object has a say by its method `__limelight_key__`, which returns plain values; two objects of one key share a trace,
which was made with the first. A signature shows which rule was used (`structured_inputs`).
"""

from __future__ import annotations

from typing import Any, Final

from limelight.errors import SignatureError

BY_REPR: Final = (float, complex, slice)
_IMMUTABLE: Final = frozenset([
    "datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta", "decimal.Decimal",
    "fractions.Fraction", "uuid.UUID", "pathlib.PosixPath", "pathlib.PurePosixPath", "pathlib.PureWindowsPath",
    "pathlib.WindowsPath", "pathlib._local.PosixPath", "pathlib._local.PurePosixPath",
    "pathlib._local.PureWindowsPath", "pathlib._local.WindowsPath",
])  # fmt: skip
"""Types whose `repr` says all, by name, since most programs import few of them."""
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))


class Words(str):
    """What is keyed in place of a value: its `repr`, or that of its own key."""

    __slots__ = ()


def words_for(x: Any) -> Words | None:
    """What to key `x` by besides its type, where that is words; None where it is not.

    Raises SignatureError where its method `__limelight_key__` returns anything but plain values.
    """
    kind = type(x)
    if f"{kind.__module__}.{kind.__qualname__}" in _IMMUTABLE:
        return Words(repr(x))
    own = getattr(kind, "__limelight_key__", None)
    if own is None:
        return None
    key = own(x)
    if not _is_plain(key):
        raise SignatureError(
            f"__limelight_key__ of a {kind.__name__} returned a {type(key).__name__}; it must return plain values: "
            "numbers, strings, None, and tuples of these"
        )
    return Words(f"{kind.__name__} {key!r}")


def _is_plain(key: Any) -> bool:
    return all(map(_is_plain, key)) if type(key) is tuple else type(key) in _PLAIN
