"""Random numbers of NumPy or `random` that a trace draws: a warning at the line, since every call gets the same ones.

The code says which lines may draw, and from which generator; whether that one moved while tracing says whether it drew.
Initial values are not told of: a trace that creates variables is made again without them, and the second one counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from limelight.errors import HostRandomnessWarning
from limelight.explain.tracing.side_effects import GENERATORS, draw_instead
from limelight.explain.tracing.snapshot import arguments_by_name
from limelight.staging.key_parts import Part
from limelight.user_code import source_line
from limelight.user_code.names_read import Read, reads
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import warn_at


class HostDraw(NamedTuple):
    """A line of a trace's code that has drawn: `what` is its call, `instead` what to write so that it is staged."""

    what: str
    line: Source
    instead: str


def host_draws(
    function: Callable[..., Any], paths: Sequence[str], parts: Sequence[Part]
) -> Callable[[], Sequence[HostDraw]]:
    """Call this before a trace whose key has these parts, under these paths, and the result after it: what it drew.

    Never fails: it is only for a warning.
    """
    if hasattr(function, "__limelight_written__"):  # a notebook's cell, which tells of all its side effects itself
        return tuple
    try:
        may_draw = [
            (read, generator)
            for read in reads(function, arguments_by_name(paths, parts))
            if read.use.how == "call" and (generator := _generator(read)) is not None
        ]
        before = [_state(generator) for _, generator in may_draw]
    except Exception:  # noqa: BLE001  # a subclass of the user's
        return tuple
    return lambda: _drawn(may_draw, before) if may_draw else ()


def warn_of_draws(drawn: Sequence[HostDraw]) -> None:
    """Warns at each line that has drawn: HostRandomnessWarning."""
    for draw in drawn:
        message = (
            f"`{draw.what}` draws while `{draw.line.function}` is traced, and every call that finds the trace gets the "
            f"same numbers{source_line.at(draw.line)}. Instead: {draw.instead}"
        )
        warn_at(draw.line, message, HostRandomnessWarning)


def _drawn(may_draw: Sequence[tuple[Read, Any]], before: Sequence[Any]) -> list[HostDraw]:
    try:
        moved = [read for (read, x), state in zip(may_draw, before, strict=True) if _state(x) != state]
        named = [(read, _last(read)) for read in moved]
        draws = [HostDraw(f"{x.use.chain}(...)", x.line, draw_instead(x, last)) for x, last in named if last != "seed"]
    except Exception:  # noqa: BLE001  # as above
        return []
    return list(dict.fromkeys(draws))


def _last(read: Read) -> str:
    return str(read.use.chain.steps[-1][1]) if read.use.chain.steps else read.use.chain.name


def _generator(read: Read) -> Any:
    """The generator that a call draws from, where it is known; that of `np.random.normal` is NumPy's own."""
    owners = (read.base, getattr(read.value, "__self__", None))
    return next((x for x in owners if isinstance(x, GENERATORS) and not isinstance(x, random.SystemRandom)), None)


def _state(generator: Any) -> Any:
    """Something that is another one after a draw."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return _compared(generator.get_state(legacy=False))
    return _compared(generator.bit_generator.state)


def _compared(state: Any) -> Any:
    if isinstance(state, dict):
        return tuple([(key, _compared(x)) for key, x in state.items()])
    return state.tobytes() if isinstance(state, np.ndarray) else state
