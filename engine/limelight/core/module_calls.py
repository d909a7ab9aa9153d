"""Which module's call a node of a trace belongs to: `encoder`, in it `blocks.2`, in it `attention`.

While a trace is written, the call of a module puts a `ModuleCall` on the trace's own stack, and each line of the user's
that writes a node bears it (`source_line.ScopedSource.call`). So it goes wherever a node's stack goes: through passes,
through replays, and to the gradient of the op. Outside of traces nothing is noted.

The update of an optimiser, and in it that of each variable, are calls of other kinds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final, Literal
from weakref import ref

from limelight.core import dispatch
from limelight.core.name_scopes import graph_writer
from limelight.settings import Scoped
from limelight.user_code import source_line
from limelight.user_code.bound_name import bound_name
from limelight.user_code.source_line import Position, ScopedSource, Source
from limelight.user_code.tracebacks import in_place_of_python

Kind = Literal["module", "optimiser", "variable"]
told_of_results: Final[Scoped[Callable[[Any, Any], None] | None]] = Scoped("told_of_results", None)
"""Told of each module that is called in a trace and what the call returned, for a summary."""


class ModuleCall:
    """One call of a module in a trace, or an optimiser's update; as data: it keeps no module alive.

    `name` is the attribute path from the module of the call around it ("blocks.2"), or what the caller's code calls it;
    `cls` the class, `ordinal` how often it was called there before, from 1; `at` is the caller's line and `defined` the
    first line of the method `call`, where that is the user's.
    """

    __slots__ = ("_lines", "_module", "_places", "at", "cls", "defined", "kind", "name", "ordinal", "outer")

    def __init__(self, outer: ModuleCall | None, kind: Kind, name: str, ordinal: int, module: Any) -> None:
        self.outer = outer
        self.kind = kind
        self.name = name
        self.ordinal = ordinal
        self.cls = type(module).__name__
        self.at = source_line.user_line() if kind != "variable" else None
        self.defined = _definition(module) if kind == "module" else None
        self._module = ref(module)
        self._lines: dict[tuple[Source, str], ScopedSource] = {}
        self._places: dict[tuple[int, int, str], tuple[Any, ScopedSource]] = {}  # with the code, which has the id

    @property
    def key(self) -> str:
        """The last part of `path`: the name, and the number of a call that is not the first."""
        return self.name if self.ordinal == 1 else f"{self.name}#{self.ordinal}"

    @property
    def path(self) -> str:
        """The names from the outermost call on: "model.blocks.2.attention"; the same in each trace of the same code."""
        return ".".join(call.key for call in self.chain())

    def chain(self) -> list[ModuleCall]:
        """The calls around this one, outermost first, and it."""
        calls = [self]
        while calls[-1].outer is not None:
            calls.append(calls[-1].outer)
        return calls[::-1]

    def line(self, line: Source, scope: str = "") -> ScopedSource:
        """`line`, run within this call and within a name scope; one object for each."""
        known = self._lines.get((line, scope))
        if known is None:
            known = self._lines[line, scope] = ScopedSource(*line)
            known.scope, known.call = scope, self
        return known

    def line_at(self, code: Any, instruction: int, scope: str) -> ScopedSource:
        """The same for an instruction of a code object, which becomes a line when it is first seen."""
        known = self._places.get((id(code), instruction, scope))
        if known is None:
            line = self.line(Position(code, instruction).resolve(), scope)
            known = self._places[id(code), instruction, scope] = code, line
        return known[1]

    def module(self) -> Any:
        """The module, None once it is gone."""
        return self._module()

    def __repr__(self) -> str:
        return f"<call of {self.path}: {self.cls}>"


class _Called:
    """A module that has been called at one place: its name there, and how often."""

    __slots__ = ("count", "module", "name")

    def __init__(self, module: ref[Any], name: str) -> None:
        self.module = module
        self.name = name
        self.count = 0


class ModuleCalls:
    """The module calls of one trace, and what its modules call their variables."""

    def __init__(self) -> None:
        self.now: ModuleCall | None = None
        self._called: dict[tuple[ModuleCall | None, int], _Called] = {}
        self._taken: dict[tuple[ModuleCall | None, str], int] = {}
        self._outermost: dict[str, ref[Any]] = {}
        self._below: dict[ModuleCall | None, dict[int, str]] = {}
        self._paths: dict[int, str] = {}
        self._looked = False  # for paths, since the last call

    def entered(self, module: Any, kind: Kind, name: str, frame: FrameType | None) -> ModuleCall:
        """The call of `module` that begins now, within the one at hand."""
        outer = self.now
        key = (outer, id(module))
        known = self._called.get(key)
        if known is None or known.module() is not module:  # ids are handed out again
            distinct = self._distinct(outer, name or self._name(module, outer, frame))
            known = self._called[key] = _Called(ref(module), distinct)
            if outer is None and kind == "module":
                self._outermost[distinct] = ref(module)
        known.count += 1
        self._looked = False
        return ModuleCall(outer, kind, known.name, known.count, module)

    def path_of(self, variable: Any) -> str:
        """The attribute path of a variable, from the outermost module that was called; "" where none has it.

        The module's own name stands before it where several were called that have variables.
        """
        if variable._uid not in self._paths and not self._looked:
            self._looked = True
            modules = [(name, module()) for name, module in self._outermost.items()]
            holders = [(name, list(module.named_variables())) for name, module in modules if module is not None]
            holders = [(name, named) for name, named in holders if named]
            for name, named in holders:
                before = f"{name}." if len(holders) > 1 else ""
                for path, one in named:
                    self._paths.setdefault(one._uid, before + path.replace("/", "."))
        return self._paths.get(variable._uid, "")

    def name_paths(self, paths: Mapping[int, str]) -> None:
        """Says what variables are called that no module holds, by uid."""
        self._paths |= paths

    def _name(self, module: Any, outer: ModuleCall | None, frame: FrameType | None) -> str:
        around = outer
        while around is not None:
            below = self._below.get(around)
            if below is None:
                below = self._below[around] = _children_of(around.module())
            name = below.get(id(module))
            if name is None:
                below |= _descendants_of(around.module())
                name = below.setdefault(id(module), "")
            if name:
                return name
            around = around.outer
        return bound_name(module, frame) or type(module).__name__

    def _distinct(self, outer: ModuleCall | None, name: str) -> str:
        """`name`, with a number where another module that was called at the same place has it."""
        count = self._taken[outer, name] = self._taken.get((outer, name), 0) + 1
        return name if count == 1 else f"{name}_{count}"


@in_place_of_python
def within(
    module: Any, function: Callable[..., Any], args: Any = (), kwargs: Any = None, kind: Kind = "module", name: str = ""
) -> Any:
    """`function(*args, **kwargs)`; what a trace of this thread writes meanwhile belongs to a call of `module`.

    Args:
        module: what is called, an optimiser, or a variable that is updated.
        function: does it.
        args: what it is given.
        kwargs: the same, by name.
        kind: what `module` is.
        name: its name; by default found from the module around it, or from the names of the code that calls it.
    """
    trace = graph_writer() if dispatch.active else None
    if trace is None or trace.calls is None:
        return function(*args, **(kwargs or {}))
    calls: ModuleCalls = trace.calls
    outer = calls.now
    if kind == "module" and outer is not None and outer.module() is module:
        return function(*args, **(kwargs or {}))  # `super().__call__(x)`
    entered = calls.entered(module, kind, name, sys._getframe(1))
    try:
        calls.now = entered
        result = function(*args, **(kwargs or {}))
        if kind == "module" and (tell := told_of_results.get()) is not None:
            tell(module, result)
        return result
    finally:
        calls.now = outer


def calls_around() -> ModuleCalls | None:
    """The calls of this thread's trace, for a trace within it; None where there is none."""
    trace = graph_writer()
    return None if trace is None else trace.calls


def _definition(module: Any) -> Source | None:
    own = getattr(type(module).__call__, "__wrapped__", None)
    code = getattr(own or getattr(type(module), "call", None), "__code__", None)
    if code is None or source_line.is_library(code):
        return None
    return Source(code.co_filename, code.co_firstlineno, code.co_name)


def _children_of(module: Any) -> dict[int, str]:
    return {} if module is None else {id(child): path.replace("/", ".") for path, child in module.edges()}


def _descendants_of(module: Any) -> dict[int, str]:
    """All modules below one, by identity: the shortest paths."""
    paths: dict[int, str] = {}
    level = [("", module)] if module is not None else []
    while level:
        deeper = []
        for before, one in level:
            for path, child in one.edges():
                if hasattr(child, "edges") and id(child) not in paths and child is not module:
                    paths[id(child)] = before + path.replace("/", ".")
                    deeper.append((f"{paths[id(child)]}.", child))
        level = deeper
    return paths
