"""Was a value asked for its numbers in so many words? `x.numpy()` and `float(x)` say so; `array[i] = x` does not.

A gradient ends at either. Where the words say that numbers are meant, as in a log, a warning would be noise; where
NumPy or `math` ask behind the line's back, what comes of it is often meant to be differentiated.
"""

from __future__ import annotations

import dis
import re
import sys
import warnings
from types import CodeType, FrameType
from typing import Any, Final

from limelight.errors import LostGradientWarning
from limelight.user_code import source_line

_STORES: Final = {dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap}
_MATH: Final = re.compile(r"c?math\.(\w+)\(")
_ASKED: Final = ("__array__", "__float__", "forwarded")
"""The library's functions that Python and NumPy call, and that call each other: a variable's its value's."""

_meant: Final[set[CodeType]] = set()


def numbers_are_meant_in(caller: Any) -> None:
    """Has functions that `caller` calls take numbers without a warning: that is what they are there for."""
    _meant.add(caller.__code__)


def warn_if_number_taken(spec: Any) -> None:
    """Warns where `float(x)` of a watched value, of type `spec`, is not what the user's line says.

    That is at `array[i] = x`, and at `math.exp(x)`. To be called by `__float__`.
    """
    frame = _asking()
    if frame is None:
        return
    if frame.f_code.co_code[frame.f_lasti] in _STORES:
        _warn(frame, "an assignment into an array", spec, "x.at[i].set(y) for array[i] = y, ll.stack([...]) of parts")
        return
    called = _MATH.match(source_line.segment(frame.f_code, frame.f_lasti) or "")
    if called is not None:
        _warn(frame, called[0][:-1], spec, f"ll.{called[1]}(x), or what does its work")


def is_array_store() -> bool:
    """Whether `array[i] = x` asks for the number, rather than `float(x)`. To be called by `__float__`."""
    frame = _asking()
    return frame is not None and frame.f_code.co_code[frame.f_lasti] in _STORES


def warn_of_array_taken(spec: Any) -> None:
    """Warns where NumPy takes a watched value for an array: `np.asarray(x)`, `np.array([x, y])`, `array[:2] = x`.

    To be called by `__array__`.
    """
    frame = _asking()
    if frame is not None:
        _warn(frame, "NumPy", spec, "ll.stack([...]) for np.array([...]), x.at[i].set(y) for array[i] = y")


def _asking() -> FrameType | None:
    """The user's frame that asks; None for a package's: what is plotted or compared in a test hardly comes back."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name in _ASKED and source_line.is_library(frame.f_code):
        frame = frame.f_back
    if frame is None or source_line.is_library(frame.f_code) or source_line.is_installed(frame.f_code.co_filename):
        return None
    caller: FrameType | None = frame
    while caller is not None and not source_line.is_library(caller.f_code):
        caller = caller.f_back
    return None if caller is not None and caller.f_code in _meant else frame


def _warn(frame: FrameType, who: str, spec: Any, instead: str) -> None:
    line = source_line.Position(frame.f_code, frame.f_lasti).resolve()
    warnings.warn_explicit(
        f"{who} takes the numbers of a tensor that is watched, {spec}, and its gradient ends there"
        f"{source_line.at(line)}. Write {instead}, and functions of ll; or x.numpy() or float(x), which say that "
        "numbers are meant",
        LostGradientWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),  # once a line, as `warnings.warn` has it
    )
