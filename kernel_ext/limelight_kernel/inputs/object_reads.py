"""What a cell reads through the objects among its inputs, as inputs of their own: `cfg.rate`, `helpers.SCALE`.

The code of the cell and of the user's functions that it calls is read once, for the ways by which it gets at values:
attributes, items, globals of other files, closures. Each call goes these ways again. Tensors that stand where a
stand-in can be lent travel into the graph, as global ones do: another of the same type finds the trace. Plain values
are keyed by value, all else by identity and by what it holds; so a change leads to another trace, whose reason names
the way. Where the code does not tell what it reads of an object (`vars(cfg)`, `getattr(cfg, name)`, `helper(cfg)`),
all its attributes are compared.
"""

from __future__ import annotations

import enum
import io
import itertools
import operator
import os
import sys
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import nest
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.user_code.code_uses import Chain
from limelight.user_code.names_read import MISSING, Read, contents, is_users, reads, step
from limelight.user_code.source_line import Source
from limelight_kernel.cell.compiled_cell import StagedSyntaxError
from limelight_kernel.inputs.class_code import METHODS, ClassCode, classes_of
from limelight_kernel.inputs.contents import CONTAINERS, attributes, is_opened
from limelight_kernel.inputs.kind_questions import KindQuestions, kind_questions
from limelight_kernel.inputs.lru_caches import LRU_CACHE, LruCaches
from limelight_kernel.inputs.pins import HeldPin, Pins, by_value
from limelight_kernel.inputs.portraits import (
    PLAIN,
    Lends,
    Lent,
    changes_state,
    has_state,
    is_lent,
    is_users_object,
    items_of,
    may_have_state,
)

BY_IDENTITY = frozenset(["In", "Out"])  # lists and dictionaries that every cell adds to
MOST_WAYS = 200  # that one cell compares
_BY_VALUE = (*PLAIN, range, slice, enum.Enum, np.dtype)
_MOST_LEAVES = 32
_NO_VALUES = (
    *(types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType),
    *(types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType, np.ufunc),
    *(property, staticmethod, classmethod),
)


_KEYED = (
    *(*_BY_VALUE, Tensor, Resource, np.ndarray, np.generic, type, types.FunctionType),
    *(set, frozenset, bytearray),  # pins, with what they hold
)


class Setting(NamedTuple):
    """Where a way starts that leads to a setting of Python's, by the function that tells it."""

    now: Callable[[], Any]


class Way(NamedTuple):
    """How the code gets at a value: from `start`, which is held if it is no input and no global, by steps."""

    label: str
    name: str | None  # of an input, or of a global in `start`
    start: Any
    steps: tuple[tuple[str, Any], ...]

    def value(self, inputs: Mapping[str, Any]) -> Any:
        """What it leads to now."""
        x: Any = self.start
        if self.name is not None:
            x = (inputs if x is None else x).get(self.name, MISSING)
        elif type(x) is types.CellType:
            x = contents(x)
        elif type(x) is Setting:
            x = x.now()
        for kind, key in self.steps:
            x = step(x, kind, key)
        return x

    def owner(self, inputs: Mapping[str, Any]) -> Any:
        """What holds the value, where something else can stand for it there while a trace is made; else MISSING."""
        if not self.steps:
            return MISSING
        owner, (kind, key) = self._replace(steps=self.steps[:-1]).value(inputs), self.steps[-1]
        if kind == ".":
            own = not isinstance(owner, type) and is_opened(owner) and key in attributes(owner)
            return owner if own else MISSING
        return owner if isinstance(owner, list | dict) else MISSING


_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))


class EachRun:
    """Stands for an object that each run changes while it is traced: no other run is like this one."""

    def __init__(self, value: object) -> None:
        self.__limelight_name__ = f"{type(value).__name__} as this run finds it"

    def __repr__(self) -> str:
        return self.__limelight_name__


_STEPS_ON: Final = frozenset(["send", "throw", "close", "__next__"])


class Consumed(NamedTuple):
    """An iterator of the notebook's whose items the code takes, and the line where; `by` this method of it, if any."""

    name: str
    value: Any
    line: Source
    by: str = ""


