"""Random programs of control flow: eagerly, on the plan, in tables and step by step they are the same, to the bit.

Results, gradients, variables and generators are compared after each of some calls, with known and unknown sizes, for
operands in C order, in Fortran order, and as views. `LIMELIGHT_CONTROL_FLOW=3000 pytest` with this file runs thousands.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest
from drawn_loops import Writer
from running_loops import Call, Tables, are_near, bits, outcome

import limelight as ll
from limelight.executors.loops import open_loops, stateful_loops

PROGRAMS = int(os.environ.get("LIMELIGHT_CONTROL_FLOW", "24"))
FIRST = int(os.environ.get("LIMELIGHT_CONTROL_FLOW_FIRST", "0"))
"""The seed of the first one."""
BESIDE = 12
"""Programs a test."""
counted: Counter[str] = Counter()


def compare(seed: int) -> None:
    draw = random.Random(seed)
    writer = Writer(seed, state=draw.random() < 0.7)
    text = writer.program()
    gradient, unknown, exact, small = (draw.random() < part for part in (0.5, 0.4, 0.5, 0.6))
    sizes = [{"N": draw.choice([2, 3, 4]), "M": draw.choice([2, 3])} for _ in range(2 if unknown else 1)]
    calls = [Call(sizes[i % len(sizes)], seed * 10 + i) for i in range(3 * len(sizes))]
    found: dict[str | None, Any] = {}
    tables = Tables()
    with pytest.MonkeyPatch.context() as patch, ll.config.optimiser(2 if exact else 3), tables.counted():
        for module in (open_loops, stateful_loops) if small else ():
            patch.setattr(module, "ROOM", (2, 8))
        for executor in (None, "plan", "loops", *["step"] * (seed % 3 == 0)):
            found[executor] = outcome(text, calls, executor, unknown, gradient)
    counted.update(programs=1, tables=tables.made > 0, loops=tables.instructions["Repetition"] > 0)
    counted.update(choices=tables.instructions["Choice"] > 0, runs=tables.runs - tables.otherwise)
    assert bits(found["loops"]) == bits(found["plan"]), f"tables, not the plan: program {seed}\n{text}"
    assert bits(found.get("step", found["plan"])) == bits(found["plan"]), f"step, not the plan: program {seed}\n{text}"
    assert are_near(found[None], found["plan"]), f"eager, not the plan: program {seed}\n{text}"
    if exact and not gradient and not writer.used & {"nested_gradient"}:
        counted["to the bit with eager code"] += 1
        assert bits(found[None]) == bits(found["plan"]), f"eager, not the plan to the bit: program {seed}\n{text}"


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, BESIDE))
def test_programs_are_the_same_however_they_run(first: int) -> None:
    counted.clear()
    for seed in range(first, min(first + BESIDE, FIRST + PROGRAMS)):
        compare(seed)
    if counted["programs"] == BESIDE:
        assert counted["tables"] > BESIDE // 2, counted
        assert counted["loops"] > BESIDE // 6, counted
        assert counted["choices"], counted
        assert counted["runs"] > BESIDE, counted
        assert counted["to the bit with eager code"], counted
