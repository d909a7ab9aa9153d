"""Tests that leave their thread in a state that others must not meet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def in_its_own_thread(test: Callable[..., None]) -> Callable[..., None]:
    """Runs a test in a thread that ends with it.

    What a trace function raises in an `except` block, CPython may leave behind as an exception that is being handled:
    it would be the context of all that later tests of the process raise. No signal's handler runs at such a place.
    """

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(test, *args, **kwargs).result()

    return run
