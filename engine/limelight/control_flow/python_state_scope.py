"""A block in which names, attributes and containers hold what they held before."""

from __future__ import annotations

from limelight.core import dispatch
from limelight.user_code.python_state import PythonState


class python_state_scope(dispatch.Guard):  # noqa: N801  # used as a function
    """Runs its block with Python's names in an earlier state, and puts back the present one after it.

    Args:
        state: the state.
        keeps_changes: whether what the block changes remains so.
    """

    def __init__(self, state: PythonState, keeps_changes: bool = False) -> None:
        super().__init__()
        self._state = state
        self._keeps_changes = keeps_changes
        self._before: PythonState | None = None

    def begin(self) -> None:
        self._before = self._state.now()
        self._state.restore()

    def end(self, abandoned: bool) -> None:
        if self._before is None:
            return
        if self._keeps_changes:
            self._before.restore_unchanged_since(self._state)
        else:
            self._before.restore()
