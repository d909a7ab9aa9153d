"""What random programs leave when they are run in one way or another: for tests that compare the ways."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from comparing import TOLERANCES, close
from programs import FLOATS, Limelight, Numpy, Program, Runner

import limelight as ll
from limelight.errors import ControlFlowError
from limelight.executors import base
from limelight.explain.retracing import restaging
from limelight.graph.printer import nested
from limelight.optimise import optimise


class Result:
    """What a run leaves: its outputs, the variables, and the log."""

    def __init__(self, outputs: Sequence[Any], variables: Sequence[Any], runner: Runner) -> None:
        self.arrays = [np.array(x) for x in (*outputs, *variables, *runner.log)]

    def bits(self) -> list[bytes]:
        """All results bit by bit, but for the kinds of NaN."""
        return [(np.where(np.isnan(x), np.nan, x) if x.dtype.name in TOLERANCES else x).tobytes() for x in self.arrays]

    def same_as(self, other: Result, way: str) -> None:
        assert len(self.arrays) == len(other.arrays), f"{way}: not everything was said, or more"
        for i, (mine, theirs) in enumerate(zip(self.arrays, other.arrays, strict=True)):
            close(mine, theirs, f"{way}: result {i}")


def unknown_of(shape: Sequence[int]) -> list[int | None]:
    """A shape of which nothing is known but that sizes of 1 broadcast."""
    return [1 if n == 1 else None for n in shape]


class Ways:
    """One program, run in each way on variables of its own."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.tensors = [ll.constant(x) for x in program.inputs]
        self.traces: dict[Any, tuple[list[Any], Limelight, Any]] = {}
        self.texts: dict[Any, str] = {}  # of their graphs, as they were traced

    def make(self, staged: bool, unknown: bool = False, slopes: bool = False) -> tuple[list[Any], Limelight, Any]:
        """Fresh variables, a runner, and the program as a function: of tensors, or of tensors of unknown sizes."""
        variables = [ll.Variable(x) for x in self.program.variables]
        runner = Limelight(variables, staged)

        def run(*inputs: Any) -> Any:
            values = runner.body(self.program.body, inputs)
            return [values[i] for i in self.program.outputs]

        restaging.forget()  # or each trace looks for what it has in common with those of other programs
        whole = functools.partial(self.slopes, run, variables) if slopes else run
        specs = [ll.TensorSpec(unknown_of(x.shape), x.dtype) for x in self.tensors] if unknown else None
        return variables, runner, ll.function(whole, input_signature=specs) if staged else whole

    def slopes(self, f: Any, variables: list[Any], *inputs: Any) -> list[Any]:
        """Gradients of what is floating with respect to what is."""
        floats = [x for x in (*inputs, *variables) if x.dtype.name in FLOATS]
        with ll.GradientTape() as tape:
            tape.watch(floats)
            outputs = f(*inputs)
        targets = [y for y in outputs if y.dtype.name in FLOATS]
        gradients: list[Any] = tape.gradient(targets, floats, unconnected_gradients="zero")
        return gradients

    def numpy(self) -> Result:
        runner = Numpy(self.program.variables)
        with np.errstate(all="ignore"):
            values = runner.body(self.program.body, self.program.inputs)
        return Result([values[i] for i in self.program.outputs], runner.variables, runner)

    def run(self, staged: bool, unknown: bool = False) -> Result:
        variables, runner, f = self.make(staged, unknown)
        return Result(f(*self.tensors), variables, runner)

    def twice(self) -> Result:
        """The second call of a staged function, with everything as before the first."""
        variables, runner, f = self.make(staged=True)
        f(*self.tensors)
        for v, x in zip(variables, self.program.variables, strict=True):
            v.assign(x)
        runner.log.clear()
        runner.generator.reset(7)
        outputs = f(*self.tensors)
        assert (f.trace_count, f.trace_cache[0].hits) == (1, 1)
        return Result(outputs, variables, runner)

    def executed(self, executor: Any, level: int, unknown: bool = False, slopes: bool = False) -> Result:
        """The graph, optimised at a level, run by an executor; called functions are optimised at that level, too."""
        variables, runner, entry = self.traced(executor.name, unknown, slopes)
        for v, x in zip(variables, self.program.variables, strict=True):
            v.assign(x)
        runner.log.clear()
        runner.generator.reset(7)
        for function in nested(entry.graph):
            for made in ("optimised", "_built", "run"):  # at the level of before
                vars(function).pop(made, None)
        payloads = [x._data for x in (*self.tensors, *entry.captures)]
        with ll.config.optimiser(level):
            better, records = optimise(entry.graph, check=True)
            places = executor.build(better)(*payloads)
        assert entry.graph.text() == self.texts[entry], "passes leave the graph alone that they are given"
        assert all(record.before - record.removed + record.added == record.after for record in records)
        return Result(places, [] if slopes else variables, runner)

    def traced(self, executor: str, unknown: bool, slopes: bool) -> tuple[list[Any], Limelight, Any]:
        """The program's variables, its runner and its trace, which is made once for all levels."""
        key = executor, unknown, slopes
        if key not in self.traces:
            variables, runner, f = self.make(True, unknown, slopes)
            with base.chosen.override(executor):  # what the graph calls asks for it, too
                entry = f.get_concrete_function(*([] if unknown else self.tensors))
            held = [v.numpy().tolist() for v in variables]
            assert held == [x.tolist() for x in self.program.variables], "tracing ran it"
            assert runner.log == [], "tracing ran it"
            self.traces[key] = variables, runner, entry
            self.texts[entry] = entry.graph.text()
        return self.traces[key]

    def gradients(self, staged: bool, level: int = 3, unknown: bool = False) -> Result:
        with ll.config.optimiser(level):
            variables, runner, f = self.make(staged, unknown)
            return Result(self.slopes(f, variables, *self.tensors), [], runner)


def allows_unknown_sizes(ways: Ways) -> bool:
    """Whether all loops keep their shapes, as far as these are known then: else an invariant must say so.

    Nor do the rows of a scan without rows have sizes that could be known.
    """
    if any(0 in x.shape for x in ways.tensors) and ways.program.holds("scan", "map"):
        return False
    try:
        ways.make(staged=True, unknown=True)[2].get_concrete_function()
    except ControlFlowError as error:
        if " on entry and " not in str(error):
            raise
        return False
    return True