def refuse_consumed(consumed: Consumed | None) -> None:
    """Raises StagedSyntaxError for an iterator whose items the code takes: calls that find the trace would take none.

    It is asked before the code runs, so the iterator still has them.
    """
    if consumed is None:
        return
    line = consumed.line
    if isinstance(consumed.value, _VIEWS):
        raise StagedSyntaxError(
            f"`{consumed.name}` is a view of a dictionary, which shows another one's contents while a staged cell is "
            f"traced. Write `items = list({consumed.name})` in a cell above and read `items` here, or "
            f"`d.{type(consumed.value).__name__.rpartition('_')[2]}()` of the dictionary",
            (line.file, line.line, 1, line.text),
        )
    what = "generator" if isinstance(consumed.value, types.GeneratorType) else type(consumed.value).__name__
    steps = (
        f"`{consumed.name}` is a {what}, which `{consumed.name}.{consumed.by}(...)` has go on: a staged cell would do "
        "that while it is traced alone. Do it in a cell without %%stage, or keep what it remembers in an ll.Variable"
    )
    takes = (
        f"`{consumed.name}` is a {what}, whose items are gone once they are taken: a staged cell would take them while "
        f"it is traced alone. Write `items = list({consumed.name})` in a cell above and go through `items`, or take "
        f"`item = next({consumed.name})` there and read `item` here"
    )
    raise StagedSyntaxError(steps if consumed.by else takes, (line.file, line.line, 1, line.text))


