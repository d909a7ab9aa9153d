"""A graph that runs on the tier that is ready at once, and compiled as soon as that is worth it and measured faster.

    counting    each run is timed; functions whose runs are shorter than a call of a compiled program alone stay
    compiling   the time spent exceeds what compiling costs (`compile_cost`): it is compiled in the background
    comparing   the compiled program is rehearsed once beside a run, then both take turns with real calls
    settled     the quicker one runs from then on

No effect happens twice: a rehearsal draws and assigns nothing. Random numbers come from the host in either tier, so
the stream does not depend on when the tiers change; other results differ by rounding. What goes wrong on the way keeps
the function where it is, and `progress` says why. `ll.config.deterministic` keeps it there, too.

XLA's threads are not in a forked process, where a program would wait for them for ever: functions are back on the first
tier there, and stay on it if JAX had been imported.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from limelight import forking
from limelight.core.spec import ObjectSpec
from limelight.executors import base
from limelight.executors.base import Peak, Runnable
from limelight.executors.tiered import background_compilation, compile_thread
from limelight.executors.tiered.comparison import Comparison, disagreement
from limelight.executors.tiered.compile_cost import seconds_due
from limelight.executors.xla import xla
from limelight.executors.xla.compiler_process import CompilerProcess, StoppedError
from limelight.executors.xla.program import RefusedValueError
from limelight.graph.ir import Graph

FIRST_LOOK: Final = 64
"""Runs after which it is asked whether they are long enough to gain by a program."""
SHORTEST: Final = 40e-6
"""Seconds of such a run: a call of a program with its arrays takes 10 to 30 microseconds, whatever it computes."""
COMPILING: Final = "compiling…"
COMPARING: Final = "compiled, measuring…"
_KEPT: Final = "kept on "
_FORKED: Final = "its process was forked from one in which JAX ran, whose threads are not in it"
_alive: Final[weakref.WeakSet[TieredRun]] = weakref.WeakSet()
_jax_was_forked: Final = [False]
"""Whether this process was forked from one that had imported JAX."""


class Compiled(Protocol):
    """A compiled graph: see `xla.program.Program`."""

    def runner(self) -> Callable[..., Sequence[Any]]: ...
    def rehearse(self, payloads: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]: ...
    def values_of_variables(self, payloads: Sequence[Any]) -> list[Any]: ...
    def text(self) -> str: ...


class Means(NamedTuple):
    """What a tiered run needs from outside; tests have their own."""

    clock: Callable[[], float] = time.perf_counter
    submit: Callable[[Callable[[CompilerProcess], None]], None] = compile_thread.submit
    compile: Callable[[Graph, CompilerProcess], Compiled] = background_compilation.compiled
    due: Callable[[Graph], float] = seconds_due


class TieredRun:
    """A runnable graph, see `base.Runnable`, whose inputs are on CPU:0.

    Args:
        graph: the graph.
        quick: what runs it at first.
        tier: the name of the executor of that.
        settled: is called with `quick` when that is to run it from now on, so that nothing stands between any more.
        means: clock, thread and compiler.
    """

    refusal = ""

    def __init__(
        self, graph: Graph, quick: Runnable, tier: str, settled: Callable[[Runnable], None], means: Means
    ) -> None:
        self._graph = graph
        self._quick = quick
        self.output_devices = quick.output_devices
        self._first_tier = self.tier = tier
        self._settled = settled
        self._means = means
        self._spent = 0.0
        self._due = means.due(graph)
        self._runs = 0
        self._turn = threading.Lock()  # comparisons are made by one thread at a time; others run on as they do
        self._compiled: Any = None
        self._program: Callable[..., Any] | None = None
        self.progress = ""
        """How far it is on the way to the other tier, or why it stays: "compiling…", "kept on plan: …"."""
        self._step: Callable[..., Any] = TieredRun._count  # not bound: it would hold itself
        _alive.add(self)

    def __call__(self, *payloads: Any) -> tuple[Any, ...]:
        return self._step(self, *payloads)  # type: ignore[no-any-return]  # one of the methods below

    # Counting

    def _count(self, *payloads: Any) -> Any:
        begin = self._means.clock()
        results = self._quick(*payloads)
        self._spent += self._means.clock() - begin
        self._runs += 1
        if self._runs == FIRST_LOOK and self._spent < FIRST_LOOK * SHORTEST:
            self._keep("its runs are too short to gain")
        elif self._spent >= self._due:
            self._ask()
        return results

    def _ask(self) -> None:
        """Begins to compile, unless there is a reason not to."""
        if base.pinned.get():
            self._due = 2 * self._spent  # asked again later
            return
        reasons = xla.refusals(self._graph)
        if reasons:
            self._keep(reasons[0])
            return
        with self._turn:
            if self.progress:
                return
            self.progress = COMPILING
        self._step = TieredRun._run_quick
        self._means.submit(functools.partial(_compile, weakref.ref(self), self._graph, self._means.compile))

    def _run_quick(self, *payloads: Any) -> Any:
        return self._quick(*payloads)

    # Comparing

    def take(self, compiled: Compiled) -> None:
        """A program has been compiled: calls compare it from now on."""
        self._compiled, self._program = compiled, None
        self._comparison = Comparison()
        self.progress = COMPARING
        self._step = TieredRun._compare

    def _compare(self, *payloads: Any) -> Any:
        if base.pinned.get() or not self._turn.acquire(blocking=False):
            return self._quick(*payloads)
        try:
            if self.progress != COMPARING:  # another thread has just decided
                return self._quick(*payloads)
            if not self._comparison.rehearsed:
                return self._rehearsed(payloads)
            if self._comparison.compiled_is_next:
                return self._timed_program(payloads)
            begin = self._means.clock()
            results = self._quick(*payloads)
            self._note(self._means.clock() - begin, False)
            return results
        finally:
            self._turn.release()

    def _rehearsed(self, payloads: Sequence[Any]) -> Any:
        """The results of the tier of now, compared with what the program says that they will be."""
        try:
            wanted, values = self._compiled.rehearse(payloads)
        except RefusedValueError:  # the other tier says what is wrong
            return self._quick(*payloads)
        except Exception as error:  # noqa: BLE001  # of JAX: whatever it is, the other tier goes on
            self._keep(f"the compiled program fails: {_words(error)}")
            return self._quick(*payloads)
        results = self._quick(*payloads)
        held = self._compiled.values_of_variables(payloads)
        words = disagreement([*results, *held], [*wanted, *values])
        self._comparison.rehearsed = True
        if words:
            self._keep(f"compiled, {words}")
        return results

    def _timed_program(self, payloads: Sequence[Any]) -> Any:
        begin = self._means.clock()
        try:
            results = self._compiled.runner()(*payloads)
        except RefusedValueError:
            return self._quick(*payloads)
        except RuntimeError as error:  # of XLA; nothing has been assigned
            self._keep(f"the compiled program fails: {_words(error)}")
            return self._quick(*payloads)
        self._note(self._means.clock() - begin, True)
        return results

    def _note(self, seconds: float, compiled: bool) -> None:
        verdict = self._comparison.note(seconds, compiled)
        if verdict is None:
            return
        if not verdict.switch:
            self._keep(f"compiled it is {verdict.speed:.2g} times as fast")
            return
        self._program = self._compiled.runner()
        self._step = TieredRun._run_program
        self.progress, self.tier = f"compiled: {verdict.speed:.1f} times as fast", base.COMPILED

    # Settled

    def _run_program(self, *payloads: Any) -> Any:
        program = self._program
        if program is None:  # another thread has just given it up
            return self._quick(*payloads)
        try:
            return program(*payloads)
        except RefusedValueError:
            pass
        except RuntimeError as error:  # of XLA: no memory, for one; nothing has been assigned
            self._keep(f"the compiled program failed: {_words(error)}")
        return self._quick(*payloads)

    def _keep(self, why: str) -> None:
        """Stays where it is for good."""
        self.tier = self._first_tier
        self.progress = f"{_KEPT}{self.tier}: {why}"
        self._compiled = self._program = None
        self._step = TieredRun._run_quick
        self._settled(self._quick)

    def fail(self, error: Exception) -> None:
        """It could not be compiled."""
        self._keep(f"it could not be compiled: {_words(error)}")

    def begin_anew(self) -> None:
        """In a forked process: what was under way there is not here."""
        self._turn = threading.Lock()
        if _jax_was_forked[0] and not self.progress.startswith(_KEPT):
            self._keep(_FORKED)
        elif self.progress == COMPILING:
            self.progress = ""
            self._step = TieredRun._count

    # As a runnable

    @property
    def source(self) -> str | None:
        return self._quick.source if self._program is None else str(self._compiled.text())

    def memory(self) -> Peak:
        return self._quick.memory()


def _compile(run: weakref.ref[TieredRun], graph: Graph, compile: Any, process: CompilerProcess) -> None:
    """Compiles in the background, if the function is still there."""
    if run() is None:
        return
    try:
        compiled = compile(graph, process)
    except StoppedError:
        return
    except Exception as error:  # noqa: BLE001  # of a graph without a form, of JAX, of the other process
        tiered = run()
        if tiered is not None and not process.stopped:
            tiered.fail(error)
        return
    tiered = run()
    if tiered is not None:
        tiered.take(compiled)


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:300]


def tiered(graph: Graph, quick: Runnable, tier: str, settled: Callable[[Runnable], None]) -> Runnable:
    """What runs a graph on the tier of `quick` at first; `quick` itself where nothing else can come of it."""
    if _jax_was_forked[0] or base.COMPILED not in base.names() or any(_is_open(value.spec) for value in graph.inputs):
        return quick
    return TieredRun(graph, quick, tier, settled, Means())


def _is_open(spec: Any) -> bool:
    """Whether programs would have to be compiled for each of its sizes."""
    return isinstance(spec, ObjectSpec) or None in spec.shape


def _begin_anew() -> None:
    """In a process that has just been forked."""
    _jax_was_forked[0] = _jax_was_forked[0] or "jax" in sys.modules
    for run in list(_alive):
        run.begin_anew()


forking.in_child(_begin_anew)
