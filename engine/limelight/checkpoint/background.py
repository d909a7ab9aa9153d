"""Writing on a thread: one for each checkpoint, in order; what fails is raised by the next call."""

from __future__ import annotations

import atexit
import importlib
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Final

from limelight import forking
from limelight.errors import CheckpointError, CheckpointWarning

_MOST_WAITING: Final = 4  # snapshots in memory, before a caller waits for the disk
_unfinished: Final[weakref.WeakSet[BackgroundWriter]] = weakref.WeakSet()


class BackgroundWriter:
    """Runs jobs one after the other on a thread that lives while there are any."""

    def __init__(self) -> None:
        self._queues: Any = importlib.import_module("queue")  # when first needed: importing limelight does not take it
        self._jobs: Any = self._queues.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        _unfinished.add(self)

    def add(self, job: Callable[[], object]) -> None:
        """Has `job` run. Raises what an earlier one raised; waits where several wait already."""
        self.raise_error()
        self._jobs.put(job)
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="limelight checkpoint")
            try:
                self._thread.start()
                return
            except RuntimeError:  # there are too many, or Python ends: then it is written here
                self._thread = None
        self._run()

    def wait(self) -> None:
        """Returns when all jobs are done. Raises what one of them raised."""
        self._jobs.join()
        self.raise_error()

    def raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None and not isinstance(error, Exception):  # meant for the thread: it ends no program
            raise CheckpointError(f"a checkpoint was not written: {_ended_by(error)}") from error
        if error is not None:
            raise error

    def _run(self) -> None:
        while True:
            with self._lock:
                try:
                    job = self._jobs.get_nowait()
                except self._queues.Empty:
                    self._thread = None
                    return
            try:
                job()
            except BaseException as error:  # it is raised by the next call, and ends no thread
                if not isinstance(error, Exception) and threading.current_thread() is not self._thread:
                    raise  # an interrupt of the caller, who writes
                self._error = self._error or error
            finally:
                self._jobs.task_done()

    def renew(self) -> None:
        """In a process that was forked: its parent writes."""
        self.__init__()  # type: ignore[misc]  # of this class, which has no subclasses


def _ended_by(error: BaseException) -> str:
    return str(error) if isinstance(error, Exception) else f"its writing was ended by {type(error).__name__}"


@atexit.register
def _tell_at_exit() -> None:
    for writer in list(_unfinished):
        writer._jobs.join()
        if writer._error is not None:
            warnings.warn(
                f"the last checkpoint was not written: {_ended_by(writer._error)}", CheckpointWarning, stacklevel=1
            )


def _renew() -> None:
    for writer in list(_unfinished):
        writer.renew()


forking.in_child(_renew)
