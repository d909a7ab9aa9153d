"""Random numbers of NumPy or `random` that a trace draws: a warning at the line, since every call gets the same ones.

The code says which lines may draw, and from which generator; whether that one moved while tracing says whether it drew.
Initial values are not told of: a trace that creates variables is made again without them, and the second one counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.errors import HostRandomnessWarning
from limelight.explain.tracing.side_effects import GENERATORS, attribute_or_none, draw_instead
from limelight.explain.tracing.snapshot import arguments_by_name
from limelight.staging.key_parts import Part
from limelight.user_code import source_line
from limelight.user_code.names_read import Read, reads
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import warn_at

_PLAIN: Final = frozenset([int, float, str, bytes, bool, type(None)])


class HostDraw(NamedTuple):
    """A line of a trace's code that has drawn: `what` is its call, `instead` what to write so that it is staged."""

    what: str
    line: Source
    instead: str


def host_draws(
    function: Callable[..., Any], paths: Sequence[str], parts: Sequence[Part]
) -> Callable[[], Sequence[HostDraw]]:
    """Call this before a trace whose key has these parts, under these paths, and the result after it: what it drew."""
    if hasattr(function, "__limelight_written__"):  # a notebook's cell, which tells of all its side effects itself
        return tuple
    may_draw = [
        (read, generator)
        for read in reads(function, arguments_by_name(paths, parts))
        if read.use.how == "call" and (generator := _generator(read)) is not None
    ]
    before = [_state(generator) for _, generator in may_draw]
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
    moved = [read for (read, x), state in zip(may_draw, before, strict=True) if _state(x) != state]
    named = [(read, _last(read)) for read in moved]
    draws = [HostDraw(f"{x.use.chain}(...)", x.line, draw_instead(x, last)) for x, last in named if last != "seed"]
    return list(dict.fromkeys(draws))


def _last(read: Read) -> str:
    return str(read.use.chain.steps[-1][1]) if read.use.chain.steps else read.use.chain.name


def _generator(read: Read) -> Any:
    """The generator that a call draws from, where it is known; that of `np.random.normal` is NumPy's own."""
    owners = (read.base, attribute_or_none(read.value, "__self__"))
    return next((x for x in owners if isinstance(x, GENERATORS) and not isinstance(x, random.SystemRandom)), None)


def _state(generator: Any) -> Any:
    """Something that is another one after a draw; None where a class of the user's has nothing to tell."""
    try:
        if isinstance(generator, random.Random):
            state: Any = generator.getstate()
        elif isinstance(generator, np.random.RandomState):
            state = generator.get_state(legacy=False)
        else:
            state = generator.bit_generator.state
    except Exception:  # noqa: BLE001  # of a method of the user's
        return None
    return _compared(state)


def _compared(state: Any) -> Any:
    """The state as plain values and bytes: a user's own might not compare."""
    if isinstance(state, dict):
        return tuple([(key, _compared(x)) for key, x in state.items()])
    if isinstance(state, tuple | list):
        return tuple(state) if _PLAIN.issuperset(map(type, state)) else tuple(map(_compared, state))
    if isinstance(state, np.ndarray):
        return state.tobytes()
    return state if type(state) in _PLAIN else None
