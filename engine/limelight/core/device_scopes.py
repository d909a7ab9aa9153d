"""Device scopes: `with ll.device("cpu:1")`, and which device the ops on this line are asked to run on."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final

from limelight.core import devices, dispatch
from limelight.core.devices import Device, DeviceName
from limelight.core.dispatch import active, scopes
from limelight.errors import DeviceError
from limelight.with_blocks import Block, block_of


class _EnteredScope:
    """One entering of a device scope, with its name as completed by the scopes around it."""

    __slots__ = ("block", "name", "scope")

    def __init__(self, scope: device, name: DeviceName | None, block: Block) -> None:
        self.scope = scope
        self.name = name
        self.block: Block | None = block

    def abandon(self) -> None:
        """Leaves the scope before its block does, or in its place; when the block ends after all, it does nothing."""
        self.scope._leave(self)
        self.scope._left_early += 1

    def __repr__(self) -> str:
        return f"<device scope {self.name}>"


_requested: Final[ContextVar[tuple[_EnteredScope, ...]]] = ContextVar("device", default=())
"""The device scopes entered in this context, outermost first."""


def requested_device() -> Device | None:
    """The device asked for by the scopes around this line, None when none is."""
    entered = entered_scopes()
    name = entered[-1].name if entered else None
    return None if name is None else devices.find(name)


class device:  # noqa: N801  # used as a function: `with ll.device(...)`
    """Runs the ops of its block on the device `name`, copying operands there as needed (paper section 4.4).

    Scopes nest: parts that an inner name leaves open come from the outer one, and `device(None)` clears. The same
    object may be entered again. Raises DeviceError for a device that does not exist, and on leaving scopes out of
    order.

    >>> import limelight as ll
    >>> with ll.device("cpu:0"):
    ...     ll.constant(1.0).device.short
    'CPU:0'
    """

    def __init__(self, name: str | Device | DeviceName | None) -> None:
        self._name = None if name is None else devices.parse(name)
        if self._name is not None and self._name.kind is not None:
            devices.find(name if isinstance(name, str) else self._name)
        self._entered: list[_EnteredScope] = []
        self._left_early = 0  # how often a scope of this object was left before its block has ended

    def __enter__(self) -> Device | None:
        around = entered_scopes()
        outer = around[-1].name if around else None
        merged = None if self._name is None else self._name.merged(outer) if outer else self._name
        chosen = None if merged is None else devices.find(merged)
        if chosen is not None and chosen is not devices.CPU0:
            devices.mark_in_use()  # what is made in the block lives there
        entered = _EnteredScope(self, merged, block_of(sys._getframe(1)))
        try:
            for places in (self._entered, scopes, active):
                places.append(entered)
            _requested.set((*around, entered))
            return chosen
        except BaseException:
            self._leave(entered)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        entered: _EnteredScope | None = None
        try:
            if self._left_early and not self._entered:
                self._left_early -= 1
                return
            around = _requested.get()
            entered = self._last_entered(around)
            self._leave(entered)
        except KeyboardInterrupt:
            self._leave(entered or self._last_entered(_requested.get()))
            raise
        if error is None and (not around or around[-1] is not entered):
            raise DeviceError("device scopes must be left in the reverse order of entering; use `with` blocks")

    def _last_entered(self, around: tuple[_EnteredScope, ...]) -> _EnteredScope:
        if not self._entered:
            raise DeviceError("this device scope is not entered; use a `with` block")
        if around and around[-1].scope is self:
            return around[-1]
        mine = [entered for entered in around if entered.scope is self]
        return (mine or self._entered)[-1]  # not among those around in a generator that another thread closes

    def _leave(self, entered: _EnteredScope) -> None:
        for places in (self._entered, scopes, active):
            if entered in places:
                places.remove(entered)
        entered.block = None
        around = _requested.get()
        last = around and around[-1] is entered
        _requested.set(around[:-1] if last else tuple([other for other in around if other is not entered]))


def colocate_with(value: Any) -> device:
    """A scope in which ops run where `value`, a tensor or variable, is: `ll.device(value.device)`.

    In a staged function that is where `value` will be when it runs: a call with arguments on other devices traces anew.

    Raises:
        DeviceError: `value` is on no device.

    >>> import limelight as ll
    >>> x = ll.ones(2)
    >>> with ll.colocate_with(x) as place:
    ...     ll.zeros(2).device is place
    True
    """
    place = getattr(value, "device", None)
    if not isinstance(place, Device):
        raise DeviceError(f"colocate_with: a {type(value).__name__} is on no device; give a tensor or a variable")
    return device(place)


def cleared() -> AbstractContextManager[object]:
    """`device(None)`, or nothing where nobody has asked for a device: each op looks whether somebody has."""
    return device(None) if scopes else nullcontext()


def entered_scopes() -> tuple[_EnteredScope, ...]:
    """The device scopes around this line."""
    entered = _requested.get()
    if entered and entered[-1].block is not None and entered[-1].block.is_over_here:
        dispatch.heal()
        entered = _requested.get()
    return entered


def leave_later_scopes(entered: tuple[_EnteredScope, ...]) -> None:
    """Leaves the scopes that are not among `entered`. Their own blocks, when they end, then do nothing."""
    for later in _requested.get():
        if later not in entered:
            later.abandon()
