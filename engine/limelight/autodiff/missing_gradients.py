"""Listeners that are told at once of a gradient that is None: a staged cell is, while it is traced."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from limelight.with_blocks import Block

Listener: TypeAlias = Callable[[Any, Any, Any], None]  # is called with the tape, a target and a source
listeners: Final[list[tuple[Block, Listener]]] = []
"""With the block of each; empty, as it is nearly always, it costs `gradient` a test of its truth."""


@contextmanager
def listener_scope(listener: Listener) -> Iterator[None]:
    """Within its block, `listener` hears of every source on this thread that gets None, after the tape has answered."""
    registration = (Block(sys._getframe(1)), listener)
    listeners.append(registration)
    try:
        yield
    finally:
        listeners.remove(registration)


def notify(tape: Any, targets: Sequence[Any], sources: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Tells the listeners on this thread which of `sources` got None."""
    for source, gradient in zip(sources, gradients, strict=True):
        if gradient is None and targets:
            for block, listener in tuple(listeners):
                if block.thread == threading.get_ident() and not block.is_over:
                    listener(tape, targets[0], source)
