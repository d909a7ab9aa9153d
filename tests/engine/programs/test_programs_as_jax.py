"""Random programs mean what JAX makes of them, values and gradients, eager and staged; where JAX is installed.

`LIMELIGHT_PROGRAMS=5000 pytest tests/engine/programs/test_programs_as_jax.py` runs thousands.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import limelight as ll

pytest.importorskip("jax", reason="JAX is not installed (the extra `xla`): no programs are compared with it")
sys.path.insert(0, str(Path(__file__).parent))

import jax_runner
from comparing import close
from drawn import programs  # beside this file
from programs import FLOATS, HALVES, Limelight, Program

N = int(os.environ.get("LIMELIGHT_PROGRAMS", "30"))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
seen: Counter[str] = Counter()

pytestmark = [
    pytest.mark.usefixtures("retraces_are_meant"),
    pytest.mark.slow,  # JAX compiles each op for each shape
    pytest.mark.timeout(1800 + 3 * N),
]


def comparable(program: Program) -> bool:
    """JAX has no tapes, and rounds the short floats elsewhere."""
    return not program.holds("tape") and program.dtypes().isdisjoint(HALVES)


def function_of(program: Program, staged: bool) -> Any:
    runner = Limelight([ll.Variable(x) for x in program.variables], staged)

    def run(*inputs: Any) -> Any:
        found = runner.body(program.body, inputs)
        return [found[i] for i in program.outputs]

    return ll.function(run) if staged else run


def as_jax(program: Program, inputs: Any) -> Any:
    arrays = [jax_runner.jnp.asarray(x) for x in program.variables]
    return jax_runner.values(program.body, program.outputs, arrays, inputs)


@settings(max_examples=N, suppress_health_check=SLOW)
@given(programs(effects=False))
def compare(program: Program) -> None:
    if not comparable(program):
        return
    theirs = as_jax(program, [jax_runner.jnp.asarray(x) for x in program.inputs])
    for staged in (False, True):
        mine = function_of(program, staged)(*map(ll.constant, program.inputs))
        for i, (x, y) in enumerate(zip(mine, theirs, strict=True)):
            close(x.numpy(), np.asarray(y), f"staged: {staged}, output {i}")
    seen["values as in JAX"] += 1


@settings(max_examples=N, suppress_health_check=SLOW)
@given(programs(effects=False))
def differentiate(program: Program) -> None:
    if not comparable(program) or not program.differentiable():
        return
    floats = [i for i, x in enumerate(program.inputs) if x.dtype.name in FLOATS]
    theirs = jax_runner.gradients(lambda inputs: as_jax(program, inputs), program.inputs, floats)
    for staged in (False, True):
        tensors = [ll.constant(x) for x in program.inputs]
        watched = [tensors[i] for i in floats]
        with ll.GradientTape() as tape:
            tape.watch(watched)
            outputs = [y for y in function_of(program, staged)(*tensors) if y.dtype.name in FLOATS]
        mine = tape.gradient(outputs, watched, unconnected_gradients="zero")
        for i, (x, y) in enumerate(zip(mine, theirs, strict=True)):
            close(x.numpy(), y, f"staged: {staged}, gradient {i}")
    seen["gradients as in JAX"] += 1


@pytest.mark.parametrize("how", [compare, differentiate], ids=["values", "gradients"])
def test_programs_mean_what_jax_makes_of_them(how: Any, record_property: Any) -> None:
    seen.clear()
    how()
    record_property("random programs", dict(seen))
    assert sum(seen.values()) > N // 8
