"""The thread in which hot functions are compiled, one after the other, while calls go on.

It is there while there is something to compile. When the process ends it stops at the next op that it writes out, and
what is compiling elsewhere is ended.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from limelight import forking
from limelight.executors.xla.compiler_process import CompilerProcess

_PATIENCE: Final = 10.0
"""Seconds that the end of the process waits for the thread; it does not come to that but on a very busy machine."""


class CompileThread:
    """Runs jobs one after the other. A job gets the process that compiles, and asks that whether it is to stop."""

    def __init__(self) -> None:
        self.process = CompilerProcess()
        self._lock = threading.Lock()
        self._jobs: deque[Callable[[CompilerProcess], None]] = deque()
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[CompilerProcess], None]) -> None:
        """Has the job run when those before it are done. It must not raise. Where no thread can begin it never runs."""
        with self._lock:
            if self.process.stopped:
                return
            if self._thread is None:
                atexit.unregister(self.stop)
                atexit.register(self.stop)
                thread = threading.Thread(target=self._work, name="limelight compiles", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # there are too many, or the interpreter is at its end
                    return
                self._thread = thread
            self._jobs.append(job)

    def stop(self) -> None:
        """Ends what runs and waits for that; nothing runs from then on."""
        with self._lock:
            self._jobs.clear()
            thread = self._thread
            self.process.stop()
        if thread is not None and not self.process.may_be_left:
            thread.join(_PATIENCE)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._thread = None
                    return
                job = self._jobs.popleft()
            job(self.process)
            del job  # or what it compiles would live on while the next one is waited for


_threads: Final = [CompileThread()]


def submit(job: Callable[[CompilerProcess], None]) -> None:
    """Has a job run in the thread of this process."""
    _threads[0].submit(job)


def _begin_anew() -> None:
    """In a forked process: the thread is not in it, and may have held the lock that its end would wait for."""
    atexit.unregister(_threads[0].stop)
    _threads[0] = CompileThread()


forking.in_child(_begin_anew)
