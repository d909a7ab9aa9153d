"""How what a trace made is made again at each run: with the tensors that the graph has computed, and the inputs then.

A graph returns tensors alone. A `Recipe` says where they go: into containers made afresh, closures, objects of the
user's classes; what was an input of the trace is the input of the run, the same object. What else a cell makes
(strings, numbers, functions without state) exists from the trace on; classes do, too, and are set back. Sharing is
kept: one object of the trace is one of each run.
"""

from __future__ import annotations

import functools
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

import limelight as ll
from limelight.autograph.python_numbers import MixedNumber, SymbolicNumber, as_number, decoded
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.errors import LeakedTensorError
from limelight.staging.function import Function
from limelight.staging.symbolic import SymbolicTensor
from limelight_kernel.inputs.contents import (
    ATOMS,
    CONTAINERS,
    WEAK,
    Holder,
    Step,
    attributes,
    children,
    is_opened,
    mapping,
)
from limelight_kernel.staged import array_memory
from limelight_kernel.staged.array_stand_ins import SymbolicArray
from limelight_kernel.staged.borrowed_state import BorrowedState, Change, Itself, Place

UNASSIGNED: Final = object()
_ITERATORS: Final = ("builtins", "itertools")
Parts: TypeAlias = "list[tuple[Step, Recipe]]"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a graph: its results, what the inputs mean, and what has been made so far."""

    tensors: tuple[Tensor, ...]
    inputs: Mapping[str, Any]
    made: dict[int, Any] = field(default_factory=dict)


class Recipe(Protocol):
    """Makes a value for a run."""

    def make(self, run: Run) -> Any: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """A value of the trace."""

    value: Any

    def make(self, _run: Run) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that the graph computes."""

    index: int

    def make(self, run: Run) -> Any:
        return run.tensors[self.index]


@dataclass(eq=False, slots=True)
class ArrayResult:
    """A result of the graph as an array of NumPy's, or a scalar of it: arithmetic of arrays alone gives arrays."""

    index: int

    def make(self, run: Run) -> Any:
        if id(self) not in run.made:
            run.made[id(self)] = np.array(run.tensors[self.index].numpy())[()]
        return run.made[id(self)]


@dataclass(frozen=True, slots=True)
class NumberResult:
    """A result of the graph as the Python number that the plain cell would have."""

    index: int
    kind: type

    def make(self, run: Run) -> Any:
        tensor = run.tensors[self.index]  # one without a value where the cell is called in a trace, or in a batch
        return self.kind(tensor.item()) if type(tensor) is Tensor else as_number(tensor, self.kind)


@dataclass(frozen=True, slots=True)
class MixedResult:
    """A result of the graph that is a tensor after some runs and a Python number after others, as its `code` says."""

    index: int
    code: int

    def make(self, run: Run) -> Any:
        return decoded(run.tensors[self.index], run.tensors[self.code])


@dataclass(frozen=True, slots=True)
class IfAssigned:
    """A name that only some runs assign: `flag` is the result of the graph that says whether this one has."""

    value: Recipe
    flag: int

    def make(self, run: Run) -> Any:
        return self.value.make(run) if run.tensors[self.flag].item() else UNASSIGNED


@dataclass(frozen=True, slots=True)
class Input:
    """What stands at a place of the notebook."""

    place: Place

    def make(self, run: Run) -> Any:
        return self.place.find(run.inputs)


