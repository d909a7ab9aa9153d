"""What stands, among the arguments of a cell's graph, for values that are no inputs of it.

A pin stands for one object with what it held. Numbers and small arrays of NumPy's that no graph takes, of strings or
dates, are stood for by their values, so that equal ones find the same trace.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.staging.weak_identity import describe_object
from limelight_kernel.inputs.portraits import Lends, Lent, Portrait, contents, portrait

MOST_PINS: Final = 16  # for one name: an object that goes back to what it held finds its trace again
_SHORT: Final = 24


class Pinned:
    """Stands for a value that a cell reads but that is no argument of its graph: it is keyed by identity."""

    __limelight_leaf__ = True
    __slots__ = ("__dict__", "__weakref__", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self.__limelight_name__ = _called(value)

    def __repr__(self) -> str:
        named = f" {self.value.name}" if isinstance(self.value, Variable) else ""
        return f"this {type(self.value).__name__}{named}"


def _called(value: object) -> str:
    """What signatures call it."""
    if isinstance(value, Variable):
        return f"variable {value.name}"
    return f"tensor {value.spec}" if isinstance(value, Tensor) else describe_object(value)


class ByValue(Pinned):
    """Stands for a number or an array of NumPy's, by its value; each dtype has a class of its own."""

    __slots__ = ("_key",)

    def __init__(self, value: Any, key: object) -> None:
        super().__init__(value)
        self._key = key

    def __limelight_key__(self) -> Any:
        return self._key


@functools.cache
def _by_value_of(name: str) -> type[ByValue]:
    return type(name, (ByValue,), {"__slots__": ()})


def by_value(value: Any) -> ByValue:
    """What stands for a scalar of NumPy's, or an array of a dtype that no tensor has, by its value."""
    if isinstance(value, np.generic):
        number = value.item() if value.dtype.kind in "biu" else str(value)
        return _by_value_of(f"numpy.{value.dtype.name}")(value, number)
    words = " ".join(np.array2string(value, threshold=4, edgeitems=2).split())[:_SHORT]
    key: tuple[Any, ...] = (value.shape, words, contents(value).hex()[:16])
    if type(value) is not np.ndarray:  # a unit, a mask
        key = (*key, type(value).__qualname__, repr(vars(value)))
    return _by_value_of(f"array of {value.dtype.name}")(value, key)


class HeldPin(NamedTuple):
    """A pin that stands for an object as it was, by what name, and the pins of that name."""

    name: str
    pinned: Pinned
    was: Portrait
    among: list[tuple[Pinned, Portrait | None]]

    @property
    def holds(self) -> bool:
        """Whether the object still is what it was."""
        return self.was.still(self.pinned.value)

    def forget(self) -> None:
        """Has no call find the pin again."""
        self.among[:] = [one for one in self.among if one[0] is not self.pinned]


class Pins:
    """Hands out one `Pinned` for each name and object, and a new one when the object has changed.

    The last few are kept, so that an object that is again what it was finds the trace that was made then.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, list[tuple[Pinned, Portrait | None]]] = {}

    def has(self, name: str) -> bool:
        """Whether something has been pinned under this name."""
        return name in self._by_name

    def known(self, name: str, value: object) -> Pinned | None:
        """The pin that stands for `value` as it is now, if there is one."""
        known = self._known(name, value)
        return known and known[0]

    def _known(self, name: str, value: object) -> tuple[Pinned, Portrait | None] | None:
        for pinned, was in reversed(self._by_name.get(name, ())):
            if pinned.value is value and (was is None or was.still(value)):
                return pinned, was
        return None

    def pin(self, name: str, value: object, contents: bool = True) -> Pinned:
        """The pin that stands for `value`, as it is now or, without `contents`, whatever it holds."""
        return self.known(name, value) or self._new(name, value, portrait(value) if contents else None)

    def pin_lending(self, name: str, value: object, lends: Lends) -> tuple[Pinned, list[Lent]]:
        """The pin that stands for `value` but for the tensors in it, or what `lends` has, and these."""
        known = self._known(name, value)
        was = known[1] if known else portrait(value, lends)
        pinned = known[0] if known else self._new(name, value, was)
        return pinned, list(was.tensors(value, name.removesuffix("[...]"))) if was else []

    def as_they_are(self) -> list[HeldPin]:
        """The pins that stand for their objects as these are now."""
        return [
            HeldPin(name, pinned, was, among)
            for name, among in self._by_name.items()
            for pinned, was in among
            if was is not None and was.still(pinned.value)
        ]

    def _new(self, name: str, value: object, was: Portrait | None) -> Pinned:
        known = Pinned(value)
        pins = self._by_name.setdefault(name, [])
        if any(pinned.value is value for pinned, _ in pins):
            known.__limelight_name__ += " with other contents"
        pins.append((known, was))
        del pins[:-MOST_PINS]
        return known
