"""Weak identity: how a key refers to an object without keeping it alive, and what messages call the object.

A key whose object has died equals no other, so its trace can never be found again. Objects that Python cannot refer to
weakly (of classes with `__slots__`, and of some written in C) are kept alive by the keys that hold them. A function is
what it was as long as it has the code and the defaults that it had.
"""

from __future__ import annotations

import weakref
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, Final

PLAIN_DEFAULTS: Final = frozenset([bool, int, float, complex, str, bytes, type(None)])
"""Types of defaults that are compared by value."""
_NAMED: Final = (FunctionType, BuiltinFunctionType, MethodType, type)


class _Kept:
    """What takes the place of a weak reference where there can be none."""

    __slots__ = ("_target",)

    def __init__(self, target: Any) -> None:
        self._target = target

    def __call__(self) -> Any:
        return self._target


class Identity:
    """A weak stand-in for an object: equal only to another one for the same living object."""

    __slots__ = ("__weakref__", "_code", "_hash", "_label", "ref")

    def __init__(self, target: Any) -> None:
        try:
            self.ref: Any = weakref.ref(target)
        except TypeError:
            self.ref = _Kept(target)
        self._hash = id(target)
        self._label: str | None = None

    @property
    def label(self) -> str:
        """What to call the object. Made on first use, so that a hit does not pay for it; to be asked while it lives."""
        label = self._label
        if label is None:
            target = self.target()
            label = "object" if target is None else describe_object(target)
            code = getattr(target, "__code__", None) if isinstance(target, (FunctionType, MethodType)) else None
            self._code: weakref.ref[CodeType] | None = weakref.ref(code) if isinstance(code, CodeType) else None
            self._label = label  # last: another thread that finds it finds the code, too
        return label

    def is_made_by(self, other: Identity) -> bool:
        """Whether both are functions made by the very same piece of code, as a loop does; a cell has new code."""
        if not (self.is_function and other.is_function):  # which finds the code, too
            return False
        mine, its = self._code, other._code
        return mine is not None and its is not None and mine() is not None and mine() is its()

    @property
    def keeps_alive(self) -> bool:
        """Whether it keeps its object alive, to which there can be no weak reference."""
        return type(self.ref) is _Kept

    @property
    def is_function(self) -> bool:
        return self.label.startswith("function ")

    def target(self) -> Any:
        """The object, None when it has been deleted."""
        return self.ref()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity):
            return False
        mine = self.ref()
        return mine is not None and mine is other.ref()

    def __hash__(self) -> int:
        return self._hash

    @property
    def words(self) -> str:
        """The label, and whether the object has been deleted."""
        label = self._label or self.label
        return label if self.ref() is not None else f"{label} (deleted)"

    def __repr__(self) -> str:
        return self.words


class OfFunction(Identity):
    """Identity of a Python function as it is: another one where its code or its defaults have been exchanged."""

    __slots__ = ("_parts",)

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self._parts = parts_of_function(function)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OfFunction) and super().__eq__(other) and self._parts == other._parts

    def __hash__(self) -> int:
        return self._hash


def parts_of_function(function: FunctionType) -> Any:
    """What of a function can be exchanged, to be compared: its code, and its defaults, plain ones by value."""
    defaults, named = function.__defaults__, function.__kwdefaults__
    if not (defaults or named):
        return function.__code__
    return (
        function.__code__,
        tuple([_default(x) for x in defaults or ()]),
        {name: _default(x) for name, x in (named or {}).items()},
    )


def _default(x: Any) -> Any:
    return (type(x), repr(x)) if type(x) in PLAIN_DEFAULTS else Identity(x)


class Bound(Identity):
    """Identity of a bound method: that of its function and its instance, since the method object is made each time."""

    __slots__ = ("_function", "_parts")

    def __init__(self, method: Any) -> None:
        super().__init__(method.__self__)
        self._function = function = method.__func__
        self._parts = parts_of_function(function) if type(function) is FunctionType else None

    def target(self) -> Any:
        instance = self.ref()
        return None if instance is None else self._function.__get__(instance)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bound) or self._function is not other._function or self._parts != other._parts:
            return False
        return super().__eq__(other)

    def __hash__(self) -> int:
        return self._hash


def describe_object(x: Any) -> str:
    """A short name for an object that is keyed by identity: its own `__limelight_name__`, or its type and name.

    Runs no code of the user's.
    """
    try:
        own: dict[str, Any] = object.__getattribute__(x, "__dict__")
    except AttributeError:
        own = {}
    called = own.get("__limelight_name__") if own else None
    if isinstance(called, str):
        return called
    name = x.__qualname__ if isinstance(x, _NAMED) else own.get("__qualname__") if own else None
    return f"{type(x).__name__} {name}" if isinstance(name, str) else f"{type(x).__name__} object"