@dataclass(eq=False, slots=True)
class Composite:
    """An object made of parts: at first `blank`, then filled with them, so that it may lead back to itself."""

    blank: Callable[[], Any]
    parts: Parts = field(default_factory=list)

    def make(self, run: Run) -> Any:
        if id(self) not in run.made:
            run.made[id(self)] = new = self.blank()
            made = [  # most are results, and so is what stands in most lists
                run.tensors[recipe.index] if type(recipe) is Result else recipe.make(run) for _, recipe in self.parts
            ]
            if type(new) is list:
                new.extend(made)
            else:
                self._fill(new, [(step, x) for (step, _), x in zip(self.parts, made, strict=True)])
        return run.made[id(self)]

    def _fill(self, new: Any, parts: list[tuple[Step, Any]]) -> None:
        items = {step.key: value for step, value in parts if step.kind in ("item", "contents")}
        own = {step.key: value for step, value in parts if step.kind == "attribute"}
        if items:
            Holder(new).put(items if isinstance(new, dict) else list(items.values()))
        if own:
            Holder(new, True).put(own)


@dataclass(eq=False, slots=True)
class Fixed:
    """An object that takes its parts when it is made: a tuple, a function, a method, a partial."""

    build: Callable[[list[tuple[Step, Any]]], Any]
    parts: Parts = field(default_factory=list)

    def make(self, run: Run) -> Any:
        if id(self) not in run.made:
            parts = [(step, recipe.make(run)) for step, recipe in self.parts]
            if id(self) not in run.made:  # a function whose closure leads back to it is made by then
                run.made[id(self)] = self.build(parts)
        return run.made[id(self)]


@dataclass(slots=True)
class _Met:
    """An object met while looking for what a value leads to."""

    value: Any
    name: str
    inside: list[tuple[Step, Any]]
    hot: bool = False  # it has something of the run in it
    fresh: bool = False  # it is, or has in it, a container that each run makes anew