class ObjectReads:
    """The ways of one cell, found anew when what they lead to has changed.

    Args:
        body: what the reader of code takes for the cell's function; it is told what is compared.
        namespace: the notebook's.
        lru_caches: what functions remember that it calls.
    """

    def __init__(self, body: Callable[..., Any], namespace: Mapping[str, Any], lru_caches: LruCaches) -> None:
        self._body, self._lru_caches = body, lru_caches
        self._compared: set[tuple[types.CodeType, Chain]] = set()  # by the code that reads it
        vars(body)["__limelight_compared__"] = self._compared
        self._namespace = namespace
        self._pins = Pins()
        self._ways: tuple[Way, ...] = ()
        self._types: tuple[type, ...] | None = None
        self._names: tuple[str, ...] = ()
        self._objects: dict[str, Any] = {}  # inputs that lead on, but for containers
        self._last: dict[str, Any] = {}
        self.lends: Lends = (Tensor,)  # what travels into the graph
        self.lent: dict[str, Lent] = {}  # those that do in this call
        self.consumed: Consumed | None = None
        self.kinds = KindQuestions()  # what the code asks for
        self._classes: dict[type, ClassCode] = {}
        self._versions = itertools.count(1)  # of their code
        self._changed_by_runs: set[str] = set()  # labels of objects of Python's library that methods change

    @property
    def paths(self) -> tuple[str, ...]:
        """What is compared on each call, as the code writes it."""
        return tuple([way.label for way in self._ways])

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways to it; the very same tuple as long as the code has not been read again."""
        return self._ways

    def __call__(self, inputs: Mapping[str, Any], written: Collection[str] = ()) -> dict[str, Any]:
        """Arguments that stand for what is read through `inputs`, by paths; the code assigns the names `written`."""
        if (
            self._types == tuple(map(type, inputs.values()))
            and self._names == tuple(inputs)
            and all(map(operator.is_, map(inputs.__getitem__, self._objects), self._objects.values()))
        ):
            now = self._arguments(inputs)
            if _are_alike(now, self._last):
                return now
        self._look(inputs, written)
        self._last = self._arguments(inputs)
        return self._last

    def look_again(self, inputs: Mapping[str, Any], written: Collection[str] = ()) -> bool:
        """Reads the code anew, before a trace; says whether it gets at other places now, in containers, say."""
        before = self._ways
        self._look(inputs, written)
        pairs = zip(before, self._ways, strict=False)
        if len(before) == len(self._ways) and all(x.label == y.label and x.start is y.start for x, y in pairs):
            self._ways = before
            return False
        return True

    @property
    def changed_by_runs(self) -> tuple[str, ...]:
        """What each run changes while it is traced, as code: then none finds the trace of another."""
        return tuple([way.label for way in self._ways if way.label in self._changed_by_runs])

    def settings(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The plain values that are read of modules, which no run sets again, by paths."""
        of_modules = [way for way in self._ways if isinstance(inputs.get(way.name or ""), types.ModuleType)]
        return {way.label: x for way in of_modules if type(x := way.value(inputs)) in PLAIN}

    def as_they_are(self) -> list[HeldPin]:
        """The pins of what is read that hold now; see `Pins.as_they_are`."""
        return self._pins.as_they_are()

    def stop_lending(self) -> None:
        """Has tensors be compared by identity from now on: the code asks for values, `cfg.t.item()`."""
        self._begin_with(())

    def lend_arrays(self) -> bool:
        """Has arrays of NumPy's travel into the graph, too, as the code changes one; False where they do already."""
        if self.lends != (Tensor,):
            return False
        self._begin_with((Tensor, np.ndarray))
        return True

    def _begin_with(self, lends: Lends) -> None:
        self.lends, self.lent, self._last, self._pins = lends, {}, {}, Pins()

    def _arguments(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        self.lent = {}
        found: dict[str, Any] = {}
        for way in self._ways:
            found[way.label] = self._keyed(way, way.value(inputs), inputs)
        return {**found, **{path: lent.tensor for path, lent in self.lent.items()}}

    def _keyed(self, way: Way, value: Any, inputs: Mapping[str, Any]) -> Any:
        if way.label in self._changed_by_runs:
            return EachRun(value)
        if isinstance(value, LRU_CACHE):
            return self._lru_caches.pin(way.label, value)
        if is_lent(value, self.lends) and (owner := way.owner(inputs)) is not MISSING:
            self.lent[way.label] = Lent(way.label, owner, way.steps[-1], value)
            return value
        if isinstance(value, _BY_VALUE) and type(value).__eq__ is not object.__eq__:
            return value
        if isinstance(value, np.generic):
            return by_value(value)
        if _is_small_and_plain(value):
            return value
        if not self.lends:
            return self._pins.pin(way.label, value)
        pinned, lent = self._pins.pin_lending(way.label, value, self.lends)
        self.lent |= {one.path: one for one in lent}
        return pinned

    def _look(self, inputs: Mapping[str, Any], written: Collection[str]) -> None:
        """Reads the code."""
        self._types, self._names = tuple(map(type, inputs.values())), tuple(inputs)
        self.consumed, self.kinds = None, KindQuestions()
        self._compared.clear()
        self._changed_by_runs.clear()
        self._objects = {
            name: x
            for name, x in inputs.items()
            if _may_lead_on(x) and not isinstance(x, type) and nest.opened(x) is None
        }
        ways: dict[str, Way] = {}
        if any(map(_may_lead_on, inputs.values())):
            for way in self._found(inputs, written):
                if len(ways) < MOST_WAYS:
                    ways.setdefault(way.label, way)
        self._ways = tuple(ways.values())

    def _found(self, inputs: Mapping[str, Any], written: Collection[str]) -> Iterator[Way]:
        owners = {id(x): name for name, x in inputs.items() if not isinstance(x, _BY_VALUE)}
        found = list(reads(self._body, inputs, {**self._namespace, **inputs}))
        called = Counter((read.code, read.use.chain) for read in found if read.use.how == "call")
        self.kinds = kind_questions(found, vars(self._body)["python_function"].__code__.co_filename)
        for read in found:
            if read.use.how != "read" or read.value is MISSING:
                continue
            if read.value is os.getenv:
                yield Way("os.environ", None, os.environ, ())
            yield from _of_settings(read.value)
            if _is_foreign(read):
                continue
            self._note_consumed(read)
            key = (read.code, read.use.chain)
            is_called = called[key] > 0
            called[key] -= is_called
            way = self._way(read, inputs, owners, is_called)
            if way is not None:
                self._compared.add(key)
                if has_state(read.value) or _calls_to_change(read):
                    self._changed_by_runs.add(way.label)
                yield way
            elif _calls_to_change(read):
                chain, _ = _whole(read)
                is_input = chain.name in inputs and read.start is inputs[chain.name]
                label = f"{chain}[...]" if is_input else _label(chain, read, owners)
                start = (chain.name, None) if is_input else (None, read.start)
                changed = Way(label, start[0], start[1], chain.steps)
                self._changed_by_runs.add(changed.label)
                yield changed
            if is_users_object(read.value) and _is_descriptor(read.value):  # which may keep values itself
                yield Way(f"{read.use.chain} by its {type(read.value).__name__}", None, read.value, ())
        yield from self._of_inputs(inputs, written)
        yield from self._of_classes([*inputs.values(), *[read.value for read in found if read.use.how == "read"]])

    def _of_classes(self, values: list[Any]) -> Iterator[Way]:
        """The code of the user's classes."""
        known = self._classes
        self._classes = {kind: known.get(kind) or ClassCode(kind, self._versions) for kind in classes_of(values)}
        names = Counter(kind.__name__ for kind in self._classes)
        for kind, code in self._classes.items():
            name = kind.__name__ if names[kind.__name__] == 1 else f"{kind.__name__} at {id(kind):#x}"
            yield Way(f"{METHODS}{name}", None, Setting(code.now), ())

    def _of_inputs(self, inputs: Mapping[str, Any], written: Collection[str]) -> Iterator[Way]:
        """What the reader of code takes no notice of."""
        for name, value in inputs.items():
            yield from _of_class(name, value)
            yield from _of_base_classes(value)
            if isinstance(vars(type(value)).get("__getattribute__"), types.FunctionType):  # each read runs it
                self._changed_by_runs.add(f"{name}[...]")
                yield Way(f"{name}[...]", name, None, ())
        for name in written:
            if name in inputs and (way := _of_input(Chain("global", name), inputs[name])) is not None:
                yield way

    def _note_consumed(self, read: Read) -> None:
        chain = read.use.chain
        if self.consumed is None and (_is_iterator(read.value) or isinstance(read.value, _VIEWS)):
            self.consumed = Consumed(str(chain), read.value, read.line)
        elif self.consumed is None and chain.steps and chain.steps[-1][1] in _STEPS_ON and _is_iterator(read.base):
            owner = chain._replace(steps=chain.steps[:-1])
            self.consumed = Consumed(str(owner), read.base, read.line, chain.steps[-1][1])

    def _way(self, read: Read, inputs: Mapping[str, Any], owners: Mapping[int, str], is_called: bool) -> Way | None:
        """The way to what is read; None where it is an input anyway, or nothing that changes.

        What an object that `is_called` reads of itself is read in its own code; where a method of the library's is
        called, as in `metrics.values()`, its code is not read, and may hand out all that the object holds.
        """
        chain, value = _whole(read)
        is_called = is_called and chain == read.use.chain
        if _is_method(value):
            return None
        if chain.root == "global" and (way := self._of_global(chain, read)) is not None:
            return way
        if chain.name in inputs and read.start is inputs[chain.name]:
            if is_called and not isinstance(value, (types.FunctionType, LRU_CACHE)) and not chain.steps:
                return None
            if _is_keyed(chain, read.start):
                return _of_input(chain, value)
            return Way(str(chain), chain.name, None, chain.steps)
        if not chain.steps and chain.root == "local":
            return None if items_of(value) is None else Way(_label(chain, read, owners), None, read.start, ())
        if chain.root == "global":
            return None
        return Way(_label(chain, read, owners), None, read.start, chain.steps)

    def _of_global(self, chain: Chain, read: Read) -> Way | None:
        """A global of another file; those of the notebook are inputs."""
        module = read.globals.get("__name__")
        if read.globals.get("__builtins__") is None or chain.name not in read.globals or module == "__main__":
            return None
        return Way(f"{module}.{chain}", chain.name, read.globals, chain.steps)


def _calls_to_change(read: Read) -> bool:
    """Whether a method is called that may change an object of a library: `file.write(x)`, or any on its own."""
    chain = read.use.chain
    if not chain.steps or chain.steps[-1][0] != "." or isinstance(read.base, (types.ModuleType, type)):
        return False
    return changes_state(read.base, chain.steps[-1][1]) or (read.use.dropped and may_have_state(read.base))


def _are_alike(now: dict[str, Any], last: dict[str, Any]) -> bool:
    """Whether two calls find the same, but for the values of tensors, and of arrays that are lent."""
    if now.keys() != last.keys():
        return False
    lent = (Tensor, np.ndarray)
    pairs = [(x, y) for x, y in zip(now.values(), last.values(), strict=True) if x is not y]
    return all(
        isinstance(x, lent) and isinstance(y, lent) if isinstance(x, lent) or isinstance(y, lent) else x == y
        for x, y in pairs
    )


def _is_keyed(chain: Chain, value: Any) -> bool:
    """Whether the chain leads to an input, or to a part of one that its key tells of, rather than through an object."""
    for kind, key in chain.steps:
        if chain.name in BY_IDENTITY or nest.opened(value) is None:
            return False
        value = step(value, kind, key)
    return True


def _of_input(chain: Chain, value: Any) -> Way | None:
    """An input, or a part of one: what it holds is compared where its own key does not tell."""
    if isinstance(value, types.FunctionType):
        part = _changing_part(value)
        return Way(f"{chain}.{part}", chain.name, None, (*chain.steps, (".", part))) if part else None
    if chain.name not in BY_IDENTITY and not _has_more_than_its_key(value):
        return None
    is_leaf = nest.opened(value) is None and not chain.steps
    return Way(chain.name if is_leaf else f"{chain}[...]", chain.name, None, chain.steps)


def _of_class(name: str, value: Any) -> Iterator[Way]:
    """The data of a class that is written in the notebook: methods get at it by `cls` and `self`, in many ways."""
    if isinstance(value, type) and value.__module__ == "__main__" and not issubclass(value, enum.Enum):
        for key, x in vars(value).items():
            if not key.startswith("__") and (isinstance(x, (*PLAIN, list, dict, set)) or is_users_object(x)):
                yield Way(f"{name}.{key}", name, None, ((".", key),))


def _of_base_classes(value: Any) -> Iterator[Way]:
    """The same of the classes that an object inherits from, whose methods `super()` leads to."""
    kinds = [kind for kind in type(value).__mro__ if kind.__module__ == "__main__"]
    if len(kinds) > 1 and not isinstance(value, enum.Enum):
        for kind in kinds:
            for way in _of_class(kind.__name__, kind):
                yield way._replace(name=None, start=kind)


def _changing_part(function: types.FunctionType) -> str:
    """What of a function holds something that may change in place; that it has got another one its own key tells."""
    for part in ("__defaults__", "__kwdefaults__"):
        given = getattr(function, part) or ()
        if any(items_of(x) is not None for x in (given.values() if isinstance(given, dict) else given)):
            return part
    return ""


def _has_more_than_its_key(value: Any) -> bool:
    """Whether something in `value` is keyed by identity alone, and holds more."""
    opaque = [x for x in nest.leaves_of(value) if not isinstance(x, _KEYED)]
    return any(items_of(x) is not None for x in opaque[:MOST_WAYS])


def _may_lead_on(value: Any) -> bool:
    return not isinstance(value, (Tensor, Resource, np.ndarray, np.generic, *PLAIN))


def _is_small_and_plain(value: Any) -> bool:
    if type(value) not in (tuple, list, dict) or len(value) > _MOST_LEAVES:
        return False
    items = value.values() if type(value) is dict else value
    return all(type(x) in PLAIN for x in items) and (type(value) is not dict or all(map(_is_key, value)))


def _is_key(key: Any) -> bool:
    return type(key) is str


def _is_iterator(value: Any) -> bool:
    """Whether its items are gone once they are taken; those of the user's classes are compared by their attributes."""
    own = hasattr(value, "__limelight_rounds__")  # an op of the graph takes its items
    return isinstance(value, Iterator) and not own and not isinstance(value, io.IOBase) and not is_users_object(value)


def _of_settings(value: Any) -> Iterator[Way]:
    """Settings of Python's and NumPy's that count for what code makes of `value`."""
    if _is_of_decimals(value):
        yield Way("decimal.getcontext()", None, Setting(sys.modules["decimal"].getcontext), ())
    if any(value is one for one in (np.array2string, np.array_str, np.array_repr)):
        yield Way("np.get_printoptions()", None, Setting(np.get_printoptions), ())


def _is_of_decimals(value: Any) -> bool:
    """Whether the precision of decimal numbers, a setting of each thread's, counts for what code makes of `value`."""
    if (decimal := sys.modules.get("decimal")) is None:
        return False
    leaves = nest.leaves_of(value)[:_MOST_LEAVES] if isinstance(value, list | tuple | dict) else [value]
    return value is decimal or any(
        isinstance(x, decimal.Decimal) or (callable(x) and getattr(x, "__module__", None) == "decimal") for x in leaves
    )


def _is_library(value: Any) -> bool:
    """Whether `value` is limelight's own function or class: these do not change."""
    module = getattr(value, "__module__", None) if isinstance(value, (type, types.FunctionType)) else None
    return isinstance(module, str) and module.partition(".")[0] in ("limelight", "limelight_kernel")


def _is_foreign(read: Read) -> bool:
    """Whether it is a name of somebody else's module: `np.pi` is as constant as 3.14; `os.environ` is not."""
    if not read.module or isinstance(read.value, _CHANGES) or isinstance(read.base, _CHANGES):
        return False
    if read.module not in sys.modules:  # one that a cell has made
        return False
    module = sys.modules[read.module]
    if (file := getattr(module, "__file__", None)) is None:
        return module.__spec__ is not None  # one of Python's own, rather than one that a cell has made
    return read.module.partition(".")[0] == "limelight" or not is_users(file)


def _whole(read: Read) -> tuple[Chain, Any]:
    """The chain and its value; where it goes on inside an array, a tensor or a container, up to that."""
    chain, x = read.use.chain, read.start
    x = contents(x) if type(x) is types.CellType else x
    for i, (kind, key) in enumerate(chain.steps):
        further = step(x, kind, key)
        adds = key in _ADDS and isinstance(x, CONTAINERS)
        hides = _is_method(further) and not _tells_itself(x) and not adds
        if isinstance(x, _AS_A_WHOLE) or hides or _is_descriptor(further):
            return chain._replace(steps=chain.steps[:i]), x
        x = further
    return chain, x


_CHANGES = (list, dict, set, MutableMapping)
_AS_A_WHOLE = (np.ndarray, np.generic, Tensor, Resource, str, bytes)
_ADDS = frozenset(["append", "extend", "add", "update", "insert", "appendleft", "extendleft", "discard", "clear"])
"""Methods of lists, dictionaries, sets and deques that do not tell what is in them."""


def _is_method(value: Any) -> bool:
    if isinstance(value, types.FunctionType) and not is_users(value.__code__.co_filename):
        return True
    return isinstance(value, _NO_VALUES) or _is_library(value)


def _is_descriptor(value: Any) -> bool:
    """Whether it asks the object for the value that an attribute has, as traits do."""
    known = type(value).__module__ in ("builtins", "functools") or type(value).__module__.startswith("limelight")
    return hasattr(type(value), "__get__") and not known


def _tells_itself(owner: Any) -> bool:
    """Whether what its methods read is found by reading their code."""
    return isinstance(owner, (types.ModuleType, type)) or is_users_object(owner)


def _label(chain: Chain, read: Read, owners: Mapping[int, str]) -> str:
    """`schedule.rate` for the `self.rate` of an object that the notebook calls `schedule`."""
    owner = owners.get(id(read.start))
    if owner is not None:
        return str(chain._replace(name=owner)) if chain.steps else f"{owner}[...]"
    return str(chain) if chain.steps else f"{read.code.co_name}.{chain.name}"
