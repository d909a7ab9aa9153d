"""Random programs mean the same however they run: eagerly, staged, step by step, optimised or not, and in NumPy.

Values, dtypes, shapes, gradients, what happens to variables, draws from a generator and the order of what a py_func
sees are compared, with known and unknown sizes, at each level of the optimiser and on each executor.
`LIMELIGHT_PROGRAMS=5000 pytest tests/engine/programs/test_programs.py` runs thousands; pytest's summary says how many.
The programs of tests/engine/executors/test_random_programs.py are graphs; these are Python programs, with control flow,
functions and tapes inside one another.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from limelight.executors import base

sys.path.insert(0, str(Path(__file__).parent))

from drawn import DTYPES, programs  # beside this file
from programs import HALVES, Program
from running import Ways, allows_unknown_sizes

N = int(os.environ.get("LIMELIGHT_PROGRAMS", "120"))
"""Programs for each of the two tests below: a hundred as a rule, thousands when somebody asks for them."""
EXECUTORS = {name: base.get(name) for name in base.names() if name != "xla"}
"""But for the one that compiles for a while, on which test_programs_compiled.py has some run."""
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
seen: Counter[str] = Counter()

pytestmark = [
    pytest.mark.usefixtures("retraces_are_meant"),
    pytest.mark.slow,  # a hundred random programs, each run in a dozen ways
    pytest.mark.timeout(1800 + 3 * N),
]


KINDS = ("cond", "switch", "while", "scan", "map", "call", "tape", "assign", "say", "random")


@seed(8)  # draws depend on no test's source then, which would draw a dtype seldom or never after an edit
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
    seen["with unknown sizes"] += unknown
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


@settings(max_examples=N // 2, suppress_health_check=SLOW)
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