class RecipeBook:
    """Writes the recipes of one trace; `tensors` are those that the graph must return, and `names` what to call them.

    Args:
        state: what was lent to the trace.
        where: says on which line of the cell a path is made, for messages: " (In[3] line 2: it = iter(xs))".
        is_made: whether a function or a class is written in the cell.
    """

    def __init__(
        self,
        state: BorrowedState,
        where: Callable[[str], str] = lambda path: "",
        is_made: Callable[[Any], bool] = lambda x: False,
    ) -> None:
        self._state = state
        self._where = where
        self._is_made = is_made
        self._met: dict[int, _Met] = {}
        self._written: dict[int, Recipe] = {}
        self._results: dict[int, int] = {}
        self.tensors: list[Tensor] = []
        self.names: list[str] = []
        self.unsure: dict[str, type] = {}  # what Python may have another number for, as code, and its type

    def survey(self, roots: Mapping[str, Any]) -> None:
        """Looks at all values before the first recipe is written: what leads where."""
        above: dict[int, list[int]] = {}
        waiting = [(value, name) for name, value in roots.items()]
        while waiting:
            x, name = waiting.pop()
            if id(x) in self._met or type(x) in ATOMS:
                continue
            self._met[id(x)] = met = _Met(x, name, [])
            if self._is_leaf(x, met):
                continue
            met.inside = list(_inside(x))
            met.fresh = isinstance(x, CONTAINERS)
            for step, child in met.inside:
                if step.key != "__class__":
                    above.setdefault(id(child), []).append(id(x))
                waiting.append((child, step.after(name)))
        self._spread(above)

    def _is_leaf(self, x: Any, met: _Met) -> bool:
        """Whether nothing in `x` is looked at: it is a tensor, a variable, or an input."""
        place = self._place(x)
        met.hot = (
            isinstance(x, Tensor) or id(x) in self._state.stand_ins or (place is not None and isinstance(x, CONTAINERS))
        )
        return met.hot or place is not None or isinstance(x, Resource)

    def _place(self, x: Any) -> Place | None:
        stand_in = self._state.stand_ins.get(id(x))
        if stand_in is not None:
            return stand_in[1]
        known = self._state.places.get(id(x))
        return None if known is None else known[1]

    def _spread(self, above: dict[int, list[int]]) -> None:
        """What has something hot or fresh in it is so too."""
        for word in ("hot", "fresh"):
            waiting = [key for key, met in self._met.items() if getattr(met, word)]
            while waiting:
                for key in above.get(waiting.pop(), ()):
                    if not getattr(self._met[key], word):
                        setattr(self._met[key], word, True)
                        waiting.append(key)

    def left_in(self) -> list[Change]:
        """What classes and layers that the code has made hold of the run, as changes to be made at each.

        Raises LeakedTensorError for a staged function that closes over a tensor of the cell.
        """
        met = [one for one in self._met.values() if _stays(one.value) and self._place(one.value) is None]
        return [change for one in met if (change := self._left_in(one)) is not None]

    def _left_in(self, met: _Met) -> Change | None:
        if not met.hot and not (isinstance(met.value, type) and self._is_made(met.value)):
            return None
        if isinstance(met.value, Function):
            raise LeakedTensorError(
                f"`{met.name}`, a staged function, closes over a tensor of the cell, which has a value only when the "
                f"graph runs. Give it that tensor as an argument, or make it in a cell below{self._where(met.name)}"
            )
        holder = Holder(met.value, True)
        now = {step.key: x for step, x in met.inside if step.kind == "attribute" and self._is_hot(x)}
        if isinstance(met.value, type) and self._is_made(met.value):  # a plain cell would make another class
            now |= {key: x for key, x in attributes(met.value).items() if type(x) in ATOMS or isinstance(x, CONTAINERS)}
        return Change(holder, Itself(met.value, met.name), {}, now, only_adds=False) if now else None

    def refuse_keys(self, name: str, x: Mapping[Any, Any]) -> None:
        """Raises LeakedTensorError for a dictionary of which a key has a tensor of the cell in it."""
        for key in x:
            if type(key) not in ATOMS and self._place(key) is None and _leads_to_tensor(key):
                raise LeakedTensorError(
                    f"a key of `{name}` is, or has in it, a tensor of the cell, which has a value only when the graph "
                    f"runs. Make that dictionary in a cell below, or take a name or a number as the key"
                    f"{self._where(name)}"
                )

    def _is_hot(self, x: Any) -> bool:
        known = self._met.get(id(x))
        return known is not None and known.hot

    def output(self, name: str, value: Any) -> Recipe:
        """The recipe of a name that the cell assigns, or of its result: tensors in it are results of the graph."""
        return self._recipe(value, name, named=True)

    def if_assigned(self, name: str, value: Recipe, flag: Tensor) -> Recipe:
        """The recipe of a name that the cell assigns where `flag` holds."""
        return IfAssigned(value, self._result(flag, f"whether {name} is assigned", True))

    def recipe(self, name: str, value: Any) -> Recipe:
        """The recipe of a value that is stored elsewhere."""
        return self._recipe(value, name, named=False)

    def _recipe(self, x: Any, name: str, named: bool) -> Recipe:
        if type(x) is str and "<symbolic " in x:
            raise LeakedTensorError(
                f"`{name}` is a text about a tensor of the graph, which has no value while the cell is traced: runs "
                f"would find {x[:40]!r}. Make the text in a cell below{self._where(name)}"
            )
        if type(x) in ATOMS or id(x) not in self._met:
            return Constant(x)
        place = self._place(x)
        if isinstance(x, Tensor) and not self._is_input(x, place, named):
            if isinstance(x, SymbolicArray):
                return self.array(name, x)
            if isinstance(x, SymbolicNumber):
                return self._number(x, name, named)
            if isinstance(x, MixedNumber):
                return self._mixed(x, name, named)
            result = self._result(x, name, named)
            return Result(result) if place is None else Input(place)  # `b = a` is no other tensor than a
        if place is not None:
            return Input(place)
        known = self._written.get(id(x))
        return self._compose(x, name, named) if known is None else known

    def _is_input(self, x: Any, place: Place | None, named: bool) -> bool:
        """Whether a tensor is one of the notebook's values rather than a result: those of names are results."""
        if place is None:
            return False
        known = self._state.stand_ins.get(id(x))
        return not named or (known is not None and not isinstance(known[2], Tensor))

    def array(self, name: str, x: SymbolicArray) -> ArrayResult:
        """The recipe of what a stand-in of an array stands for by now, be it that of an input."""
        known = self._written.get(id(x))
        if not isinstance(known, ArrayResult):
            array_memory.refuse_lost(x)
            self._written[id(x)] = known = ArrayResult(self._result(x, name, named=False))
        return known

    def _number(self, x: SymbolicNumber, name: str, named: bool) -> Recipe:
        if x.unsure:
            self.unsure[name] = x.kind
        return NumberResult(self._result(x, name, named), x.kind)

    def _mixed(self, x: MixedNumber, name: str, named: bool) -> Recipe:
        if x.unsure:
            self.unsure[name] = float if x.dtype.kind == "f" else int
        return MixedResult(self._result(x, name, named), self._result(x.code, f"whether {name} is a number", False))

    def _result(self, x: Tensor, name: str, named: bool) -> int:
        first = self._results.setdefault(id(x), len(self.tensors))
        if named or first == len(self.tensors):
            self.tensors.append(x)
            self.names.append(name)
        return first

    def _compose(self, x: Any, name: str, named: bool) -> Recipe:
        met = self._met[id(x)]
        if isinstance(x, Iterator | types.CoroutineType) and type(x).__module__ in _ITERATORS:
            raise LeakedTensorError(
                f"`{name}` is an iterator of type {type(x).__name__}, made while the cell is traced: later runs would "
                "hand out the same one, used up. Make a list of what it yields, or make it in a cell below"
                f"{self._where(name)}"
            )
        if isinstance(x, WEAK):
            raise LeakedTensorError(
                f"`{name}` is a {type(x).__name__}, made while the cell is traced: it would lose what the cell puts "
                f"there, which lives as long as the trace. Make it in a cell above{self._where(name)}"
            )
        if isinstance(x, CONTAINERS) or ((met.hot or _is_notebooks(x)) and _is_object(x)):
            composite = Composite(_blank(x))
            self._written[id(x)] = composite
            composite.parts = self._parts(met, name, named)
            return composite
        anew = met.hot or (met.fresh and isinstance(x, tuple)) or (_has_state(x) and self._is_made(x))
        build = _builder(x) if anew else None
        if build is None:
            return self._written.setdefault(id(x), Constant(x))
        self._written[id(x)] = fixed = Fixed(build)
        fixed.parts = self._parts(met, name, named)
        return fixed

    def _parts(self, met: _Met, name: str, named: bool) -> Parts:
        x, parts = met.value, met.inside
        if isinstance(x, dict):
            self.refuse_keys(name, x)
        if isinstance(x, (*CONTAINERS, tuple)):  # what was looked at leaves out plain values
            parts = [*_items(x), *_own(x)]
        elif _is_object(x) and not isinstance(x, types.CellType):
            parts = _own(x)
        return [(step, self._recipe(child, step.after(name), named)) for step, child in parts]


