"""Draws for initial values that are overwritten at once: they are given back to the generator.

A run that goes on restores its generator and makes its layers after that, on their first call. What their initialisers
draw, the run that was never interrupted did not draw at that point: so where a variable is given a saved value, and
nothing else was drawn since it was made, its generators are put back to where they were before.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.core import attachments
from limelight.ops.random._draws import Source, sources

_DRAWS: Final = "_initial_draws"
_WRITTEN: Final = "_written_draws"


def _begins() -> Callable[[Any], None]:
    before = [(weakref.ref(source), source.array) for source in sources()]
    attachments.written_draws.clear()

    def ends(variable: Any) -> None:
        if attachments.written_draws:
            vars(variable)[_WRITTEN] = list(attachments.written_draws)
            attachments.written_draws.clear()
        draws = [(reference, old, _now(reference)) for reference, old in before]
        drawn = [draw for draw in draws if draw[2] is not None and not np.array_equal(draw[1], draw[2])]
        if drawn:
            vars(variable)[_DRAWS] = drawn

    return ends


def _now(reference: Callable[[], Source | None]) -> Any:
    source = reference()
    return None if source is None else source.array


def has_draws(variable: Any) -> bool:
    """Whether it is known from which generators the initial value of `variable` was drawn."""
    return not vars(variable).keys().isdisjoint((_DRAWS, _WRITTEN))


def give_back(variable: Any) -> Callable[[], None]:
    """Puts the generators that the initial value of `variable` was drawn from back, unless more was drawn since.

    Of several variables the last is to be first. Returns a function that takes the draws again.
    """
    draws = vars(variable).pop(_DRAWS, ())
    written = vars(variable).pop(_WRITTEN, ())
    put_back = [take_out() for take_out in reversed(written)]
    taken = []
    for reference, before, after in draws:
        source = reference()
        if source is not None and np.array_equal(source.array, after):
            source.set(before)
            taken.append((source, after))

    def again() -> None:
        vars(variable)[_DRAWS], vars(variable)[_WRITTEN] = draws, written
        for put in reversed(put_back):
            put()
        for source, after in taken:
            source.set(after)

    return again


attachments.initial_values.append(_begins)
