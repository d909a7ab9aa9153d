"""Compiling in another process, which puts the program on disk for this one: see `exported_program`.

So a compilation takes neither Python's lock nor, but for what is idle, processors from this process; it ends with it,
and whatever goes wrong in it goes wrong elsewhere.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from limelight.executors.xla import disk_cache, exported_program

if TYPE_CHECKING:
    import subprocess

_SCRIPT: Final = exported_program.__file__


class CompilationError(Exception):
    """The other process has not compiled the program; says why."""


class StoppedError(Exception):
    """It was told to stop."""


class CompilerProcess:
    """Compiles one program after the other, each in a process of its own, until it is stopped."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self.may_be_left = False
        """Whether who uses it is where the end of the process need not wait: in Python's own code, not in XLA's."""

    def compile(self, program: bytes, folder: Path | str, most_bytes: int = disk_cache.MOST_BYTES) -> None:
        """Puts the compiled program into the folder, which may grow to so many bytes (-1 for no bound).

        Raises CompilationError, and StoppedError after `stop`.
        """
        if not sys.executable or getattr(sys, "frozen", False):  # a frozen program would start itself once more
            raise CompilationError("Python does not know its own program, and so cannot start another process")
        import subprocess  # noqa: PLC0415  # and much with it

        command = [sys.executable, "-P", _SCRIPT, str(folder), str(most_bytes)]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "JAX_PLATFORMS": "cpu",  # a GPU's memory is not for it: what it compiles runs on CPU:0
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        self._running = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl+C is for this process
        )
        try:
            if self.stopped:
                self._running.kill()
            _, errors = self._running.communicate(program)
        finally:
            status, self._running = self._running.poll(), None
        self.stop_if_told()
        if status:
            last = errors.decode(errors="replace").strip().splitlines() or [f"its process ended with status {status}"]
            raise CompilationError(last[-1][:300])

    def stop_if_told(self) -> None:
        """Raises StoppedError after `stop`."""
        if self.stopped:
            raise StoppedError

    def stop(self) -> None:
        """Ends what is running, and whatever is begun from now on."""
        self.stopped = True
        running = self._running
        if running is not None:
            running.kill()