def _leads_to_tensor(x: Any, depth: int = 3) -> bool:
    """Whether `x`, a key of a dictionary, is or holds a tensor of the trace."""
    if isinstance(x, SymbolicTensor):
        return True
    return depth > 0 and any(_leads_to_tensor(child, depth - 1) for _, child in children(x))


def _inside(x: Any) -> Iterator[tuple[Step, Any]]:
    if isinstance(x, types.GeneratorType | types.CoroutineType):
        frame = getattr(x, "gi_frame", None) or getattr(x, "cr_frame", None)
        yield from [(Step("part", name), value) for name, value in (frame.f_locals if frame else {}).items()]
    elif isinstance(x, set):
        yield from [(Step("element", i), value) for i, value in enumerate(x) if type(value) not in ATOMS]
    elif isinstance(x, list | tuple | dict | deque) or not type(x).__module__.startswith("limelight.") or is_opened(x):
        yield from children(x)
    elif isinstance(x, Function):
        yield Step("part", "python_function"), x.python_function


def _items(x: Any) -> Iterator[tuple[Step, Any]]:
    items = mapping(x).items(x) if isinstance(x, dict) else enumerate(x)
    yield from [(Step("item", key), value) for key, value in items]


def _own(x: Any) -> list[tuple[Step, Any]]:
    return [(Step("attribute", key), value) for key, value in attributes(x).items()]


