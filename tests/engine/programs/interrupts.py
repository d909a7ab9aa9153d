"""Interrupts a program at a chosen point of the engine's code."""

from __future__ import annotations

import contextlib
import dis
import functools
import itertools
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


def _is_swept(frame: FrameType) -> bool:
    """Whether a frame of the engine's, or of `contextlib`; but Python itself swallows what a weak reference raises."""
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    return (file.startswith(FOLDER) or file == contextlib.__file__) and name not in ("_forget", "forget", "<genexpr>")


def interrupted(work: Work, at: int, exits: list[int] | None = None, places: list[Any] | None = None) -> int:
    """Runs `work` and raises KeyboardInterrupt at the given point: a function of the engine's begins, or a line of it.

    Not between a block and the call of what ends it: Python handles no signal there, or a lock would stay taken.

    Returns how many points it came by; those where an `__exit__` begins are added to `exits`. The error is kept, as a
    notebook does, and with it whatever is suspended.
    """
    points = 0

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal points
        if event == "call" or (event == "line" and not _ends_block(frame)):
            points += 1
            if places is not None:
                places.append((frame.f_code, frame.f_lineno if event == "line" else 0))
            if event == "call" and frame.f_code.co_name == "__exit__" and exits is not None:
                exits.append(points)
            if points == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return local

    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: local(frame, event, arg) if _is_swept(frame) else None)
    try:
        work()
    except KeyboardInterrupt as error:
        kept.append(error)
    finally:
        sys.settrace(before)
    return points


def _ends_block(frame: FrameType) -> bool:
    """Whether what the frame comes to is the end of a `with` statement: the call `__exit__(None, None, None)`."""
    code = frame.f_code
    there = (x for x in _instructions(code) if x.offset >= frame.f_lasti and x.opname not in ("NOP", "SWAP"))
    return all(x.opname == "LOAD_CONST" and x.argval is None for x in itertools.islice(there, 3))


_instructions = functools.cache(lambda code: list(dis.get_instructions(code)))
kept: Final[deque[BaseException]] = deque(maxlen=3)
MOST: Final = 160 if os.environ.get("LIMELIGHT_TESTS") == "full" else 16
"""Points of a program that are swept: about 30 ms each, and a program comes by 1,000 to 50,000 of them."""


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
