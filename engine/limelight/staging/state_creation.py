"""The state-creation contract: variables may be created on the first call of a staged function only."""

from __future__ import annotations

from typing import Any

from limelight.core.variable import Variable
from limelight.errors import StateCreationError
from limelight.user_code import source_line


class Creation:
    """Takes note of the variables created during one trace, or refuses them."""

    def __init__(self, name: str, *, allowed: bool, again: bool = False) -> None:
        self.variables: list[Any] = []
        self._name = name
        self._allowed = allowed
        self._again = again

    def note(self, variable: Any) -> None:
        if not self._allowed:
            raise StateCreationError(self._message(variable))
        self.variables.append(variable)  # kept alive until the second trace, which must find it

    def _message(self, made: Any) -> str:
        kind, create = (
            ("variable", "ll.Variable(...)")
            if isinstance(made, Variable)
            else ("generator", "ll.random.Generator(seed)")
        )
        when = "each time its Python code runs" if self._again else "on a call other than its first"
        return (
            f"{self._name} creates a {kind} {when}{source_line.here()}. A staged function may create "
            f"{kind}s on its first call only, since its graph refers to them afterwards. Create the {kind} outside, or "
            f"once: `if self.w is None: self.w = {create}`"
        )
