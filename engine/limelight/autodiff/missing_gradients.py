"""Who is told at once of a gradient that is None: listeners, as a staged cell is while it is traced, else the user."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from limelight.core import dtypes
from limelight.core.variable import Resource
from limelight.errors import LostGradientWarning
from limelight.user_code.warn_at import warn_here
from limelight.with_blocks import Block, block_of

Listener: TypeAlias = Callable[[Any, Any, Any], None]  # is called with the tape, a target and a source
listeners: Final[list[tuple[Block, Listener]]] = []
"""With the block of each; empty, as it is nearly always, it costs `gradient` a test of its truth."""


@contextmanager
def listener_scope(listener: Listener) -> Iterator[None]:
    """Within its block, `listener` hears of every source on this thread that gets None, after the tape has answered."""
    registration = (block_of(sys._getframe(1)), listener)
    listeners.append(registration)
    try:
        yield
    finally:
        listeners.remove(registration)


def tell(tape: Any, targets: Sequence[Any], sources: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Tells which of `sources` got None: the listeners, where there are any, else the user of what never gets one."""
    if listeners:
        notify(tape, targets, sources, gradients)
    else:
        warn_of_integers(sources, gradients)


def notify(tape: Any, targets: Sequence[Any], sources: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Tells the listeners on this thread which of `sources` got None."""
    for source, gradient in zip(sources, gradients, strict=True):
        if gradient is None and targets:
            for block, listener in tuple(listeners):
                if block.thread == threading.get_ident() and not block.is_over:
                    listener(tape, targets[0], source)


def warn_of_integers(sources: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Warns, at the line that asks a tape, of variables that are to be trained and are integers."""
    for source, gradient in zip(sources, gradients, strict=True):
        if gradient is not None or not isinstance(source, Resource):
            continue
        if source.trainable and not dtypes.is_inexact(source.dtype):
            warn_here(
                f"the gradient of an {source.dtype.name} variable is None, as only floating numbers have one; make it "
                "of floats, as ll.Variable(2.0), or with trainable=False where it counts",
                LostGradientWarning,
            )
