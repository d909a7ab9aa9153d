"""Who wants to know that a gradient is None, at once: a staged cell is told while it is traced."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

Asker: TypeAlias = Callable[[Any, Any, Any], None]  # is called with the tape, a target and a source
askers: Final[list[tuple[int, Asker]]] = []
"""Those who asked, and on which thread; empty, as it is nearly always, it costs `gradient` a test of its truth."""


@contextmanager
def told(asker: Asker) -> Iterator[None]:
    """Within its block, `asker` hears of every source on this thread that gets None, after the tape has answered."""
    mine = (threading.get_ident(), asker)
    askers.append(mine)
    try:
        yield
    finally:
        askers.remove(mine)


def tell(tape: Any, targets: Sequence[Any], sources: Sequence[Any], found: Sequence[Any]) -> None:
    """Tells those on this thread which of `sources` got None."""
    for source, gradient in zip(sources, found, strict=True):
        if gradient is None and targets:
            for thread, asker in tuple(askers):
                if thread == threading.get_ident():
                    asker(tape, targets[0], source)
