"""What holds around a block: interpreters, device scopes, name scopes and other settings of this thread.

A generator that is suspended in a `with` block leaves the scope of that block to whoever runs next, as in Python at
large (PEP 550 would have changed that). It must not outlive a trace, which is over when its function returns.
"""

from __future__ import annotations

from limelight import settings
from limelight.core import device_scopes, dispatch


class SavedScopes:
    """What holds where it is made. `restore` leaves what has been entered since, by whomever; it enters nothing."""

    __slots__ = ("_devices", "_left", "_settings", "_stacks")

    def __init__(self) -> None:
        self._stacks = [(stack, tuple(stack)) for stack in dispatch.local.stacks]
        self._left: list[dispatch.Interpreter] = []
        self._devices = device_scopes.entered_scopes()
        self._settings = settings.current_overrides()

    def restore(self) -> None:
        """May be called again, and does nothing then. What is left here may be left once more by its own block."""
        known = {id(interpreter) for _, stack in self._stacks for interpreter in stack}
        self._left += [x for stack in dispatch.local.stacks for x in reversed(stack) if id(x) not in known]
        for interpreter in self._left:
            dispatch.remove(interpreter)
        dispatch.use_stacks([stack for stack, _ in self._stacks])
        device_scopes.leave_later_scopes(self._devices)
        for setting, override in self._settings:
            setting.restore(override)
