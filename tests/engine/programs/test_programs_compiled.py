"""Random programs mean the same as programs of XLA, values, effects, draws and gradients; where JAX is installed.

`LIMELIGHT_COMPILED=2000 pytest tests/engine/programs/test_programs_compiled.py` runs thousands: each compiles for a
part of a second. Pytest's summary says how many there were, and how many were refused and ran as a plan.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from limelight.executors import base

sys.path.insert(0, str(Path(__file__).parent))

from drawn import programs  # beside this file
from programs import HALVES, Program
from running import Ways, allows_unknown_sizes

N = int(os.environ.get("LIMELIGHT_COMPILED", "10"))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
seen: Counter[str] = Counter()

pytestmark = [
    pytest.mark.usefixtures("retraces_are_meant"),
    pytest.mark.skipif("xla" not in base.names(), reason="JAX is not installed: pip install 'limelight[xla]'"),
    pytest.mark.slow,  # each program is compiled
    pytest.mark.timeout(1800 + 10 * N),
]


def compiled(ways: Ways, what: str, **how: Any) -> Any:
    """A run by the executor; counts whether it has a program for it."""
    built: list[Any] = []

    class Counting:
        name = "xla"

        @staticmethod
        def build(graph: Any) -> Any:
            built.append(base.get("xla").build(graph))
            return built[0]

    result = ways.executed(Counting, 3, **how)
    seen[f"{what}: {built[0].tier}"] += 1
    return result


@settings(max_examples=N, suppress_health_check=SLOW)
@given(programs())
def compare(program: Program) -> None:
    if not program.dtypes().isdisjoint(HALVES):  # which XLA rounds elsewhere
        return
    ways = Ways(program)
    compiled(ways, "values").same_as(ways.run(staged=True), "xla")
    if allows_unknown_sizes(ways):
        compiled(ways, "of unknown sizes", unknown=True).same_as(ways.run(staged=True), "xla, unknown sizes")


@settings(max_examples=N, suppress_health_check=SLOW)
@given(programs())
def differentiate(program: Program) -> None:
    if not program.differentiable() or not program.dtypes().isdisjoint(HALVES):
        return
    ways = Ways(program)
    compiled(ways, "gradients", slopes=True).same_as(ways.gradients(staged=True), "gradients, xla")


@pytest.mark.parametrize("how", [compare, differentiate], ids=["values", "gradients"])
def test_programs_mean_the_same_compiled(how: Any, record_property: Any) -> None:
    seen.clear()
    how()
    record_property("compiled programs", dict(seen))
    assert any(what.endswith(": xla") for what in seen), seen
