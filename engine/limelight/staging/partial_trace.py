"""Traces that are not whole: what one has written so far that still runs, and what one had written that failed.

A staged function's tracer says here when it begins and when it ends; traces of branches and bodies do not. What a
failed one leaves is kept for a few functions only, until the function is traced again, and without large literals, so
that it keeps next to nothing alive.

>>> import limelight as ll
>>> @ll.function
... def project(x):
...     y = ll.tanh(x)
...     return y @ ll.ones((3, 3))
>>> try:
...     project(ll.ones((2, 2)))
... except ll.errors.ShapeError:
...     partial = of(project.id)
>>> [node.op.name for node in partial.graph.nodes], partial.op, partial.source.text
(['tanh', 'full'], 'matmul', 'return y @ ll.ones((3, 3))')
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any, Final, NamedTuple, Protocol

from limelight import events, forking
from limelight.core import module_calls
from limelight.graph.ir import Graph, Node, Value
from limelight.user_code import source_line
from limelight.user_code.source_line import Source

MOST_KEPT: Final = 4
"""Functions whose failed trace is kept: the last ones."""
MOST_BYTES: Final = 1 << 16
"""Of a literal that is kept with a failed trace."""
serials: Final = itertools.count(1)
"""Tells which of two traces is newer, whole or not: the clock may be set back."""
_TEXT: Final = 2000
_LINES: Final = 8


class PartialTrace(NamedTuple):
    """What a trace has written: `graph` has no outputs. `error` is "" while the trace runs.

    `stack` is the user's code at which it failed, innermost first. `op` is what could not be written, for `operands`,
    of which some may be of a branch or a body within; "" where it was not an op that failed. Of two that have failed,
    the later one has the greater `serial` (see `serials`). `calls` is how many of the function's had gone well before:
    a call that finds a trace afterwards says nothing here, but counts in `History.calls` of its trace cache.
    """

    graph: Graph
    error: str = ""
    stack: tuple[Source, ...] = ()
    op: str = ""
    operands: tuple[Value, ...] = ()
    serial: int = 0
    calls: int = 0

    @property
    def source(self) -> Source | None:
        """The user's line at which it failed."""
        return self.stack[0] if self.stack else None


class Writer(Protocol):
    """What is needed of a tracer."""

    name: str
    owner: int
    calls_before: int
    nodes: list[Node]
    inputs: list[Value]
    input_names: list[str]
    captured: dict[int, tuple[Any, Value]]

    def capture_names(self) -> list[str]: ...
    def process(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...], /) -> Any: ...


_lock = threading.Lock()
_running: dict[int, list[tuple[Writer, float]]] = {}
_failed: dict[int, PartialTrace] = {}


