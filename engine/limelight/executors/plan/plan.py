"""Graphs as one straight-line Python function: ready at once, and nothing interpreted while it runs."""

from __future__ import annotations

import functools
import itertools
import linecache
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, cast

from limelight.core.devices import Device
from limelight.executors.error_lines import explain
from limelight.executors.placement import place
from limelight.executors.plan.blocked_groups import in_blocks
from limelight.executors.plan.codegen import Part, emit
from limelight.executors.plan.kernel_calls import Formulas
from limelight.executors.plan.peak_memory import Peak, peak
from limelight.executors.plan.specialised_kernels import cheaper
from limelight.graph.build import collector_paused
from limelight.graph.ir import Graph, Node
from limelight.user_code.source_line import GENERATED_PREFIX, Source, locals_of

_numbers: Final = itertools.count(1)
_MODULE: Final = "limelight.plan"  # not imported from anywhere: the name under which NumPy's warnings are filtered


class Plan(Protocol):
    """A runnable graph: `plan(*payloads) -> tuple of payloads`.

    Payloads are arrays, storages of variables and opaque values, never tensors. `output_devices` says where the
    results are; `source` is the code that runs; `memory()` estimates what it needs at most.
    """

    output_devices: tuple[Device, ...]
    source: str
    memory: Callable[[], Peak]

    def __call__(self, *payloads: Any) -> tuple[Any, ...]: ...


def build(graph: Graph, devices: Sequence[Device] = (), *, deliver: Device | None = None) -> Plan:
    """Compiles `graph` to a function from payloads to payloads.

    `devices` are those of the inputs (default: all on CPU:0); with `deliver` all outputs are brought to that device.
    Each call is independent: plans may run on several threads, and call themselves.

    The plan raises RunError when a kernel fails: its message names the graph, the op, the operands and the user's
    line, that of each call included. Errors of limelight keep their class; KeyboardInterrupt passes unchanged.
    """
    with collector_paused():
        placed = place(graph, devices, deliver, build)
        return _compile(in_blocks(placed.graph, Formulas(cheaper)), placed.outputs)


def code(graph: Graph) -> list[tuple[Node, str]]:
    """The lines of the plan for `graph` on the CPU, in order, each with the node that it runs."""
    placed = place(graph, (), None, build)
    return [line for part in emit(in_blocks(placed.graph, Formulas(cheaper))) for line in part.code()]


def _compile(graph: Graph, output_devices: tuple[Device, ...]) -> Plan:
    parts = emit(graph)
    blame = _Blame(graph)
    namespace: dict[str, Any] = {"blame": blame, "__name__": _MODULE}
    for part in reversed(parts):  # the first one calls the others
        namespace[part.name] = blame.compile(part, namespace if part is parts[0] else {"__name__": _MODULE})
    run = cast(Any, namespace.pop("run"))  # or it would hold itself
    run.output_devices = output_devices
    run.memory = functools.partial(peak, graph)
    run.source = "\n\n".join(["\n".join(part.lines) for part in parts]) + "\n"
    for file in blame.parts:
        weakref.finalize(run, linecache.cache.pop, file, None).atexit = False
    return cast(Plan, run)


def running(tb: TracebackType | None) -> Source | None:
    """The user's line of the innermost op that plans were at when this was raised; None where none was running."""
    line = None
    while tb is not None:
        blame = tb.tb_frame.f_globals.get("blame")
        found = blame.locate(tb) if isinstance(blame, _Blame) else None
        if found is not None and found[1][0].stack:
            line = found[1][0].stack[0]
        tb = tb.tb_next
    return line


class _Blame:
    """Called by a plan with what a kernel raised: raises the explained error, or returns to let it pass as it is."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.parts: dict[str, Part] = {}

    def compile(self, part: Part, namespace: dict[str, Any]) -> Any:
        """The function that `part` describes, known by a file name that tracebacks can show."""
        file = f"{GENERATED_PREFIX}plan {self._graph.name} {next(_numbers)}>"
        text = "\n".join(part.lines) + "\n"
        namespace.update(part.namespace)
        exec(compile(text, file, "exec", dont_inherit=True), namespace)  # the text is ours: names that the emitter made
        linecache.cache[file] = (len(text), None, [line + "\n" for line in part.lines], file)
        self.parts[file] = part
        return namespace.pop(part.name)

    def __call__(self, error: Exception) -> None:
        found = self.locate(error.__traceback__)
        if found is None:
            return
        frame, entry = found
        node, words = entry
        scope = {**frame.f_globals, **locals_of(frame)}
        better = explain(self._graph, node, [scope[word] for word in words], error)
        if better is not error:
            raise better from error

    def locate(self, tb: TracebackType | None) -> Any:
        """The frame and the node that were running: in this function, or in the part that it called."""
        found = None
        while tb is not None and tb.tb_frame.f_code.co_filename in self.parts:
            part = self.parts[tb.tb_frame.f_code.co_filename]
            found = part.node_at(tb.tb_lineno)
            if found is not None:
                return tb.tb_frame, found
            tb = tb.tb_next
        return None
