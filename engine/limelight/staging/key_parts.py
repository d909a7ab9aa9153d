"""The parts of a trace key: how each leaf of a call's arguments is keyed.

A part exists in two forms, which are equal and hash alike, so that either finds the other in a dictionary:

    bare tuple                               typed
    ("tensor", dtype, shape[, device])       TensorPart    a tensor or array: any values
    ("variable", VariableSpec, n[, device])  VariablePart  the n-th distinct variable or generator of the arguments; an
                                                           Identity is at the end where the function has it anyway
    ("value", type, words or value)          ValuePart     a plain Python value, by type and value, or by what it says
                                                           of itself (`value_keys`)
    ("object", Identity)                     ObjectPart    anything else, by identity, weakly where that is possible

The paper keys all that is no tensor by identity; equal strings and numbers would then retrace at random, so plain
values are keyed by value and type. Variables are keyed by spec and alias pattern, since a graph takes a variable as an
input like any other: one trace serves all variables of one type.

The first item tells a 1 from a 1.0 and a True, and the forms from one another, although Python may find them equal. A
device is left out where it is CPU:0.

Calls are looked up by bare tuples: building one takes 25 ns, and an instance of a subclass of tuple 100 ns, for each
leaf of each call. Only a call that has no trace makes typed parts of them, by `typed`. No other module than those that
build keys (this one, `key` and `signature`) knows at which position something lies.
"""

from __future__ import annotations

import enum
import functools
import inspect
import io
import operator
import weakref
from collections.abc import Collection, ItemsView, Iterator, KeysView, Sequence, ValuesView
from types import FunctionType, GeneratorType
from typing import Any, ClassVar, Final

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.array_conversion import refuse_masked
from limelight.core.devices import CPU0, Device
from limelight.core.dtypes import DType
from limelight.core.spec import GENERATOR, TensorSpec, VariableSpec
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource, Variable, itself
from limelight.errors import SignatureError
from limelight.staging.value_keys import BY_REPR, Words, words_for
from limelight.staging.weak_identity import Bound, Identity, OfFunction

BarePart = tuple[Any, ...]
BY_VALUE: Final = frozenset([bool, int, str, bytes, type(None), type(Ellipsis), range, type])
LONG: Final = 60
"""From how many characters on a string is cut short when it is shown."""
_UNKEYABLE: Final = (set, frozenset, weakref.ref, memoryview, bytearray, KeysView, ValuesView, ItemsView)
_fits: Final = functools.lru_cache(maxsize=1024)(shapes.compatible)
"""Of a thousand arguments most have the same few shapes."""


def _item(position: int) -> Any:
    """The item at a position, as an attribute: a miss reads thousands, each in half the time of a written property."""
    return property(operator.itemgetter(position))


class _Part(tuple[Any, ...]):
    """What all parts share."""

    __slots__ = ()
    is_input: ClassVar[bool] = False
    """Whether the leaf is an input of the graph, rather than something that the trace is bound to."""

    @property
    def has_unknown_sizes(self) -> bool:
        """Whether it is a tensor of which not all sizes are known: such a part serves many."""
        return False

    @property
    def is_dead(self) -> bool:
        """Whether it is keyed by an object that has been deleted: no call can have this part again."""
        return False

    def covers(self, other: Part) -> bool:
        """Whether a trace for this part serves a call with `other`."""
        return self == other


class TensorPart(_Part):
    """A tensor or an array, whatever its values."""

    __slots__ = ()
    is_input = True
    dtype: DType = _item(1)
    shape: tuple[int | None, ...] = _item(2)

    @staticmethod
    def of(dtype: DType, shape: tuple[int | None, ...], device: Device = CPU0) -> TensorPart:
        """The part for tensors of this type."""
        where = () if device is CPU0 else (device,)
        return TensorPart(("tensor", dtype, shape, *where))

    @property
    def device(self) -> Device:
        return self[3] if len(self) > 3 else CPU0

    @property
    def has_unknown_sizes(self) -> bool:
        return None in self[2]

    def covers(self, other: Part) -> bool:
        """Whether a trace for this part serves a call with `other`: unknown sizes take any."""
        shape = self[2]  # by position, as below: a miss asks this a thousand times, and a property takes twice as long
        if None not in shape or not isinstance(other, TensorPart):
            return self == other
        return self[1] == other[1] and self[3:] == other[3:] and _fits(other[2], shape)

    def describe(self) -> str:
        """As shown to people: "f32[32,784] on CPU:1"."""
        text = str(TensorSpec(self.shape, self.dtype))
        return text if self.device is CPU0 else f"{text} on {self.device.short}"


class VariablePart(_Part):
    """A variable: the `alias`-th distinct one among the arguments."""

    __slots__ = ()
    is_input = True
    spec: VariableSpec = _item(1)
    alias: int = _item(2)
    """A number, the same for the same variable."""

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def device(self) -> Device:
        return self[3] if len(self) > 3 and not isinstance(self[3], Identity) else CPU0

    @property
    def identity(self) -> Identity | None:
        """That of this very variable, where the function closes over it as well; None where any other will do."""
        last = self[-1]
        return last if isinstance(last, Identity) else None

    @property
    def is_dead(self) -> bool:
        return self.identity is not None and self.identity.ref() is None

    def describe(self) -> str:
        """As shown to people, by number: "var f32[2] #0"."""
        return f"{self.spec} #{self.alias}{self._where}" + ("" if self.identity is None else " (this very one)")

    @property
    def type_words(self) -> str:
        """What kind of variable it is, without its number: "var f32[2] on CPU:1"."""
        return f"{self.spec}{self._where}"

    @property
    def _where(self) -> str:
        constraint = self.spec.constraint
        words = "" if constraint is None else f" with constraint {getattr(constraint, '__name__', constraint)}"
        return words if self.device is CPU0 else f"{words} on {self.device.short}"


