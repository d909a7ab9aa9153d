"""A block whose ops tapes leave unrecorded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from limelight.with_blocks import block_of


class RecordingPause:
    """A `with` block of some tapes'; blocks may lie within one another, and end in any order."""

    def __init__(self, tapes: Sequence[Any]) -> None:
        self._tapes = tapes

    def __enter__(self) -> None:
        self.block = block_of(sys._getframe(1))
        for tape in self._tapes:
            tape._pauses.append(self)
            tape._recording = False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for tape in self._tapes:
            tape._is_paused(but=self)
