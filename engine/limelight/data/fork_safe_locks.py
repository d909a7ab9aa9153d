"""Locks that are free in a forked process: whoever held one is not in it, so each of them is made anew."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Final

from limelight import forking

_owners: Final[weakref.WeakKeyDictionary[Any, str]] = weakref.WeakKeyDictionary()


def lock_of(owner: Any, name: str) -> threading.RLock:
    """A lock, to be the attribute `name` of `owner`, which has a new one in each process that is forked from this."""
    _owners[owner] = name
    return threading.RLock()


def _renew() -> None:
    for owner, name in _owners.items():
        setattr(owner, name, threading.RLock())


forking.in_child(_renew)