class ValuePart(_Part):
    """A plain Python value, by type and value."""

    __slots__ = ()
    kind: type = _item(1)
    value: Any = _item(2)
    """The value, or the words that stand for it."""

    @property
    def is_words(self) -> bool:
        """Whether words stand in place of the value."""
        return self[1] in BY_REPR or type(self[2]) is Words

    def describe(self) -> str:
        """As shown to people: "3", "'relu'"."""
        return str(self.value) if self.is_words else _short_repr(self.value)


class ObjectPart(_Part):
    """Anything else: one object, held weakly where that is possible."""

    __slots__ = ()
    identity: Identity = _item(1)

    @property
    def is_dead(self) -> bool:
        return self.identity.ref() is None

    def describe(self) -> str:
        """As shown to people: "function loss"."""
        return self.identity.words


Part = TensorPart | VariablePart | ValuePart | ObjectPart
_TYPES: Final[dict[str, type[Part]]] = {
    "tensor": TensorPart, "variable": VariablePart, "value": ValuePart, "object": ObjectPart,
}  # fmt: skip


def typed(parts: Sequence[BarePart]) -> tuple[Part, ...]:
    """Bare parts as typed ones."""
    return tuple([_TYPES[part[0]](part) for part in parts])


def with_identities(
    parts: Sequence[BarePart], leaves: Sequence[Any], closed_over: Collection[int]
) -> tuple[BarePart, ...]:
    """Bare parts of `leaves`, with an identity for each variable whose uid is among `closed_over`."""
    return tuple([
        (*part, Identity(itself(x)))
        if part[0] == "variable" and _uid(x) in closed_over and not has_identity(part)
        else part
        for part, x in zip(parts, leaves, strict=True)
    ])  # fmt: skip


def has_identity(part: BarePart) -> bool:
    """Whether it is of a variable that the function closes over as well."""
    return isinstance(part[-1], Identity)


def _uid(x: Any) -> int:
    uid: int = getattr(x, "_uid", 0)
    return uid


def bare_part(x: Any, seen: dict[int, int]) -> BarePart:
    """The bare part of one leaf. `seen` numbers the distinct variables so far, which is how aliasing is keyed."""
    if isinstance(x, Tensor):
        home = x.device if type(x) is not Tensor else x._device  # a symbolic one says where it will be
        where = () if home is CPU0 else (home,)
        return ("tensor", x.dtype, x.shape, *where)
    if isinstance(x, TensorSpec):
        return ("tensor", x.dtype, x.ranked("TensorSpec").shape)
    if isinstance(x, (np.str_, np.bytes_)):
        return ("value", type(x), x)
    if isinstance(x, (np.ndarray, np.generic)):
        if type(x) is not np.ndarray:
            refuse_masked(x)
        return ("tensor", dtypes.dtype(x.dtype), x.shape)
    if isinstance(x, Variable):
        where = () if x._device is CPU0 else (x._device,)
        return ("variable", x.spec, seen.setdefault(x._uid, len(seen)), *where)
    if isinstance(x, VariableSpec):
        return ("variable", x, seen.setdefault(-1 - len(seen), len(seen)))
    kind = type(x)
    if kind in BY_VALUE or isinstance(x, (enum.Enum, np.dtype, type)):
        return ("value", kind, x)
    if kind in BY_REPR:
        return ("value", kind, repr(x))  # repr tells 0.0 from -0.0 and finds NaN equal to itself
    words = words_for(x)
    return _by_identity(x, seen) if words is None else ("value", kind, words)


def _by_identity(x: Any, seen: dict[int, int]) -> BarePart:
    if isinstance(x, Resource) and x.spec is GENERATOR:  # a variable whose value is its state, wherever it draws
        return ("variable", x.spec, seen.setdefault(x._uid, len(seen)))
    if isinstance(x, Iterator) and not isinstance(x, io.IOBase) and not hasattr(x, "__limelight_rounds__"):
        what = "a generator" if isinstance(x, GeneratorType) else f"an iterator ({type(x).__name__})"
        raise SignatureError(
            f"{what} cannot be part of a cache key: a trace takes its items once, and calls that find the trace would "
            "take none; take an item outside and pass that, as in f(next(iterator)), or pass a tuple or list of items"
        )
    if isinstance(x, _UNKEYABLE):
        raise SignatureError(
            f"a {type(x).__name__} cannot be part of a cache key: its contents may change or have no order; "
            "pass a tuple or list of its elements, or close over it"
        )
    if getattr(type(x), "__limelight_method__", False):  # made anew each time it is asked for
        x = x.__limelight_function__
    if type(x) is FunctionType:
        return ("object", OfFunction(x))
    return ("object", Bound(x) if inspect.ismethod(x) else Identity(x))


def _short_repr(value: Any) -> str:
    """`repr` of a plain value, short, and sure to return something."""
    if isinstance(value, (str, bytes)) and len(value) > LONG:
        return f"{value[:LONG]!r}..."
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # an enumeration's repr may be the user's, and an explanation must not raise
        return f"{type(value).__name__} value"
