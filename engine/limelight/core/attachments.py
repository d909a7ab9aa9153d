"""Objects that wait for saved values: what is told when an attribute of one is set, or is taken back.

Checkpoints restore objects before their parts exist. Modules lie below checkpoints and know only this table, which is
empty unless something waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

waiting: Final[dict[int, Callable[[Any, str], None]]] = {}
"""By the id of an object that waits: what is told of the object and of the name of an attribute that was set."""
growing: Final[list[Callable[[], None]]] = []
"""Not empty while values wait for what is put into a list or a dictionary: nothing tells of that, so each of these is
called when a variable that might be in one is read, and gives it what waits for it."""
initial_values: Final[list[Callable[[], Callable[[Any], None]]]] = []
"""Called before the initial value of a variable is computed, while something waits; each returns a function of the
variable to be called after that."""
written_draws: Final[list[Callable[[], Callable[[], None]]]] = []
"""Where a trace has written what an initial value drew: each takes that out again, and returns what puts it back."""
savepoints: Final[list[Callable[[], Callable[[], None]]]] = []
"""Each returns a function that has everything wait again that has been given a value since."""


def attached(owner: Any, name: str) -> None:
    """Gives what has just become the attribute `name` of `owner` the values that wait for it."""
    tell = waiting.get(id(owner))
    if tell is not None:
        tell(owner, name)


def initial_value_begins() -> Callable[[Any], None]:
    """A function to be called with the variable whose initial value is computed now."""
    ends = [begins() for begins in initial_values]

    def made(variable: Any) -> None:
        for end in ends:
            end(variable)

    return made


def savepoint() -> Callable[[], None]:
    """A function that undoes the restoring of what is attached from now on: for a first call that may fail."""
    undo = [point() for point in savepoints] if waiting else []

    def roll_back() -> None:
        for one in undo:
            one()

    return roll_back
