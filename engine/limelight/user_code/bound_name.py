"""What the user's code calls an object: the name of a variable, or of an attribute of the object whose method runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final

from limelight.user_code import source_line

_FRAMES: Final = 4  # of the user's, in which a name is looked for


def bound_name(x: object, frame: FrameType | None) -> str:
    """A name of `x` in the user's frames at or outside `frame`; "" where it has none, or only one with an underscore.

    Local names come before global ones, and before the attributes of `self`.

    >>> import sys
    >>> encoder = object()
    >>> bound_name(encoder, sys._getframe())
    'encoder'
    """
    for names in _name_spaces(frame):
        for name, value in names.items():
            if value is x and name[0] != "_" and name != "self":
                return name
        for name, value in _attributes(names.get("self")).items():
            if value is x and name[0] != "_":
                return name
    return ""


def _attributes(x: object) -> Mapping[str, Any]:
    """Those of an object that has some, without running code of its class."""
    try:
        attributes = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return {}
    return dict(attributes) if type(attributes) is dict else {}


def _name_spaces(frame: FrameType | None) -> Iterator[Mapping[str, Any]]:
    seen = 0
    while frame is not None and seen < _FRAMES:
        if not source_line.is_library(frame.f_code):
            seen += 1
            yield source_line.locals_of(frame)
            yield dict(frame.f_globals)  # another thread may add to it meanwhile
        frame = frame.f_back
