"""Copies of functions for which names keep what they stand for now, however long the code that binds them goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import CellType, FrameType, FunctionType
from typing import Any

from limelight.user_code import source_line
from limelight.user_code.python_state import names_bound


def closed_over_now(function: Callable[..., Any], frames: Sequence[FrameType]) -> Callable[..., Any]:
    """`function` with the present values of what it closes over and code that runs in `frames` binds.

    Other names stay what they are, and so do those that the function itself binds. The same holds for functions that it
    closes over. Returns `function` itself where there is no such name.
    """
    copy: Callable[..., Any] = _copied(function, frames, {})
    return copy


def frames_up_to(frame: FrameType, last: FrameType | None) -> list[FrameType]:
    """The frames from `frame` outwards, without `last`."""
    frames: list[FrameType] = []
    step: FrameType | None = frame
    while step is not None and step is not last:
        frames.append(step)
        step = step.f_back
    return frames


def _copied(function: Any, frames: Sequence[FrameType], known: dict[int, Any]) -> Any:
    if isinstance(function, functools.partial):
        inner = _copied(function.func, frames, known)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    if type(function) is not FunctionType or source_line.is_library(function.__code__):
        return function
    if id(function) in known:  # one that closes over itself
        return known[id(function)]
    known[id(function)] = function
    cells = dict(_present(function, frames, known))
    if not cells:
        return function
    code, closure = function.__code__, function.__closure__ or ()
    given = [cells.get(name, cell) for name, cell in zip(code.co_freevars, closure, strict=True)]
    copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, tuple(given))
    copy.__kwdefaults__ = function.__kwdefaults__
    return functools.wraps(function)(copy)


def _present(
    function: FunctionType, frames: Sequence[FrameType], known: dict[int, Any]
) -> Iterator[tuple[str, CellType]]:
    """New cells for the names to be kept."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            content = cell.cell_contents
        except ValueError:  # not bound yet
            continue
        inner = _copied(content, frames, known)
        if inner is not content or (name not in names_bound(code) and _is_bound_in(frames, name, content)):
            yield name, CellType(inner)


def _is_bound_in(frames: Sequence[FrameType], name: str, content: Any) -> bool:
    for frame in frames:
        if name in frame.f_code.co_cellvars and source_line.locals_of(frame).get(name) is content:
            return True
    return False
