"""The executor `xla`: a graph becomes one program of XLA by `jax.jit`, compiled for each set of shapes that it meets.

Variables are inputs and results of the program, draws are made before it runs (`hoisted_draws`), and called functions
and control flow are part of it. What has no form in a program keeps the graph on the plan; `refusal` says why, at the
user's lines. A program cannot raise: where a kernel has met a value that it refuses, the run is made again by the plan,
which says what is wrong in its own words. Nothing has been assigned by then.

Numbers are the plan's up to rounding, but for a few that XLA computes otherwise: numbers below the least normal one are
0, a whole number divided by 0 is -1, and NaN and infinity become other whole numbers.

It is there where JAX is installed, which is imported when the first graph is compiled.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

from limelight import forking
from limelight.core.devices import CPU0, Device
from limelight.core.spec import ObjectSpec, Spec, TensorSpec
from limelight.errors import CacheFolderWarning, failed
from limelight.executors import base
from limelight.executors.base import Peak, Runnable
from limelight.executors.placement import place
from limelight.executors.plan import plan
from limelight.executors.plan.peak_memory import peak
from limelight.executors.xla.graph_lowering import NoFormError, place_of, why_no_form
from limelight.executors.xla.program import Program, RefusedValueError
from limelight.executors.xla.structured_control import CONTROL
from limelight.graph.ir import Graph, Node
from limelight.graph.printer import nested

NAME: Final = base.COMPILED
MOST_PROGRAMS: Final = 64
"""For how many sets of shapes one graph is compiled; the oldest program gives way."""
_MOST_TOLD: Final = 5
_compiling = threading.RLock()
forking.renew_in_child(__name__, "_compiling", threading.RLock)


class CompiledGraph:
    """A graph that runs as a program of XLA, or as a plan where it cannot: see `base.Runnable`.

    Args:
        graph: the graph.
        output_devices: where its outputs are.
        otherwise: builds the plan that stands in.
    """

    def __init__(self, graph: Graph, output_devices: tuple[Device, ...], otherwise: Callable[[], Runnable]) -> None:
        self.output_devices = output_devices
        self._graph = graph
        self._otherwise = otherwise
        self._open = [i for i, value in enumerate(graph.inputs) if _has_unknown_sizes(value.spec)]
        self._programs: dict[Any, Program | None] = {}  # by sizes that the graph does not know; None: the plan runs
        self._only: Callable[..., Any] | None = None  # where it knows all
        self.program: Callable[..., Any] | None = None
        """What `_only` is, where that calls the compiled program, assigns, and does nothing else."""
        self.refusal = ""
        """Why it runs as a plan, or did for the latest shapes that have no program; empty while it does not."""

    @cached_property
    def _plan(self) -> Runnable:
        return self._otherwise()

    def __call__(self, *payloads: Any) -> Any:
        run = self._only or self._run_for(payloads)
        try:
            return run(*payloads)
        except RefusedValueError:
            pass
        except RuntimeError as error:  # of XLA while it runs: no memory, for one
            if run is self.__dict__.get("_plan"):
                raise
            raise failed(f"{self._graph.name}, as a program of XLA,", error, "") from error
        return self._plan(*payloads)

    def _run_for(self, payloads: Sequence[Any]) -> Callable[..., Any]:
        """What runs it for inputs of these shapes, compiled now if need be."""
        shapes = tuple([tuple(getattr(payloads[i], "array", payloads[i]).shape) for i in self._open])
        if shapes not in self._programs:
            with _compiling:
                if shapes not in self._programs:
                    program = self._compiled(payloads)
                    while len(self._programs) >= MOST_PROGRAMS:
                        del self._programs[next(iter(self._programs))]
                    self._programs[shapes] = program
            program = self._programs.get(shapes)
            return self._plan if program is None else program.runner()
        program = self._programs.get(shapes)
        run = self._plan if program is None else program.runner()
        if not self._open:
            self._only = run  # from the second call on: JAX makes a quicker way at the first
            self.program = run if program is not None and program.is_direct else None
        return run

    def _compiled(self, payloads: Sequence[Any]) -> Program | None:
        """The program for these shapes; None where there is none, and `refusal` says why."""
        try:
            program = Program(self._graph, payloads, [device.backend == "numpy" for device in self.output_devices])
        except CacheFolderWarning:  # a filter has made an error of it: it says nothing of the program
            raise
        except NoFormError as error:
            self.refusal = str(error)
        except Exception as error:  # noqa: BLE001  # of JAX and XLA, for what a platform has not
            words = (str(error) or type(error).__name__).splitlines()[0]
            self.refusal = f"XLA does not compile it: {words[:300]}"
        else:
            self.refusal = ""
            return program
        return None

    @property
    def tier(self) -> str:
        """The name of the executor that does run it."""
        return base.DEFAULT if self.refusal else NAME

    @property
    def source(self) -> str | None:
        """The programs that have been compiled, in XLA's own language; the plan's where it runs."""
        texts = [run.text() for run in self._programs.values() if run is not None]
        return "\n\n".join(texts) or self._plan.source

    def memory(self) -> Peak:
        """As XLA says of the programs; an estimate from the graph before the first one."""
        sizes = [run.temporary_bytes for run in self._programs.values() if run is not None]
        return Peak(max(sizes), None, True) if sizes else peak(self._graph)


def build(graph: Graph, devices: Sequence[Device] = (), *, deliver: Device | None = None) -> Runnable:
    """Makes `graph` runnable: see `Executor.build`. It is compiled by its first run with each set of shapes."""

    def otherwise() -> Runnable:
        return plan.build(graph, devices, deliver=deliver)

    reasons = refusals(graph, devices)
    if not reasons:
        placed = place(graph, devices, deliver, build)
        on = _devices(graph, devices)
        if len(on) == 1 and deliver in (None, *on):
            return CompiledGraph(graph, placed.outputs, otherwise)
        reasons = [f"it computes on several devices: {', '.join(sorted([device.short for device in on]))}"]
    run: Any = otherwise()
    run.tier, run.refusal = base.DEFAULT, "; ".join(reasons[:_MOST_TOLD])
    return run  # type: ignore[no-any-return]  # the plan's function


def refusals(graph: Graph, devices: Sequence[Device] = ()) -> list[str]:
    """Why a graph has no program, as far as its ops and types say: a reason for each line; empty if it has one."""
    reasons: dict[str, None] = {}
    for device in devices:
        if device.backend not in ("numpy", "jax"):
            reasons[f"it computes on {device.short}"] = None
    for value in (*graph.inputs, *graph.outputs):
        if not _has_form(value.spec):
            reasons[f"it takes or returns {value.spec}"] = None
    for one in (graph, *[function.graph for function in nested(graph)]):
        for node in one.nodes:
            why = why_no_form(node.op) or _why_not(node)
            if why:
                reasons[f"{place_of(node)} {why}"] = None
    return list(reasons)


def _why_not(node: Node) -> str:
    if node.op.higher_order and node.op.name not in _LOWERED:
        return "calls a function in a way that has no form in a program of XLA"
    if node.op.placement is not None:
        return "copies to a device"
    if any(isinstance(value.spec, TensorSpec) and not _has_form(value.spec) for value in node.outputs):
        return f"makes {', '.join([str(value.spec) for value in node.outputs])}, which XLA does not know"
    return ""


_LOWERED: Final = {*CONTROL, "call", "call_forward", "custom_call", "custom_forward"}


def _has_form(spec: Spec) -> bool:
    return not isinstance(spec, ObjectSpec) and spec.dtype.kind in "biufcV" and spec.dtype.names is None


def _has_unknown_sizes(spec: Spec) -> bool:
    return not isinstance(spec, ObjectSpec) and None in spec.shape


def _devices(graph: Graph, inputs: Sequence[Device]) -> set[Device]:
    """The devices of the inputs, and those that nodes ask for, of called functions, too; a generator has none."""
    on = {d for d, value in zip(inputs, graph.inputs, strict=False) if not getattr(value.spec, "anywhere", False)}
    graphs = [graph, *[function.graph for function in nested(graph)]]
    return (on | {node.device for one in graphs for node in one.nodes if node.device is not None}) or {CPU0}


def code(graph: Graph) -> list[tuple[Node, str]]:
    """Each node as part of the program; the plan's lines, where it has none."""
    reasons = refusals(graph)
    if reasons:
        return [(node, f"{line}  # plan: {reasons[0]}") for node, line in plan.code(graph)]
    return [(node, f"xla: {node.op.name}") for node in graph.nodes]


def is_installed() -> bool:
    """Whether JAX is there."""
    return importlib.util.find_spec("jax") is not None


if is_installed():
    base.register(base.FunctionExecutor(NAME, build, code))
