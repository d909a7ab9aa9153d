"""What a process does as soon as it has been forked: threads that held its locks, or were in a block, are not in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def before(callback: Callable[[], object]) -> None:
    """Calls `callback()` before this process forks, in the thread that does."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=callback)


def in_child(callback: Callable[[], object]) -> None:
    """Calls `callback()` in each process that is forked from this one, in its one thread, before it goes on."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
        os.register_at_fork(after_in_child=callback)


def renew_in_child(module: str, name: str, lock: Callable[[], object]) -> None:
    """Has a forked process begin with a new lock, free, in place of the one that is `name` in a module."""
    in_child(lambda: setattr(sys.modules[module], name, lock()))