class _Dropped:
    """Stands for a large literal; shown by its `name`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def begun(writer: Writer) -> None:
    """The trace of a staged function begins."""
    _running.setdefault(writer.owner, []).append((writer, time.perf_counter()))
    _failed.pop(writer.owner, None)
    if events.wanted(events.TraceBegun):
        events.emit(events.TraceBegun(writer.name, writer.owner))


def ended(writer: Writer, error: BaseException | None) -> None:
    """It has ended; keeps what it has written if it failed. May be called again."""
    known = _running.get(writer.owner, [])
    started = next((start for one, start in known if one is writer), None)
    if started is None:
        return
    left = [one for one in known if one[0] is not writer]
    if left:
        _running[writer.owner] = left
    else:
        _running.pop(writer.owner, None)
    if isinstance(error, (Exception, KeyboardInterrupt)):
        partial = _failure(writer, error)._replace(serial=next(serials), calls=writer.calls_before)
        with _lock:
            _failed[writer.owner] = partial
            while len(_failed) > MOST_KEPT:
                _failed.pop(next(iter(_failed)))
        if events.wanted(events.TraceFailed):
            seconds = time.perf_counter() - started
            count = len(partial.graph.nodes)
            failed = events.TraceFailed(writer.name, writer.owner, partial.error, count, seconds, partial.source)
            events.emit(failed)


def of(function_id: int) -> PartialTrace | None:
    """What the trace of a function has written: one that runs, else the last one if it failed; None where all is well.

    May be called on any thread.
    """
    known = _running.get(function_id)
    if known:
        return PartialTrace(written_by(known[-1][0]))
    return _failed.get(function_id)


def reword(function_id: int, error: BaseException) -> None:
    """The trace that failed says its error as it reads now: a cell has other words for what a function is told."""
    with _lock:
        known = _failed.get(function_id)
        if known is not None:
            _failed[function_id] = known._replace(error=_said(error))


def failed(function_id: int) -> int:
    """The serial of the trace of a function that failed; 0 where all is well, or one runs."""
    known = _failed.get(function_id)
    return 0 if known is None else known.serial


def running() -> list[int]:
    """The ids of the functions that are being traced, those around others first."""
    return list(_running)


def size(function_id: int) -> int | None:
    """How many nodes a trace that runs has written so far; None where there is none."""
    known = _running.get(function_id)
    return len(known[-1][0].nodes) if known else None


def forget(function_id: int) -> None:
    """Lets go of what is known of a failed trace."""
    _failed.pop(function_id, None)


def written_by(writer: Writer, nodes: Sequence[Node] = ()) -> Graph:
    """The graph of what a tracer has written so far, without outputs; of these `nodes` in the place of its own."""
    nodes = nodes or list(writer.nodes)  # before the captures, which another thread may add to
    names = writer.capture_names()
    captures = [value for _, value in list(writer.captured.values())][: len(names)]
    names = [*writer.input_names, *names[: len(captures)]]
    return Graph(writer.name, [*writer.inputs, *captures], nodes, (), input_names=names, n_captures=len(captures))


def _failure(writer: Writer, error: BaseException) -> PartialTrace:
    stack: list[Source] = []
    call, op = None, ""
    operands: tuple[Value, ...] = ()
    for frame, line in _frames(error.__traceback__):
        code = frame.f_code
        if code is module_calls.within.__code__:
            call = frame.f_locals.get("entered", call)
        elif code is type(writer).process.__code__:
            op, operands = frame.f_locals["op"].name, tuple(frame.f_locals.get("values", ()))
        elif not source_line.is_library(code):
            stack.append(Source(code.co_filename, line, code.co_name))
            op, operands = "", ()
    stack = stack[::-1][:_LINES]
    if stack and call is not None:
        stack[0] = call.line(stack[0])
    nodes, now = _without_large_literals(writer.nodes)
    operands = tuple([now.get(value, value) for value in operands])
    return PartialTrace(written_by(writer, nodes), _said(error), tuple(stack), op, operands)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_TEXT]


def _frames(tb: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while tb is not None:
        yield tb.tb_frame, tb.tb_lineno
        tb = tb.tb_next


def _without_large_literals(nodes: Sequence[Node]) -> tuple[list[Node], dict[Value, Value]]:
    """The nodes, and what stands for values of those that had to be written anew."""
    now: dict[Value, Value] = {}
    kept = []
    for node in nodes:
        params = tuple([_small(param) for param in node.params])
        inputs = tuple([now.get(value, value) for value in node.inputs])
        if params != node.params or inputs != node.inputs:
            specs = [value.spec for value in node.outputs]
            new = Node(node.op, inputs, params, specs, device=node.device, stack=node.stack, scope=node.scope)
            now.update(zip(node.outputs, new.outputs, strict=True))
            kept.append(new)
        else:
            kept.append(node)
    return kept, now


def _small(param: Any) -> Any:
    array: Any = getattr(param, "array", None)
    if getattr(array, "nbytes", 0) <= MOST_BYTES:
        return param
    return _Dropped(f"{array.dtype}{list(array.shape)}")


def _in_child() -> None:
    _running.clear()


forking.in_child(_in_child)
forking.renew_in_child(__name__, "_lock", threading.Lock)