def _stays(x: Any) -> bool:
    """Whether an object is the same at each run, whatever it holds."""
    return isinstance(x, type | Function | ll.Module | ll.optim.Optimizer)


def _has_state(x: Any) -> bool:
    """Whether a function may have become another one since: by what it closes over, by defaults or attributes."""
    return isinstance(x, types.FunctionType) and bool(x.__closure__ or x.__defaults__ or x.__kwdefaults__ or x.__dict__)


def _is_notebooks(x: Any) -> bool:
    """Whether an object is of a class of the notebook's, or the cell of a closure that is made anew."""
    return isinstance(x, types.CellType) or type(x).__module__ == "__main__"


def _is_object(x: Any) -> bool:
    """Whether it is an object of attributes that can be made anew, past its `__init__`."""
    return (
        isinstance(x, types.CellType)
        or (is_opened(x) and not _stays(x) and _is_of_objects(type(x)))
        or type(x) is types.SimpleNamespace
    )


def _is_of_objects(kind: type) -> bool:
    """Whether `object.__new__` makes an instance: each `__new__` before it, if any, is written in Python."""
    return all(base is object or isinstance(vars(base).get("__new__"), staticmethod | None) for base in kind.__mro__)


def _blank(x: Any) -> Callable[[], Any]:
    kind: Any = type(x)
    if kind is types.CellType:
        return types.CellType
    if isinstance(x, defaultdict):
        return functools.partial(kind, x.default_factory)
    if isinstance(x, deque):
        return functools.partial(kind, (), x.maxlen)
    return functools.partial(kind.__new__ if isinstance(x, CONTAINERS) else object.__new__, kind)


def _builder(x: Any) -> Callable[[list[tuple[Step, Any]]], Any] | None:
    """What makes another `x` of other parts; None where that cannot be done."""
    if isinstance(x, tuple):
        return functools.partial(_tuple, type(x))
    if isinstance(x, types.FunctionType):
        return functools.partial(_function, x.__code__, x.__globals__, _spared(x))
    if isinstance(x, types.MethodType):
        return _method
    if isinstance(x, functools.partial):
        return functools.partial(_partial, type(x))
    return None


def _tuple(kind: type, parts: list[tuple[Step, Any]]) -> Any:
    return tuple.__new__(kind, [value for step, value in parts if step.kind == "item"])


def _method(parts: list[tuple[Step, Any]]) -> Any:
    known = {step.key: value for step, value in parts if step.kind == "part"}
    return types.MethodType(known["__func__"], known["__self__"])


def _spared(x: types.FunctionType) -> dict[str, Any]:
    return {name: getattr(x, name) for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__")}


def _function(code: Any, scope: dict[str, Any], named: dict[str, Any], parts: list[tuple[Step, Any]]) -> Any:
    closure = tuple([value for step, value in parts if step.kind == "closure"])
    new = types.FunctionType(code, scope, named["__name__"], None, closure or None)
    own = [(step.key, value) for step, value in parts if step.kind == "attribute"]
    for name, value in [*named.items(), *own]:
        setattr(new, name, value)
    return new


def _partial(kind: type, parts: list[tuple[Step, Any]]) -> Any:
    known = {step.key: value for step, value in parts if step.kind == "part"}
    return kind(known["func"], *known["args"], **known["keywords"])
