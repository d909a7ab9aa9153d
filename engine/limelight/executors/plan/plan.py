"""The executor `plan`: a graph becomes one straight-line Python function, ready at once, nothing of it interpreted.

A graph with unknown sizes has one plan for all sizes: nothing is specialised to a value that is unknown when it is
traced. The plan frees what is dead and leaves the rest to NumPy: giving products a buffer (`out=`), or keeping dead
buffers for later, gained nothing at any size, since NumPy's own allocations are as fast.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import linecache
import weakref
from collections.abc import Sequence
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, Final, NamedTuple, cast

from limelight.core.collector import collector_paused
from limelight.core.devices import Device
from limelight.executors import base
from limelight.executors.base import Runnable
from limelight.executors.error_lines import explain, is_explained
from limelight.executors.placement import place
from limelight.executors.plan.blocked_groups import in_blocks
from limelight.executors.plan.codegen import Part, emit
from limelight.executors.plan.kernel_calls import KernelCalls
from limelight.executors.plan.peak_memory import peak
from limelight.executors.plan.specialised_kernels import specialised
from limelight.graph.ir import Graph, Node
from limelight.user_code.source_line import GENERATED_PREFIX, locals_of

_numbers: Final = itertools.count(1)
_SHORT: Final = 2000
"""Characters of a plan that may be met again: its code is kept."""
_MODULE: Final = "limelight.plan"  # not imported from anywhere: the name under which NumPy's warnings are filtered


def build(
    graph: Graph, devices: Sequence[Device] = (), *, deliver: Device | None = None, assigned: Sequence[str] = ()
) -> Runnable:
    """Compiles `graph` to a function from payloads to payloads: see `Executor.build`.

    The message of a RunError names the graph, the op, the operands and the user's line, and that of each call. Nothing
    is spent on this in a run that succeeds: the line of the generated code at which it failed leads to the node. Where
    the graph is a part of another one, `assigned` names the variables that have been assigned before it.
    """
    with collector_paused():  # nothing that is made here is garbage
        placed = place(graph, devices, deliver, build)
        return assembled(placed.graph, placed.outputs, assigned=assigned)


def code(graph: Graph) -> list[tuple[Node, str]]:
    """The lines of the plan for `graph` on the CPU, in order, each with the node that it runs."""
    placed = place(graph, (), None, build)
    return [line for part in emit(in_blocks(placed.graph, KernelCalls(specialised))) for line in part.code()]


def node_at(tb: TracebackType) -> Node | None:
    """The node at which a plan was, if this is the frame of one."""
    blame = tb.tb_frame.f_globals.get("blame")
    site = blame.locate(tb) if isinstance(blame, _Blame) else None
    return None if site is None else site.node


base.register(base.FunctionExecutor(base.DEFAULT, build, code, node_at))


def assembled(
    placed: Graph,
    output_devices: tuple[Device, ...],
    measured: Graph | None = None,
    assigned: Sequence[str] = (),
) -> Runnable:
    """The function for a graph whose nodes have been placed.

    Args:
        placed: the graph.
        output_devices: where its outputs are.
        measured: the graph whose memory is estimated, where nodes of this one stand for many of that.
        assigned: the variables that have been assigned before it runs, for errors.
    """
    graph = in_blocks(placed, KernelCalls(specialised))
    parts = emit(graph)
    blame = _Blame(graph, assigned)
    namespace: dict[str, Any] = {"blame": blame, "__name__": _MODULE}
    for part in reversed(parts):  # the first one calls the others
        namespace[part.name] = blame.compile(part, namespace if part is parts[0] else {"__name__": _MODULE})
    run = cast(Any, namespace.pop("run"))  # or it would hold itself
    run.output_devices = output_devices
    run.memory = functools.cache(functools.partial(peak, graph if measured is None else measured))
    run.source = "\n\n".join(["\n".join(part.lines) for part in parts]) + "\n"
    for file in blame.parts:
        weakref.finalize(run, linecache.cache.pop, file, None).atexit = False
    return cast(Runnable, run)


class _Site(NamedTuple):
    """Where a plan was: the frame of its function, the node, and the variables that hold the node's operands."""

    frame: FrameType
    node: Node
    operands: list[str]


class _Blame:
    """Called by a plan with what a kernel raised: raises the explained error, or returns to let it pass as it is."""

    def __init__(self, graph: Graph, assigned: Sequence[str]) -> None:
        self._graph = graph
        self._assigned = assigned
        self.parts: dict[str, Part] = {}

    def compile(self, part: Part, namespace: dict[str, Any]) -> Any:
        """The function that `part` describes, known by a file name that tracebacks can show."""
        file = f"{GENERATED_PREFIX}plan {self._graph.name} {next(_numbers)}>"
        text = "\n".join(part.lines) + "\n"
        namespace.update(part.namespace, __builtins__=vars(builtins))  # as `exec` adds: warnings of C code look for it
        code = _compiled_once(text) if len(text) < _SHORT else _compiled(text)
        linecache.cache[file] = (len(text), None, [line + "\n" for line in part.lines], file)
        self.parts[file] = part
        return FunctionType(code.replace(co_filename=file), namespace)

    def __call__(self, error: Exception) -> None:
        site = self.locate(error.__traceback__)
        if site is None or (is_explained(error) and not site.node.op.higher_order):  # one that stands for many nodes
            return
        scope = {**site.frame.f_globals, **locals_of(site.frame)}
        operands = [scope[operand] for operand in site.operands]
        better = explain(self._graph, site.node, operands, error, self._assigned)
        if better is not error:
            raise better from error

    def locate(self, tb: TracebackType | None) -> _Site | None:
        """What was running: a line of this function, or one of the part that it called."""
        while tb is not None and tb.tb_frame.f_code.co_filename in self.parts:
            at = self.parts[tb.tb_frame.f_code.co_filename].node_at(tb.tb_lineno)
            if at is not None:
                return _Site(tb.tb_frame, *at)
            tb = tb.tb_next
        return None


def _compiled(text: str) -> CodeType:
    """The code of the one function that `text` defines: the text is ours, of names that the emitter made."""
    (code,) = [x for x in compile(text, _MODULE, "exec", dont_inherit=True).co_consts if isinstance(x, CodeType)]
    return code


# Short plans are alike but for what their names mean, and CPython's compiler takes five times as long as finding one.
_compiled_once: Final = functools.lru_cache(maxsize=256)(_compiled)
