"""Random programs mean the same however they run: eagerly, staged, step by step, optimised or not, and in NumPy.

Values, dtypes, shapes, gradients and what happens to variables are compared, at each level of the optimiser and on
each executor. `LIMELIGHT_PROGRAMS=5000 pytest tests/engine/test_programs.py` runs thousands. The programs of
tests/engine/executors/test_random_programs.py are graphs; these are Python programs, with control flow, functions and
tapes inside one another.
"""

from __future__ import annotations

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
from limelight.executors import plan, step
from limelight.optimise import optimise

sys.path.insert(0, str(Path(__file__).parent))

from programs import Limelight, Numpy, Program, programs  # beside this file

N = int(os.environ.get("LIMELIGHT_PROGRAMS", "250"))
"""Programs for each of the two tests below: a few hundred as a rule, thousands when somebody asks for them."""
EXECUTORS = {
    "plan": lambda graph, payloads: plan.build(graph)(*payloads),
    "step by step": lambda graph, payloads: step.run(graph, payloads).outputs,
}
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
seen: Counter[str] = Counter()

pytestmark = [pytest.mark.usefixtures("retraces_are_meant"), pytest.mark.timeout(180 + N)]


class Result:
    """What a run leaves: its outputs, and the variables."""

    def __init__(self, outputs: Sequence[Any], variables: Sequence[Any]) -> None:
        self.arrays = [np.array(x) for x in (*outputs, *variables)]

    def bits(self) -> list[bytes]:
        """All results bit by bit, but for the kinds of NaN."""
        return [(x if x.dtype.kind == "i" else np.where(np.isnan(x), np.nan, x)).tobytes() for x in self.arrays]

    def same_as(self, other: Result, way: str) -> None:
        assert len(self.arrays) == len(other.arrays)
        for i, (mine, theirs) in enumerate(zip(self.arrays, other.arrays, strict=True)):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), f"{way}: result {i}"
            close(mine, theirs, f"{way}: result {i}")


def close(mine: np.ndarray, theirs: np.ndarray, what: str) -> None:
    with np.errstate(all="ignore"):
        if mine.dtype.kind != "f":
            assert np.array_equal(mine, theirs), what
            return
        finite = np.abs(theirs[np.isfinite(theirs)])
        size = finite.max() if finite.size else 0.0
        tolerance = 2e-4 if mine.dtype == np.float32 else 1e-8
        assert np.allclose(mine, theirs, rtol=tolerance, atol=tolerance * (1 + size), equal_nan=True), what


class Ways:
    """One program, run in each way on variables of its own."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.tensors = [ll.constant(x) for x in program.inputs]

    def make(self, staged: bool) -> tuple[list[Any], Any]:
        """Fresh variables, and the program as a function over them."""
        variables = [ll.Variable(x) for x in self.program.variables]
        runner = Limelight(variables, staged)

        def run(*inputs: Any) -> Any:
            values = runner.body(self.program.body, inputs)
            return [values[i] for i in self.program.outputs]

        return variables, ll.function(run) if staged else run

    def numpy(self) -> Result:
        runner = Numpy(self.program.variables)
        with np.errstate(all="ignore"):
            values = runner.body(self.program.body, self.program.inputs)
        return Result([values[i] for i in self.program.outputs], runner.variables)

    def run(self, staged: bool) -> tuple[Result, Any]:
        variables, f = self.make(staged)
        return Result(f(*self.tensors), variables), f

    def twice(self) -> Result:
        """The second call of a staged function, with the variables as before the first."""
        variables, f = self.make(staged=True)
        f(*self.tensors)
        for v, x in zip(variables, self.program.variables, strict=True):
            v.assign(x)
        outputs = f(*self.tensors)
        assert (f.trace_count, f.trace_cache[0].hits) == (1, 1)
        return Result(outputs, variables)

    def executed(self, execute: Any, level: int) -> Result:
        """The graph, optimised at a level, run by an executor; called functions are optimised at that level, too."""
        variables, f = self.make(staged=True)
        entry = f.get_concrete_function(*self.tensors)
        assert [v.numpy().tolist() for v in variables] == [x.tolist() for x in self.program.variables], "tracing ran it"
        payloads = [x._data for x in (*self.tensors, *entry.captures)]
        with ll.config.optimiser(level):
            places = iter(execute(optimise(entry.graph, check=True).graph, payloads))
        outputs = [next(places) for _ in self.program.outputs]
        seen[f"runs at level {level}"] += 1
        return Result(outputs, variables)

    def gradients(self, staged: bool, level: int = 3) -> list[np.ndarray]:
        with ll.config.optimiser(level):
            return self._gradients(staged)

    def _gradients(self, staged: bool) -> list[np.ndarray]:
        variables, f = self.make(staged)
        floats = [x for x in (*self.tensors, *variables) if x.dtype.kind == "f"]
        with ll.GradientTape() as tape:
            tape.watch(floats)
            outputs = f(*self.tensors)
        targets = [y for y in outputs if y.dtype.kind == "f"]
        return [np.array(g) for g in tape.gradient(targets, floats, unconnected_gradients="zero")]


def note(program: Program) -> None:
    seen["programs"] += 1
    seen.update(op for op in ("cond", "while", "call", "tape", "assign") if program.holds(op))


@settings(max_examples=N, suppress_health_check=SLOW)
@given(programs())
def test_programs_mean_the_same_however_they_run(program: Program) -> None:
    note(program)
    ways = Ways(program)
    eager, _ = ways.run(staged=False)
    if not program.holds("tape"):
        seen["compared with NumPy"] += 1
        ways.numpy().same_as(eager, "NumPy")
    ways.run(staged=True)[0].same_as(eager, "staged")
    ways.twice().same_as(eager, "staged, from the cache")
    found = {}
    for level in range(4):
        for name, execute in EXECUTORS.items():
            found[name, level] = ways.executed(execute, level)
            found[name, level].same_as(eager, f"{name}, level {level}")
    for level in (1, 2):
        assert found["step by step", level].bits() == found["step by step", 0].bits(), f"level {level} is exact"


@settings(max_examples=N * 4 // 5, suppress_health_check=SLOW)
@given(programs())
def test_gradients_are_the_same_eager_and_staged(program: Program) -> None:
    if not program.differentiable():
        return
    note(program)
    seen["differentiated"] += 1
    ways = Ways(program)
    eager = ways.gradients(staged=False)
    for level in (0, 2, 3):
        for i, (mine, theirs) in enumerate(zip(ways.gradients(staged=True, level=level), eager, strict=True)):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            close(mine, theirs, f"gradient {i}, level {level}")


def test_enough_programs_of_every_kind_ran(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\nRandom programs:", ", ".join(f"{n} {what}" for what, n in seen.most_common()))  # noqa: T201
    if not seen:
        pytest.skip("run together with the tests above, whose programs it counts")
    assert seen["programs"] > N
    assert min(seen[op] for op in ("cond", "while", "call", "tape", "assign")) > N // 15
    assert seen["compared with NumPy"] > N // 8
    assert seen["differentiated"] > N // 5
