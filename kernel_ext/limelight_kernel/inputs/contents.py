"""What mutable objects hold, and how it is put back: containers, attributes, the cells of closures.

A `Holder` is one object that can be changed in place, seen from one side: its items, or its attributes. Its contents
are a list (of a list or a deque), a dictionary (of a dictionary, or of attributes) or a set. What a holder leads to is
told by `holders_of` and `children`, step by step, as the user's code would reach it.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import limelight as ll
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.staging.function import Function
from limelight.user_code import source_line

Contents: TypeAlias = "list[Any] | dict[Any, Any] | set[Any]"
ATOMS: Final = frozenset([
    bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice, types.ModuleType,
    types.BuiltinFunctionType, types.CodeType,
])  # fmt: skip
MOST: Final = 20_000  # objects that are looked at: more are no state that a cell changes
CONTAINERS: Final = (list, dict, set, deque)
WEAK: Final = (weakref.WeakValueDictionary, weakref.WeakKeyDictionary, weakref.WeakSet)
"""Containers that keep nothing alive."""
_WEAK_MAPPINGS: Final = WEAK[:2]
_MISSING: Final = object()
_SPECIAL: Final = frozenset(["__dict__", "__weakref__"])
_PARTS_OF_FUNCTIONS: Final = ("__code__", "__defaults__", "__kwdefaults__")
"""What of a function can be exchanged."""


class Step(NamedTuple):
    """One step of the way to an object: an item, an attribute, the cell of a closure."""

    kind: str
    key: Any

    def __call__(self, x: Any) -> Any:
        """Where it leads to from `x`."""
        if self.kind == "attribute":
            return attributes(x)[self.key]
        if self.kind == "closure":
            return x.__closure__[self.key]
        if self.kind == "contents":
            return x.cell_contents
        return getattr(x, self.key) if self.kind == "part" else x[self.key]

    def after(self, path: str) -> str:
        """The path as code, with this step behind it."""
        if self.kind == "item":
            return f"{path}[{self.key!r}]"
        return f"{path}.{self.key}" if self.kind in ("attribute", "part") else path


Path: TypeAlias = "tuple[Step, ...]"


class Holder(NamedTuple):
    """A mutable object: its items, or its `attributes`."""

    of: Any
    attributes: bool = False

    @property
    def key(self) -> tuple[int, bool]:
        return id(self.of), self.attributes

    def contents(self) -> Contents:
        """What it holds now, as a list, dictionary or set of its own."""
        x = self.of
        if self.attributes:
            return attributes(x)
        if isinstance(x, types.CellType):
            return _cell(x)
        if isinstance(x, (dict, *_WEAK_MAPPINGS)):
            return dict(mapping(x).items(x))
        return set(x) if isinstance(x, (set, weakref.WeakSet)) else list(x)

    def put(self, new: Any) -> None:
        """Has it hold this from now on; what is the same already is not touched."""
        x = self.of
        if same(self.contents(), new):
            return
        if self.attributes:
            _put_attributes(x, new)
        elif isinstance(x, types.CellType):
            _put_cell(x, new)
        elif isinstance(x, list):
            list.__setitem__(x, slice(None), new)
        elif isinstance(x, deque):
            x.clear()
            x.extend(new)
        elif isinstance(x, (set, weakref.WeakSet)):
            x.difference_update([one for one in set(x) if one not in new])  # `intersection_update` of a WeakSet makes
            x.update(new)  # references that stay in it when their objects go
        else:
            _put_items(x, new)


def same(one: Contents, other: Contents) -> bool:
    """Whether two contents are the very same objects, in the same order."""
    if len(one) != len(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return all(map(operator.is_, one, other)) and all(map(operator.is_, one.values(), other.values()))
    return one == other if isinstance(one, set) else all(map(operator.is_, one, other))


def attributes(x: Any) -> dict[str, Any]:
    """The attributes of an object, class or function that are its own, those in slots as well."""
    own: Any = getattr(x, "__dict__", {})
    if isinstance(x, type):
        return {name: value for name, value in own.items() if not (name.startswith("__") and name.endswith("__"))}
    if isinstance(x, types.FunctionType):
        return {**own, **{name: getattr(x, name) for name in _PARTS_OF_FUNCTIONS}}
    return {**{name: value for name in _slots(x) if (value := getattr(x, name, _MISSING)) is not _MISSING}, **own}


def _slots(x: Any) -> tuple[str, ...]:
    kind: Any = type(x)
    return _slots_of(kind)


@functools.lru_cache(maxsize=1024)
def _slots_of(kind: Any) -> tuple[str, ...]:
    members = [
        name for base in kind.__mro__ for name, x in vars(base).items() if isinstance(x, types.MemberDescriptorType)
    ]
    return tuple([name for name in members if name not in _SPECIAL])


def set_attribute(x: Any, name: str, value: Any) -> None:
    """Sets one attribute where it lies, past the object's own `__setattr__`: it has run when the trace was made."""
    if isinstance(x, type):
        type.__setattr__(x, name, value)
    elif name in _slots(x) or isinstance(x, types.FunctionType):
        object.__setattr__(x, name, value)
    else:
        x.__dict__[name] = value


