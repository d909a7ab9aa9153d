"""Where the value of a variable is: an array that is replaced on assignment, never written into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakValueDictionary

from limelight import events
from limelight.core import attachments, live_buffers
from limelight.core.devices import Device
from limelight.core.spec import VariableSpec
from limelight.user_code import source_line

told: Final[list[bool]] = []
"""Not empty while somebody listens to assignments or births: a test of its truth takes a fifth of `events.wanted`."""


def _on_interest(_: bool) -> None:
    told[:] = [True] * (events.wanted(events.VariableAssigned) or live_buffers.followed())


live_buffers.on_follow(_on_interest)
events.on_interest(events.VariableAssigned, _on_interest)


_live: Final[WeakValueDictionary[int, Storage]] = WeakValueDictionary()


def live_storages() -> list[Storage]:
    """All storages that there are: a walk over all objects of a process would take as long as these are many."""
    return [storage for reference in _live.valuerefs() if (storage := reference()) is not None]


def count_live() -> int:
    """How many storages there are."""
    return len(_live)


class Storage:
    """Where a variable's value is: replaced on assignment, never written into, so a read is a snapshot for free.

    An update (`assign_add`) computes from the value that it read, and is made again where `exchange` says that another
    thread has assigned meanwhile: so none is lost, and no lock is held for long.
    """

    __slots__ = ("__weakref__", "array", "device", "name", "spec", "uid")

    def __init__(self, array: Any, device: Device, spec: VariableSpec, name: str, uid: int) -> None:
        self.array = array
        self.device = device
        self.spec = spec
        self.name = name
        self.uid = uid
        _live[id(self)] = self
        if told and live_buffers.followed() and hasattr(array, "nbytes"):
            live_buffers.born(self, array, device, source_line.user_line())

    def set(self, array: Any) -> Any:
        """Takes a new value, which nobody else may write to afterwards; returns it."""
        old = self.array if told else None  # lives until the new one is told of, as it does: both are there for a while
        self.array = array
        if told:
            self._tell(array)
        del old
        return array

    def exchange(self, old: Any, new: Any) -> bool:
        """Takes the value `new`, computed from `old`, if `old` is the value still; whether it was."""
        if self.array is not old:
            return False
        self.array = new  # no call, no jump and no allocation since: between these lines CPython runs no other thread
        if told:
            self._tell(new)
        return True

    def update(self, change: Callable[[Any], Any]) -> Any:
        """Takes the value `change(value)`; returns it."""
        while not self.exchange(old := self.array, new := change(old)):
            pass
        return new

    def _tell(self, array: Any) -> None:
        """Tells the listeners that it has taken `array`; whoever was in its place still lives."""
        if live_buffers.followed():
            live_buffers.born(self, array, self.device, source_line.user_line())
        if events.wanted(events.VariableAssigned):
            events.emit(events.VariableAssigned(self.uid, self.name, int(array.nbytes), self.device.short))


class UnsettledStorage(Storage):
    """That of a variable which may have been put into a list that waits for saved values: it has its own when read.

    It becomes an ordinary one as soon as nothing waits.
    """

    __slots__ = ()

    @property
    def array(self) -> Any:
        for settle in tuple(attachments.growing):
            settle()
        if not attachments.growing:
            self.__class__ = Storage  # type: ignore[assignment]  # of the same layout
        return _array_of(self)

    @array.setter
    def array(self, value: Any) -> None:
        _set_array_of(self, value)


_slot: Final[Any] = vars(Storage)["array"]
_array_of: Final = _slot.__get__
_set_array_of: Final = _slot.__set__
