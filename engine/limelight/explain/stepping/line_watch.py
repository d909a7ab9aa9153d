"""Which lines of the user's code run while a function is traced, what Python sees there, and what the graph records.

Python's own line tracing tells of each line (`sys.settrace`); a line's nodes are those that the innermost tracer has
gained since the line before. A tool that traces lines already, such as a debugger, gets its turn back afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Final

import numpy as np

from limelight.core import dispatch
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.explain.stepping.step_marks import EventMarks, Mark
from limelight.graph.ir import Node
from limelight.staging.symbolic import SymbolicObject, SymbolicTensor
from limelight.staging.tracer import Tracer
from limelight.user_code import source_line
from limelight.user_code.source_line import Source

_INNER: Final = frozenset(["<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<lambda>"])
"""Code that is part of a line: what it does, the line does. Called from none, as a staged lambda is, it has its own."""
_LONGEST: Final = 60
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))


@dataclass(slots=True)
class Visit:
    """One run of a line: `names` are what it bound, as Python sees them, `nodes` what it recorded, in their graph.

    `marks` are the copies and traces that it made; `call` tells the lines of one call of a function from others.
    """

    line: Source
    depth: int
    names: tuple[tuple[str, str], ...] = ()
    nodes: list[Node] = field(default_factory=list)
    marks: tuple[Mark, ...] = ()
    call: int = 0


class LineWatch:
    """Within its block, `visits` gains the lines of the user's code that this thread runs.

    Args:
        most: how many lines are noted; those that come after run unwatched, and `is_cut` says that there were some.
    """

    def __init__(self, most: int) -> None:
        self.visits: list[Visit] = []
        self.is_cut = False
        self._most = most
        self._event_marks = EventMarks()
        self._calls = 0
        self._running: list[tuple[FrameType, dict[str, tuple[int, str]], Visit | None, int]] = []
        self._counts: dict[int, tuple[Tracer, int]] = {}

    def __enter__(self) -> LineWatch:
        self._before = sys.gettrace()
        self._event_marks.__enter__()
        sys.settrace(self._called)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        sys.settrace(self._before)
        try:
            for _, _, visit, _ in self._running:
                self._gain(visit)
        finally:
            self._event_marks.__exit__(kind, error, tb)
            self._running.clear()  # frames, and all that their names hold

    def _called(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if self.is_cut or (self._running and code.co_name in _INNER) or source_line.is_library(code):
            return None
        if source_line.is_installed(code.co_filename) or code.co_filename.startswith("<string"):
            return None
        self._gain(self._top())
        self._calls += 1
        self._running.append((frame, _seen(frame), None, self._calls))
        return self._inside

    def _inside(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        while self._running and self._running[-1][0] is not frame:  # a generator that was left behind
            self._running.pop()
        if not self._running:
            return None
        if event in ("line", "return"):
            self._finish_line(frame)
            if event == "return":
                self._running.pop()
            elif len(self.visits) >= self._most:
                self.is_cut = True
                sys.settrace(self._before)
                return None
            else:
                self._begin_line(frame)
        return self._inside

    def _begin_line(self, frame: FrameType) -> None:
        code = frame.f_code
        _, names, _, call = self._running[-1]
        visit = Visit(Source(code.co_filename, frame.f_lineno, code.co_name), len(self._running) - 1, call=call)
        self.visits.append(visit)
        self._running[-1] = (frame, names, visit, call)

    def _finish_line(self, frame: FrameType) -> None:
        _, before, visit, call = self._running[-1]
        self._gain(visit)
        if visit is None:
            return
        after = _seen(frame)
        bound = [(name, text) for name, (ident, text) in after.items() if before.get(name) != (ident, text)]
        visit.names = tuple(bound)
        self._running[-1] = (frame, after, visit, call)

    def _top(self) -> Visit | None:
        return self._running[-1][2] if self._running else None

    def _gain(self, visit: Visit | None) -> None:
        """Gives `visit` the nodes that tracers have gained since the last time, and what was noted."""
        marks = self._event_marks.take()
        if visit is not None:
            visit.marks += marks
        for tracer in dispatch.local.stack:
            if not isinstance(tracer, Tracer):
                continue
            count = self._counts.get(id(tracer), (tracer, 0))[1]
            if len(tracer.nodes) > count:
                if visit is not None:
                    visit.nodes += tracer.nodes[count:]
                self._counts[id(tracer)] = tracer, len(tracer.nodes)


def _seen(frame: FrameType) -> dict[str, tuple[int, str]]:
    """What the local names of `frame` stand for: the identity, and words."""
    # Not `source_line.locals_of`: what a trace function leaves in a frame's dictionary goes back into its names.
    names: Mapping[str, Any] = frame.f_locals
    kept = {name: x for name, x in names.items() if name.isidentifier() and not name.startswith("__")}
    if frame.f_code.co_name == "<module>":  # a cell, whose names are among all those of the notebook
        kept = {name: kept[name] for name in frame.f_code.co_names if name in kept}
    return {name: (id(x), seen(x)) for name, x in kept.items()}


def seen(x: Any) -> str:
    """What Python sees of a value while tracing, in a few words: of a tensor of the trace, that it has no value yet."""
    if isinstance(x, SymbolicTensor):
        return f"{x.spec}, no value yet"
    if isinstance(x, SymbolicObject):
        return f"{x.spec}, in the graph"
    if isinstance(x, Resource):
        return f"variable {x.spec}"
    if isinstance(x, Tensor):
        return f"{x.spec}, a value of before"
    if isinstance(x, (np.ndarray, np.generic)):
        return f"array {x.dtype}{list(x.shape)}" if x.shape else shortened(repr(x.item()))
    if isinstance(x, _PLAIN):
        return shortened(repr(x))
    if type(x) in (list, tuple):
        inner = ", ".join([seen(one) for one in x[:3]]) + (", ..." if len(x) > 3 else "")
        return shortened(f"[{inner}]" if type(x) is list else f"({inner})")
    if type(x) is dict:
        return shortened("{" + ", ".join([f"{key!r}: {seen(one)}" for key, one in list(x.items())[:3]]) + "}")
    return type(x).__name__


def shortened(text: str) -> str:
    """At most 60 characters of `text`, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
