"""Random programs mean the same however they run: eagerly, staged, step by step, optimised or not, and in NumPy.

Values, dtypes, shapes, gradients, what happens to variables, draws from a generator and the order of what a py_func
sees are compared, with known and unknown sizes, at each level of the optimiser and on each executor.
`LIMELIGHT_PROGRAMS=5000 pytest tests/engine/programs/test_programs.py` runs thousands; pytest's summary says how many.
The programs of tests/engine/executors/test_random_programs.py are graphs; these are Python programs, with control flow,
functions and tapes inside one another.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import limelight as ll
from limelight.errors import ControlFlowError
from limelight.executors import base
from limelight.optimise import optimise

sys.path.insert(0, str(Path(__file__).parent))

from comparing import TOLERANCES, close
from drawn import DTYPES, programs  # beside this file
from programs import FLOATS, HALVES, Limelight, Numpy, Program, Runner

N = int(os.environ.get("LIMELIGHT_PROGRAMS", "200"))
"""Programs for each of the two tests below: a few hundred as a rule, thousands when somebody asks for them."""
EXECUTORS = {name: base.get(name) for name in base.names()}
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
seen: Counter[str] = Counter()

pytestmark = [
    pytest.mark.usefixtures("retraces_are_meant"),
    pytest.mark.slow,  # hundreds of random programs, each run in a dozen ways
    pytest.mark.timeout(1800 + 3 * N),
]


KINDS = ("cond", "switch", "while", "scan", "map", "call", "tape", "assign", "say", "random")


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

    def make(self, staged: bool, unknown: bool = False, slopes: bool = False) -> tuple[list[Any], Limelight, Any]:
        """Fresh variables, a runner, and the program as a function: of tensors, or of tensors of unknown sizes."""
        variables = [ll.Variable(x) for x in self.program.variables]
        runner = Limelight(variables, staged)

        def run(*inputs: Any) -> Any:
            values = runner.body(self.program.body, inputs)
            return [values[i] for i in self.program.outputs]

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
        variables, runner, f = self.make(True, unknown, slopes)
        with base.chosen.override(executor.name):  # what the graph calls asks for it, too
            entry = f.get_concrete_function(*([] if unknown else self.tensors))
        assert [v.numpy().tolist() for v in variables] == [x.tolist() for x in self.program.variables], "tracing ran it"
        assert runner.log == [], "tracing ran it"
        payloads = [x._data for x in (*self.tensors, *entry.captures)]
        before = entry.graph.text()
        with ll.config.optimiser(level):
            better, records = optimise(entry.graph, check=True)
            places = executor.build(better)(*payloads)
        assert entry.graph.text() == before, "passes leave the graph alone that they are given"
        assert all(record.before - record.removed + record.added == record.after for record in records)
        return Result(places, [] if slopes else variables, runner)

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
    seen["with unknown sizes"] += 1
    return True


@settings(max_examples=N, suppress_health_check=SLOW)
@given(programs())
def compare(program: Program) -> None:
    note(program)
    ways = Ways(program)
    eager = ways.run(staged=False)
    if not program.holds("tape", "random") and program.dtypes().isdisjoint(HALVES):
        seen["compared with NumPy"] += 1
        ways.numpy().same_as(eager, "NumPy")
    ways.run(staged=True).same_as(eager, "staged")
    unknown = allows_unknown_sizes(ways)
    if unknown:
        ways.run(staged=True, unknown=True).same_as(eager, "staged for unknown sizes")
    ways.twice().same_as(eager, "staged, from the cache")
    found = {}
    for level in range(4):
        for name, executor in EXECUTORS.items():
            found[name, level] = ways.executed(executor, level, unknown=unknown and level == 2)
            found[name, level].same_as(eager, f"{name}, level {level}")
            seen["runs of graphs"] += 1
        if "loops" in EXECUTORS:
            assert found["loops", level].bits() == found["plan", level].bits(), f"tables have the plan's bits: {level}"
    for level in (1, 2):
        assert found["step", level].bits() == found["step", 0].bits(), f"level {level} is exact"


@settings(max_examples=N * 4 // 5, suppress_health_check=SLOW)
@given(programs())
def differentiate(program: Program) -> None:
    if not program.differentiable():
        return
    note(program)
    seen["differentiated"] += 1
    ways = Ways(program)
    unknown = allows_unknown_sizes(ways)
    eager = ways.gradients(staged=False)
    for level in (0, 2, 3):
        ways.gradients(staged=True, level=level, unknown=unknown and level == 2).same_as(
            eager, f"gradients, level {level}"
        )
    for level, (name, executor) in zip(itertools.cycle((0, 3)), EXECUTORS.items(), strict=False):
        inside = ways.executed(executor, level, slopes=True)
        inside.same_as(eager, f"gradients in the graph, {name}, level {level}")
    if "loops" in EXECUTORS:
        by_loops, by_plan = (ways.executed(EXECUTORS[name], 3, slopes=True).bits() for name in ("loops", "plan"))
        assert by_loops == by_plan, "tables have the plan's bits in gradients"


def note(program: Program) -> None:
    seen["programs"] += 1
    seen.update({f"with {op}": 1 for op in KINDS if program.holds(op)})
    seen.update({f"with {dtype}": 1 for dtype in program.dtypes()})


def test_programs_mean_the_same_however_they_run(record_property: Any) -> None:
    seen.clear()
    compare()
    record_property("random programs", dict(seen))
    assert seen["programs"] >= N
    assert {"plan", "step"} <= EXECUTORS.keys()
    assert seen["runs of graphs"] == 4 * len(EXECUTORS) * seen["programs"]
    assert min(seen[f"with {op}"] for op in KINDS) > N // 20, seen
    assert min(seen[f"with {dtype}"] for dtype in DTYPES) > N // 40, seen
    assert seen["compared with NumPy"] > N // 8


def test_gradients_are_the_same_eager_and_staged(record_property: Any) -> None:
    seen.clear()
    differentiate()
    record_property("random programs", dict(seen))
    assert seen["differentiated"] > N // 5
    assert min(seen[f"with {op}"] for op in KINDS) > N // 40, seen
