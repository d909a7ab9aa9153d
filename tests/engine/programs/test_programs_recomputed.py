"""Random programs whose calls recompute what they need for their gradients have the same gradients."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import limelight as ll

sys.path.insert(0, str(Path(__file__).parent))

from comparing import close
from drawn import programs  # beside this file
from programs import FLOATS, Instruction, Limelight, Program

pytestmark = [pytest.mark.usefixtures("retraces_are_meant"), pytest.mark.slow]  # a hundred random programs
compared = [0]


class Recomputing(Limelight):
    def run_call(self, instruction: Instruction, values: list[Any]) -> Any:
        around = tuple(values)  # which grow later on, and are read again
        call = lambda *xs: self.block(instruction.blocks[0], [*around, *xs])  # noqa: E731
        given = [ll.identity(values[i]) for i in instruction.operands]
        call = ll.recompute_grad(call)
        return ll.identity((ll.function(call) if self.staged else call)(*given))


def gradients(program: Program, runner: type[Limelight], staged: bool) -> list[np.ndarray[Any, Any]]:
    tensors = [ll.constant(x) for x in program.inputs]
    variables = [ll.Variable(x) for x in program.variables]
    running = runner(variables, staged)

    def run(*inputs: Any) -> Any:
        values = running.body(program.body, inputs)
        return [values[i] for i in program.outputs]

    floats = [x for x in (*tensors, *variables) if x.dtype.name in FLOATS]
    with ll.GradientTape() as tape:
        tape.watch(floats)
        outputs = (ll.function(run) if staged else run)(*tensors)
    targets = [y for y in outputs if y.dtype.name in FLOATS]
    return [np.array(g) for g in tape.gradient(targets, floats, unconnected_gradients="zero")]


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(programs(effects=False))
def compare(program: Program) -> None:
    assume(program.differentiable() and program.holds("call"))
    compared[0] += 1
    wanted = gradients(program, Limelight, staged=False)
    for staged in (False, True):
        for mine, theirs in zip(gradients(program, Recomputing, staged), wanted, strict=True):
            close(mine, theirs, f"staged: {staged}")


def test_recomputed_calls_have_the_same_gradients(record_property: Any) -> None:
    compared[0] = 0
    compare()
    record_property("random programs", {"with recomputed calls": compared[0]})
    assert compared[0] >= 20
