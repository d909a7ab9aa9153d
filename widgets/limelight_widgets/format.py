"""Numbers and names as people read them."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from math import isfinite
from typing import Final

UNSIZED: Final = 2.0**-16
"""Counts for a value of unknown size: a sum with one in it is no whole number, and so is told as "at least"."""
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_BLANKS: Final = re.compile(r"[^\S\N{NO-BREAK SPACE}]+")  # at which a line may break
_ARROW: Final = re.compile(r"(?<!\)) -> | -> (?!\S*:)")


def bytes_text(count: float) -> str:
    """A number of bytes with a decimal unit and at most three digits; with unknown sizes, what it is at least.

    >>> bytes_text(40), bytes_text(31_360), bytes_text(1_000_000)
    ('40 B', '31.4 kB', '1 MB')
    >>> bytes_text(56 + 2 * UNSIZED), bytes_text(UNSIZED)
    ('≥ 56 B', '? B')
    """
    if count % 1:
        return f"≥ {bytes_text(count // 1)}" if count > 1 else "? B"
    size = float(count)
    for unit in _BYTE_UNITS[:-1]:
        if abs(size) < 999.5:
            return f"{_three_digits(size)} {unit}"
        size /= 1000.0
    return f"{_three_digits(size)} {_BYTE_UNITS[-1]}"


def seconds_text(seconds: float | None) -> str:
    """A duration with a fitting unit; a dash where it is not known.

    >>> seconds_text(0.0381), seconds_text(4.2e-06), seconds_text(None)
    ('38.1 ms', '4.2 µs', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 999.5e-6:
        return f"{_three_digits(seconds * 1e6)} µs"
    if seconds < 0.9995:
        return f"{_three_digits(seconds * 1e3)} ms"
    return f"{_three_digits(seconds)} s"


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun.

    >>> counted(1, "entry", "entries"), counted(1200, "entry", "entries")
    ('1 entry', '1,200 entries')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def shortened(text: str, width: int) -> str:
    """`text` on one line of at most `width` characters, an ellipsis standing for what is left out.

    >>> shortened("a long name", 7)
    'a long…'
    """
    line = _BLANKS.sub(" ", text[: 4 * width + 4]).strip()
    return line if len(line) <= width else line[: max(width - 1, 0)].rstrip() + "…"


def short_device(name: str | None) -> str:
    """A device's short name: the part after the last "device:", as people write it in a device scope.

    >>> short_device("/job:localhost/task:0/device:CPU:0"), short_device("GPU:1"), short_device(None)
    ('CPU:0', 'GPU:1', '')
    """
    return (name or "").rpartition("device:")[2]


def rounded(number: float, digits: int) -> float:
    """A number with so many digits behind the point; halves go up, as in JavaScript: live views say the same.

    >>> rounded(2.25, 1), rounded(12250.0, -2), f"{2.25:.1f}"
    (2.3, 12300.0, '2.2')
    """
    return float(Decimal(number).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)) if isfinite(number) else number


def _three_digits(number: float) -> str:
    digits = 0 if abs(number) >= 99.95 else 1
    return f"{rounded(number, digits):.{digits}f}".removesuffix(".0")


def joined_arrows(text: str) -> str:
    """Prose with arrows that stay on one line with what they connect; that of an annotation is code.

    >>> joined_arrows("axis 0: 16 -> 5") == "axis 0: 16\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}5"
    True
    >>> joined_arrows("def f(x) -> int:")
    'def f(x) -> int:'
    """
    return _ARROW.sub("\u00a0→\u00a0", text)
