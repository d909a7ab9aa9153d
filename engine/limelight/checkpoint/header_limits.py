"""What the JSON of a file may take in memory: bounded by the size of the file, for readers and for writers alike.

A stranger's file of a few megabytes could otherwise have JSON that takes gigabytes. Both ask the same question, so what
is written can be read. The figures were measured (CPython 3.11, `tracemalloc`), and hold for the worst JSON of a kind.
"""

from __future__ import annotations

from typing import Final

ALLOWANCE: Final = 48 << 20  # bytes beyond a file's size that its description may take
_COSTS: Final = {
    "{": 60,  # an empty dictionary
    ":": 160,  # a key, and the pair that it is in before
    "[": 100,  # a list of up to four elements
    ",": 34,  # a place in a list, and a number
    '"': 18,  # half of a short string
}
_WIDE: Final = 5  # bytes a character, where one is not of Latin-1: four, and one before it is met


def fits(text: str, size: int) -> bool:
    """Whether the objects that a JSON text means take at most `ALLOWANCE` bytes more than the size of its file.

    >>> fits('{"a":1}', 100), fits("[" * 1_000_000, 100)
    (True, False)
    """
    return size_for(text) <= size


def size_for(text: str) -> int:
    """The size of the smallest file that may have a JSON text in its header; below zero where any may."""
    tokens = sum(cost * text.count(token) for token, cost in _COSTS.items())
    strings = len(text) * (_WIDE if "\\u" in text or not text.isascii() else 1)
    return tokens + strings + len(text) - ALLOWANCE


def fits_as_text(header: bytes, size: int) -> bool:
    """Whether a header may be decoded, with a long string within it: that is there twice then."""
    return size_for_header(header) <= size


def size_for_header(header: bytes) -> int:
    """The size of the smallest file that may have a header."""
    width = 1 if header.isascii() and b"\\u" not in header.replace(b"\\\\", b"") else 2 * _WIDE
    return (1 + width) * len(header) - ALLOWANCE