def delete_attribute(x: Any, name: str) -> None:
    """Deletes one attribute where it lies."""
    if isinstance(x, type):
        type.__delattr__(x, name)
    elif name in _slots(x):
        object.__delattr__(x, name)
    else:
        x.__dict__.pop(name, None)


def _put_attributes(x: Any, new: dict[str, Any]) -> None:
    old = attributes(x)
    for name in old.keys() - new.keys():
        delete_attribute(x, name)
    for name, value in new.items():
        if old.get(name, _MISSING) is not value:
            set_attribute(x, name, value)


def _put_items(x: dict[Any, Any], new: dict[Any, Any]) -> None:
    kind = mapping(x)
    if list(kind.keys(x)) != list(new):
        kind.clear(x)
    for key, value in new.items():
        kind.__setitem__(x, key, value)


def mapping(x: Any) -> Any:
    """The class whose methods reach the items of `x` past its own class's; an OrderedDict keeps its order apart."""
    return next((kind for kind in (OrderedDict, *_WEAK_MAPPINGS) if isinstance(x, kind)), dict)


def _cell(x: types.CellType) -> list[Any]:
    try:
        return [x.cell_contents]
    except ValueError:  # it is empty
        return []


def _put_cell(x: types.CellType, new: list[Any]) -> None:
    if new:
        x.cell_contents = new[-1]  # of what was there and what has been made
    else:
        del x.cell_contents


def holders_of(x: Any) -> list[Holder]:
    """The sides from which `x` can be changed in place; none for what cannot, or is no business of the user's."""
    kind = type(x)
    if kind in ATOMS or isinstance(x, Tensor | Resource):
        return []
    if isinstance(x, CONTAINERS):
        return [Holder(x), Holder(x, True)] if hasattr(x, "__dict__") else [Holder(x)]
    if kind is types.CellType or isinstance(x, WEAK):
        return [Holder(x)]
    if kind is types.FunctionType:
        return [Holder(x, True)] if _is_users(x.__module__) else []
    return [Holder(x, True)] if is_opened(x) else []


def is_opened(x: Any) -> bool:
    """Whether the attributes of `x` are the user's to change: an object or class of his own, a module, an optimiser."""
    if isinstance(x, ll.Module | ll.optim.Optimizer | types.SimpleNamespace):
        return True
    if isinstance(x, type):
        return _is_users(x.__module__) and not _is_enum(x)
    kind: Any = type(x)
    return _is_users(kind.__module__) and not _is_enum(kind)


def _is_enum(kind: type) -> bool:
    return hasattr(kind, "__members__")


@functools.lru_cache(maxsize=2048)
def _is_users(module: str) -> bool:
    """Whether classes and functions of this module were written by the user, in a notebook or a file of his."""
    if module == "__main__":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and not source_line.is_installed(file) and not source_line.is_library_file(file)


def children(x: Any) -> Iterator[tuple[Step, Any]]:
    """What `x` leads to, with the step there."""
    if type(x) in ATOMS or isinstance(x, Tensor | Resource):
        return
    if isinstance(x, types.FunctionType):
        yield from [(Step("closure", i), cell) for i, cell in enumerate(x.__closure__ or ())]
        yield from [(Step("attribute", name), value) for name, value in attributes(x).items() if name != "__code__"]
        return
    for holder in holders_of(x):
        yield from _held(holder)
    if isinstance(x, tuple):
        yield from [(Step("item", i), child) for i, child in enumerate(x) if type(child) not in ATOMS]
    elif isinstance(x, types.MethodType):
        yield from [(Step("part", name), getattr(x, name)) for name in ("__self__", "__func__")]
    elif isinstance(x, functools.partial):
        yield from [(Step("part", name), getattr(x, name)) for name in ("func", "args", "keywords")]
    elif isinstance(x, Function):
        yield Step("part", "python_function"), x.python_function
    elif not isinstance(x, type) and is_opened(x):
        yield Step("part", "__class__"), type(x)


def lead_to(values: Iterable[Any], wanted: Iterable[Any]) -> bool:
    """Whether `values` lead to each of the objects that are `wanted`."""
    missing, met = {id(x) for x in wanted}, set[int]()
    waiting = deque(values)
    while waiting and missing and len(met) < MOST:
        x = waiting.popleft()
        if id(x) not in met:
            met.add(id(x))
            missing.discard(id(x))
            waiting.extend(child for _, child in children(x))
    return not missing


def _held(holder: Holder) -> Iterator[tuple[Step, Any]]:
    inside, kind = holder.contents(), "attribute" if holder.attributes else "item"
    if isinstance(holder.of, types.CellType):
        yield from [(Step("contents", None), value) for value in inside]
        return
    if isinstance(holder.of, weakref.WeakKeyDictionary):
        return  # a step by its key would keep that alive
    if isinstance(inside, set) or ATOMS.issuperset(map(type, inside.values() if isinstance(inside, dict) else inside)):
        return
    items = inside.items() if isinstance(inside, dict) else enumerate(inside)
    yield from [(Step(kind, key), value) for key, value in items if type(value) not in ATOMS]
