"""Random programs mean the same out of a file: values, what happens to variables, and gradients.

`LIMELIGHT_PROGRAMS=5000 pytest tests/engine/programs/test_programs_saved.py` runs thousands.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import limelight as ll

sys.path.insert(0, str(Path(__file__).parent))

from drawn import programs  # beside this file
from programs import FLOATS, Program
from running import Result, Ways, allows_unknown_sizes
from test_programs import SLOW, N

seen: Counter[str] = Counter()

pytestmark = [
    pytest.mark.usefixtures("retraces_are_meant"),
    pytest.mark.slow,  # hundreds of random programs, each traced, saved and read again
    pytest.mark.timeout(1800 + 3 * N),
]


def loaded(f: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return ll.load(ll.save(f, f"{folder}/program.ll"))


def slopes(f: Any, tensors: list[Any], variables: list[Any]) -> list[Any]:
    floats = [x for x in (*tensors, *variables) if x.dtype.name in FLOATS]
    with ll.GradientTape() as tape:
        tape.watch(floats)
        targets = [y for y in f(*tensors) if y.dtype.name in FLOATS]
    found: list[Any] = tape.gradient(targets, floats, unconnected_gradients="zero")
    return found


@settings(max_examples=max(N // 4, 20), suppress_health_check=SLOW)
@given(programs())
def compare(program: Program) -> None:
    if program.holds("say"):  # a py_func, which cannot travel
        return
    ways = Ways(program)
    unknown = allows_unknown_sizes(ways)
    _, runner, f = ways.make(True, unknown)
    trace = f.get_concrete_function(*([] if unknown else ways.tensors))
    again = loaded(f)
    used = [x for x in trace.captures if isinstance(x, ll.Variable)]
    seen["programs"] += 1
    seen.update({f"with {op}": 1 for op in ("cond", "while", "scan", "call", "tape", "random") if program.holds(op)})
    runner.generator.reset(7)
    before = [v.numpy() for v in used]
    expected = Result(f(*ways.tensors), used, runner)
    Result(again(*ways.tensors), again.variables, runner).same_as(expected, "loaded")
    for x, values in ((used, before), (again.variables, before)):
        for v, value in zip(x, values, strict=True):
            v.assign(value)
    if program.differentiable() and not program.holds("random"):
        seen["differentiated"] += 1
        wanted = Result(slopes(f, ways.tensors, used), [], runner)
        Result(slopes(again, ways.tensors, again.variables), [], runner).same_as(wanted, "gradients of what was loaded")


def test_programs_mean_the_same_out_of_a_file(record_property: Any) -> None:
    seen.clear()
    compare()
    record_property("random programs", dict(seen))
    assert seen["programs"] > 5
    assert seen["differentiated"]
