"""What holds around a block: interpreters, device scopes, name scopes and other settings of this thread.

A generator that is suspended in a `with` block leaves the scope of that block to whoever runs next, as in Python at
large (PEP 550 would have changed that). It must not outlive a trace, which is over when its function returns.
"""

from __future__ import annotations

from limelight import settings
from limelight.core import dispatch


class Surroundings:
    """What holds where it is made. `come_back` leaves what has been entered since, whoever has; nothing is entered."""

    __slots__ = ("_devices", "_left", "_settings", "_stacks")

    def __init__(self) -> None:
        self._stacks = [(stack, tuple(stack)) for stack in dispatch.local.stacks]
        self._left: list[dispatch.Interpreter] = []
        self._devices = dispatch.entered_devices()
        self._settings = settings.entered()

    def come_back(self) -> None:
        """May be called again, and does nothing then. What is left here may be left once more by its own block."""
        known = {id(interpreter) for _, stack in self._stacks for interpreter in stack}
        self._left += [x for stack in dispatch.local.stacks for x in reversed(stack) if id(x) not in known]
        for interpreter in self._left:
            dispatch.remove(interpreter)
        dispatch.stand_on([stack for stack, _ in self._stacks])
        dispatch.leave_devices(self._devices)
        for setting, override in self._settings:
            setting.come_back(override)
