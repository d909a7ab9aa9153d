"""On which devices recorded ops ran, where there is more than one: the ops of their gradients run there, too.

By their operands alone a gradient's ops would run anywhere: where an op took an operand from another device, and copied
it, the tape has saved the original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from limelight.core import device_scopes
from limelight.core.devices import CPU0, Device
from limelight.core.op import SAVED, Op, TapeEntry
from limelight.core.tensor import Tensor

_NOWHERE: Final[AbstractContextManager[Any]] = nullcontext()


class OpDevices(dict[int, Any]):
    """The devices of a tape's ops, by the uid of their first output; what is not noted ran on CPU:0."""

    def note(self, uid: int, op: Op, out: Any) -> None:
        """Notes where `op` ran: a trace may know that only later. The nodes of functions have places of their own."""
        if op.higher_order:
            self[uid] = None
        elif type(out) is not Tensor:
            self[uid] = out if hasattr(out, "_tracer") else None
        elif out._device is not CPU0:
            self[uid] = out._device

    def of(self, entries: Sequence[TapeEntry], keep: bool) -> list[Device | None] | None:
        """For each entry its op's device, None where it has none of its own.

        None as a whole where these, and what they saved, are on one device. Forgets what was noted unless `keep`.
        """
        device_of = _resolver()
        places = [self._place(entry, device_of) for entry in entries]
        seen = {place for place in places if place is not None}
        if len(seen) == 1:
            seen |= {device_of(x) for entry in entries for x in _saved(entry)}
        if not keep:
            self.clear()
        return places if len(seen) > 1 else None

    def _place(self, entry: TapeEntry, device_of: Callable[[Any], Device]) -> Device | None:
        outputs = entry[1]
        uid = outputs if type(outputs) is int else next(filter(None, outputs), 0)
        place = self.get(uid, CPU0)
        return place if place is None or isinstance(place, Device) else device_of(place)


def scope_of(place: Device | None) -> AbstractContextManager[Any]:
    """The scope for the gradient of an op that ran there."""
    return _NOWHERE if place is None else device_scopes.device(place)


def _saved(entry: TapeEntry) -> Iterator[Any]:
    return (x for x in entry[SAVED : entry[0].first_input] if isinstance(x, Tensor))


def _resolver() -> Callable[[Any], Device]:
    """From a tensor to its device, with the devices of a trace inferred once."""
    inferred: dict[Any, Callable[[Any], Device]] = {}

    def device_of(x: Any) -> Device:
        tracer = getattr(x, "_tracer", None)
        if tracer is None:
            device: Device = x._device
            return device
        if tracer not in inferred:
            inferred[tracer] = tracer.devices()
        return inferred[tracer](x._value)

    return device_of
