"""The state-creation contract: variables may be created on the first call of a staged function only."""

from __future__ import annotations

from typing import Any

from limelight import source
from limelight.errors import StateCreationError


class Creation:
    """Takes note of the variables created during one trace, or refuses them."""

    def __init__(self, name: str, *, allowed: bool, again: bool = False) -> None:
        self.variables: list[Any] = []
        self._name = name
        self._allowed = allowed
        self._again = again

    def note(self, variable: Any) -> None:
        if not self._allowed:
            raise StateCreationError(self._message())
        self.variables.append(variable)  # kept alive until the second trace, which must find it

    def _message(self) -> str:
        when = "each time its Python code runs" if self._again else "on a call other than its first"
        return (
            f"{self._name} creates a variable {when}{source.at(source.user_line())}. A staged function may create "
            "variables on its first call only, since its graph refers to them afterwards. Create the variable outside, "
            "or once: `if self.w is None: self.w = ll.Variable(...)`"
        )
