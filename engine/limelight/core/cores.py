"""The processor's cores: how many this process may use, and work of kernels shared out among them.

Threads are made for each piece of work, of which the caller does its share: nothing waits busily, outlives its work, or
is missing after a fork. NumPy gives up the GIL in its loops, and so the others run while one calls.

The caller waits for no thread that has not begun: where others have the cores, it does all the work itself. It would
wait for a `threading.Thread` to start.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import Final, TypeVar

Piece = TypeVar("Piece")

WORTH: Final = 1 << 20
"""Elements from which on two threads were quicker: 0.6 to 1.0 of one's time at 4 million, 0.7 to 1.5 at 800,000."""


@functools.cache
def threads() -> int:
    """As many as this process may use: as the BLAS of NumPy, which is set by the environment."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    return min(cores, int(wanted)) if wanted.isdigit() and int(wanted) else cores


def for_each(function: Callable[[Piece], object], pieces: Iterable[Piece], size: int) -> None:
    """Calls `function` with each piece, on several threads if that is worth it.

    Where a call raises, no further piece is begun, and the first error is raised when those that were begun are done.

    Args:
        function: it writes where it does for no other piece, so that numbers are the same for any number of threads.
        pieces: what it is called with; begun in order.
        size: about how many elements it goes through, in all pieces together.
    """
    left = deque(pieces)
    count = min(threads(), len(left)) if size >= WORTH else 1
    if count > 1:
        _share(function, left, count)
    else:
        for piece in left:
            function(piece)


def _share(function: Callable[[Piece], object], left: deque[Piece], count: int) -> None:
    errors: list[BaseException] = []
    begun: list[threading.Lock] = []  # of each helper a lock, which it holds while it is at work

    def work() -> None:
        try:
            while True:
                try:
                    piece = left.popleft()
                except IndexError:
                    return
                function(piece)
        except BaseException as error:  # noqa: BLE001  # raised below
            left.clear()
            errors.append(error)

    def help_out() -> None:
        done = threading.Lock()
        with done:
            begun.append(done)
            work()

    try:
        with contextlib.suppress(RuntimeError):  # where no more threads can be made, those that are there do it all
            for _ in range(count - 1):
                _thread.start_new_thread(copy_context().run, (help_out,))  # NumPy's errstate is a context variable
        work()
    finally:
        left.clear()  # of an interrupt; who begins from now on finds nothing
        _wait_for(begun)
    if errors:
        del errors[1:]
        raise errors.pop()  # which nothing else here holds: its traceback holds this frame


def _wait_for(begun: Iterable[threading.Lock]) -> None:
    """Waits until all locks are free; if Ctrl-C comes meanwhile, for the piece that each thread is at."""
    interrupt: BaseException | None = None
    for done in begun:
        while done.locked():
            try:
                with done:
                    pass
            except BaseException as error:  # noqa: BLE001  # raised below
                interrupt = error
    if interrupt is not None:
        raise interrupt
