"""A call on the line of a magic: Python, and no words for argparse, as `step(x, -1)` has a blank and a dash in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

STAND_IN: Final = "\ufffc"
"""Stands for the call while argparse reads the line: one word, and no flag."""


def set_aside(line: str, takes_value: Callable[[str], bool]) -> tuple[str, str]:
    """The line with `STAND_IN` for the first call on it, and that call; "" where there is none.

    A call is what has brackets outside of quotes, from the blank before to the blank behind.

    Args:
        line: what stands behind the magic.
        takes_value: whether a word is a flag whose value is the next word, which is no call.

    >>> set_aside('-g net(x, -1).sum() --save a(1).svg', lambda flag: flag == "--save")
    ('-g \ufffc --save a(1).svg', 'net(x, -1).sum()')
    >>> set_aside("--find 'op:add (x)' net", lambda flag: flag == "--find")
    ("--find 'op:add (x)' net", '')
    """
    at, before = 0, ""
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        end, has_brackets = _word(line, at)
        word = line[at:end]
        if has_brackets and not word.startswith("-") and not takes_value(before):
            return line[:at] + STAND_IN + line[end:], word
        at, before = end, word
    return line, ""


def _word(line: str, start: int) -> tuple[int, bool]:
    """The end of the word that begins here, and whether it has round brackets, all of which are closed."""
    depth, quote, has_brackets, at = 0, "", False, start
    while at < len(line):
        character = line[at]
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([{":
            has_brackets |= character == "("
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character.isspace() and depth <= 0:
            break
        at += 1
    return min(at, len(line)), has_brackets and not depth and not quote
