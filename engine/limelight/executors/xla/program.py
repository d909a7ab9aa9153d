"""A graph as one program of XLA, for inputs of known shapes.

What the program computes besides the graph's outputs: the values that variables have afterwards, and whether a kernel
has met a value that it refuses, if any kernel looks.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from limelight.core import backends, storage, value_checks
from limelight.core.op import Op
from limelight.core.spec import GeneratorSpec, TensorSpec, VariableSpec
from limelight.executors.xla import disk_cache, stateful_call
from limelight.executors.xla.graph_lowering import GraphLowering, VariableCell, array_of, why_no_form
from limelight.executors.xla.hoisted_draws import Draw, DrawRecorder, GeneratorCell, HandedIn
from limelight.executors.xla.structured_control import CONTROL
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import Graph
from limelight.ops.random._draws import Source, alone, return_to


class RefusedValueError(Exception):
    """A kernel has met a value that it refuses, or a draw failed: nothing is assigned, generators are set back."""


@functools.cache
def jax() -> Any:
    """The module, which is imported when something is compiled."""
    backends.load("jax")  # which says how JAX is to treat a GPU
    return importlib.import_module("jax")


def wide() -> AbstractContextManager[Any]:
    """With dtypes of 64 bits, which JAX narrows otherwise."""
    backend: Any = backends.load("jax")
    return backend.wide()  # type: ignore[no-any-return]


def _for_host() -> AbstractContextManager[Any]:
    """A block in which programs are made for the CPU, also where JAX would take a GPU."""
    if jax().default_backend() == "cpu":
        return nullcontext()
    return jax().default_device(jax().devices("cpu")[0])  # type: ignore[no-any-return]


class Program:
    """What is compiled for one set of shapes.

    Args:
        graph: the graph.
        payloads: inputs as they are, whose shapes and dtypes count.
        on_host: for each output, whether it becomes an array of NumPy.
        compile: compiles a function of arrays for their types; here and now, by default.
        stop_if_told: is called at each node that is lowered, and may raise.

    Raises:
        NoFormError: a node has no form in the program.
    """

    def __init__(
        self,
        graph: Graph,
        payloads: Sequence[Any],
        on_host: Sequence[bool],
        compile: Callable[[Callable[..., Any], Sequence[Any]], Any] | None = None,
        stop_if_told: Callable[[], None] | None = None,
    ) -> None:
        self._graph = graph
        self._stop_if_told = stop_if_told
        specs = [value.spec for value in graph.inputs]
        self._tensors = [i for i, spec in enumerate(specs) if isinstance(spec, TensorSpec)]
        self._variables = [
            i for i, spec in enumerate(specs) if isinstance(spec, VariableSpec) and not isinstance(spec, GeneratorSpec)
        ]
        written = effects_of_graph(graph).writes
        self._written = [i for i in self._variables if graph.inputs[i] in written]
        self._generators = [i for i, spec in enumerate(specs) if isinstance(spec, GeneratorSpec)]
        self.draws: list[Draw] = []
        self.refuses = False
        held = [payloads[i].array for i in self._written]
        self._on_host = (*on_host, *[isinstance(x, np.ndarray | np.generic) for x in held])  # the plan leaves scalars
        with wide(), _for_host() if all(self._on_host) else nullcontext():
            self._compile(payloads, compile or compiled_here)

    def _compile(self, payloads: Sequence[Any], compile: Callable[..., Any]) -> None:
        arrays = self._arrays(payloads)
        types = [jax().ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
        drawn: list[Any] = []
        if self._generators:
            recorder = DrawRecorder()
            jax().eval_shape(functools.partial(self._traced, recorder), *types)
            self.draws = recorder.draws
            drawn = [jax().ShapeDtypeStruct(x.shape, x.dtype) for x in recorder.drawn]
        n = len(types)

        def run(*arrays: Any) -> tuple[Any, ...]:
            return self._traced(HandedIn(arrays[n:]), *arrays[:n])

        run.__name__ = self._graph.name if self._graph.name.isidentifier() else "graph"
        self._compiled = compile(run, [*types, *drawn])
        self._narrow = all(x.dtype.itemsize * (1 if x.dtype.kind != "c" else 0.5) <= 4 for x in [*types, *drawn])

    def _traced(self, draw: Any, *arrays: Any) -> tuple[Any, ...]:
        """What JAX traces: outputs, values of variables that are assigned, and the flag of refused values."""
        jnp = jax().numpy
        places = dict(zip([*self._tensors, *self._variables], arrays, strict=True))
        inputs = [
            GeneratorCell(i)
            if i in self._generators
            else VariableCell(places[i])
            if i in self._variables
            else places[i]
            for i in range(len(self._graph.inputs))
        ]
        with value_checks.keeps() as questions:
            outputs = GraphLowering(CONTROL, self._why_no_form, draw).run(self._graph, inputs)
        results = [array_of(x, value) for x, value in zip(outputs, self._graph.outputs, strict=True)]
        cells: list[Any] = [inputs[i] for i in self._written]
        assigned = [jnp.asarray(cell.array, places[i].dtype) for cell, i in zip(cells, self._written, strict=True)]
        self.refuses = bool(questions)
        flag = [functools.reduce(jnp.logical_or, questions)] if questions else []
        return (*results, *assigned, *flag)

    def _why_no_form(self, op: Op) -> str:
        if self._stop_if_told is not None:
            self._stop_if_told()
        return why_no_form(op)

    def _arrays(self, payloads: Sequence[Any]) -> list[Any]:
        return [*[payloads[i] for i in self._tensors], *[payloads[i].array for i in self._variables]]

    @property
    def temporary_bytes(self) -> int:
        """What a run needs besides its inputs, results included."""
        found = self._compiled.memory_analysis()
        return 0 if found is None else int(found.temp_size_in_bytes + found.output_size_in_bytes)

    def text(self) -> str:
        """The program as XLA compiled it."""
        return str(self._compiled.as_text())

    @property
    def _run(self) -> Callable[..., Any]:
        # What JAX makes for its own `__call__` at the first call: without that in between, a microsecond less.
        run = getattr(self._compiled, "_call", None) or self._compiled
        return run if self._narrow else backends.load("jax").prepared(run)  # or NumPy's 64 bits would become 32

    def runner(self) -> Callable[..., Sequence[Any]]:
        """What gives the outputs for the payloads of all inputs; see `_with_state`. Nobody here keeps it: no cycle."""
        if self.refuses or self.draws or (self._written and self._generators):
            return self._with_state
        if not self._written:
            return self._without_state()
        return stateful_call.stateful_call(self._run, self._tensors, self._variables, self._written, self._on_host)

    @property
    def is_direct(self) -> bool:
        """Whether a run is nothing but a call of it, and the assignments: no draws, no refusal."""
        return not (self._generators or self.refuses)

    def _without_state(self) -> Callable[..., Sequence[Any]]:
        """The hot path: nothing is drawn, assigned or refused."""
        run, on_host, asarray = self._run, self._on_host, np.asarray
        if self._variables or self._generators:
            gather = self._arrays
            return lambda *payloads: _brought(run(*gather(payloads)), on_host)
        if on_host == (True,):
            return lambda *arrays: (asarray(run(*arrays)[0]),)
        if all(on_host):
            return lambda *arrays: tuple([asarray(x) for x in run(*arrays)])
        return run if not any(on_host) else lambda *arrays: _brought(run(*arrays), on_host)

    def _with_state(self, *payloads: Any) -> Sequence[Any]:
        """The outputs; assigns variables, and makes draws.

        Raises RefusedValueError, before anything is assigned, where the graph's own executor is to say what is wrong.
        Whatever it raises, generators are set back, since another executor may make the run again.
        """
        generators = [payloads[i] for i in self._generators]
        before: list[Any] = []
        after: list[Any] = []
        held: list[Any] = []
        try:
            drawn = self._drawn(payloads, generators, before, after) if self.draws else []
            while True:
                held, arrays = self.values_of_variables(payloads), self._arrays(payloads)
                results = self._run(*arrays, *drawn)
                if self.refuses:
                    *results, refused = results
                    if bool(refused):
                        raise RefusedValueError
                brought = _brought(results, self._on_host)
                if self._assigned(payloads, arrays, brought):
                    return brought[: len(self._graph.outputs)]
        except BaseException:
            if all(payloads[i].array is x for i, x in zip(self._written, held, strict=False)):  # nothing was assigned
                _take_back(generators, before, after)
            raise

    def rehearse(self, payloads: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """What a run would return now, and what the variables that it assigns would hold: nothing is drawn or assigned.

        Raises RefusedValueError as a run does.
        """
        sources = {i: Source(payloads[i].array) for i in self._generators}
        drawn = [x for draw in self.draws for x in draw.results(sources[draw.generator])]
        results = list(self._run(*self._arrays(payloads), *drawn))
        if self.refuses and bool(results.pop()):
            raise RefusedValueError
        brought, count = _brought(results, self._on_host), len(self._graph.outputs)
        return brought[:count], brought[count:]

    def values_of_variables(self, payloads: Sequence[Any]) -> list[Any]:
        """What the variables that it assigns hold now."""
        return [payloads[i].array for i in self._written]

    def _assigned(self, payloads: Sequence[Any], arrays: Sequence[Any], results: Sequence[Any]) -> bool:
        """Assigns all variables at once; False where another thread has assigned one of them since it was read."""
        if not self._written:
            return True
        before = dict(zip(self._variables, arrays[len(self._tensors) :], strict=True))
        assigned = list(zip(self._written, results[len(self._graph.outputs) :], strict=True))
        with stateful_call.committing:
            if any(payloads[i].array is not before[i] for i in self._written):
                return False
            for i, x in assigned:
                payloads[i].array = x
        if storage.told:  # after the lock is given back: a listener may make such a call itself
            for i, x in assigned:
                payloads[i]._tell(x)
        return True

    def _drawn(self, payloads: Sequence[Any], generators: Sequence[Source], before: list[Any], after: list[Any]) -> Any:
        """All numbers that a run needs; notes where the generators were before and behind that.

        Raises RefusedValueError where a draw fails, or is interrupted, after the generators were set back.
        """
        with alone(generators):  # or the numbers of one run, and what is taken back, would be another thread's as well
            before += [one.position() for one in generators]
            try:
                drawn = [x for draw in self.draws for x in draw.results(payloads[draw.generator])]
                after += [one.position() for one in generators]
            except BaseException as error:
                return_to(generators, before)
                before.clear()
                if isinstance(error, Exception):  # the plan says what is wrong, at the user's line
                    raise RefusedValueError from error
                raise
            return drawn


def _take_back(generators: Sequence[Source], before: Sequence[Any], after: Sequence[Any]) -> None:
    """Has generators draw again what a run has drawn, unless others have drawn from one since."""
    if not before:
        return
    with alone(generators):
        if all(one.is_at(position) for one, position in zip(generators, after, strict=False)):
            return_to(generators, before)


def compiled_here(run: Callable[..., Any], types: Sequence[Any]) -> Any:
    """A function of arrays as XLA compiles it for these types, or has done so earlier (`disk_cache`)."""
    lowered = jax().jit(run).lower(*types)
    with disk_cache.used(disk_cache.folder()):
        return lowered.compile()


def _brought(results: Sequence[Any], on_host: Sequence[bool]) -> tuple[Any, ...]:
    """Results as arrays of NumPy, where they are to be on the host."""
    return tuple([np.asarray(x) if host else x for x, host in zip(results, on_host, strict=True)])
