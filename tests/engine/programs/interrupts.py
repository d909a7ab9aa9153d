"""Interrupts a program at a chosen point of the engine's code."""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import random
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import limelight as ll

Work = Callable[[], Any]

FOLDER = str(Path(ll.__file__).parent)


def _is_swept(code: CodeType) -> bool:
    """Whether code is the engine's, or of `contextlib`; but Python itself swallows what a weak reference raises."""
    file, name = code.co_filename, code.co_name
    return (file.startswith(FOLDER) or file == contextlib.__file__) and name not in ("_forget", "forget", "<genexpr>")


def interrupted(work: Work, at: int, exits: list[int] | None = None, places: list[Any] | None = None) -> int:
    """Runs `work` and raises KeyboardInterrupt at the given point: a function of the engine's begins, or a line of it.

    Not between a block and the call of what ends it: Python handles no signal there, or a lock would stay taken.

    Returns how many points it came by; those where an `__exit__` begins are added to `exits`. The error is kept, as a
    notebook does, and with it whatever is suspended.
    """
    points = 0

    def come_by(frame: FrameType, line: int) -> None:
        nonlocal points
        points += 1
        if places is not None:
            places.append((frame.f_code, line))
        if not line and frame.f_code.co_name == "__exit__" and exits is not None:
            exits.append(points)
        if points == at:
            sys.settrace(None)
            raise KeyboardInterrupt

    @functools.cache  # not for each frame: what refers to itself is garbage for the collector
    def local_of(code: CodeType) -> Any:
        ends = _ends_of_blocks(code)

        def local(frame: FrameType, event: str, arg: Any) -> Any:
            if event == "line" and frame.f_lasti not in ends:
                come_by(frame, frame.f_lineno)
            return local

        return local

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        if not _is_swept(frame.f_code):
            return None
        come_by(frame, 0)
        return local_of(frame.f_code)

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        work()
    except KeyboardInterrupt as error:
        kept.append(error)
    finally:
        sys.settrace(before)
    return points


@functools.cache
def _ends_of_blocks(code: CodeType) -> frozenset[int]:
    """The instructions at which a `with` statement ends: where the call `__exit__(None, None, None)` comes next."""
    instructions = list(dis.get_instructions(code))
    kept = [x for x in instructions if x.opname not in ("NOP", "SWAP")]
    nones = [x.opname == "LOAD_CONST" and x.argval is None for x in kept]
    ends = {x.offset: all(nones[i : i + 3]) for i, x in enumerate(kept)}
    found, ends_here = set(), True  # behind the last instruction there is none that could be another
    for x in reversed(instructions):
        ends_here = ends.get(x.offset, ends_here)  # what a NOP leads to
        found.update([x.offset] if ends_here else [])
    return frozenset(found)


kept: Final[deque[BaseException]] = deque(maxlen=3)
MOST: Final = 60 if os.environ.get("LIMELIGHT_TESTS") == "full" else 16
"""Points of a program that are swept: about 6 ms each, and a program comes by 1,000 to 50,000 of them."""


def places_of(work: Callable[[], Any]) -> list[tuple[CodeType, int]]:
    """The function and the line of each point that `interrupted` counts; line 0 is where the function begins."""
    places: list[tuple[CodeType, int]] = []
    interrupted(work, -1, places=places)
    return places


def spread(places: Sequence[tuple[CodeType, int]], most: int) -> list[int]:
    """At most `most` points: of each function its beginning, then of each line, then any, in an order drawn once."""
    first: dict[tuple[CodeType, int], int] = {}
    for at, place in enumerate(places, 1):
        first.setdefault(place, at)
    entries = [at for (_, line), at in first.items() if not line]
    lines = [at for (_, line), at in first.items() if line]
    others = sorted(set(range(1, len(places) + 1)) - set(first.values()))
    drawn = random.Random(0)
    return sorted([at for group in (entries, lines, others) for at in drawn.sample(group, len(group))][:most])
