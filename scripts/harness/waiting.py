"""Waiting for what another thread does, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 300.0) -> None:
    """Returns when the condition holds; raises AssertionError where it has not for so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)
