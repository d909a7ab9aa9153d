"""Random programs forward, where they agree with reverse, and vectorised, where they agree with a loop."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import limelight as ll

sys.path.insert(0, str(Path(__file__).parent))

from comparing import close
from drawn import programs  # beside this file
from programs import FLOATS, HALVES, Limelight, Program

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
seen: Counter[str] = Counter()

pytestmark = [pytest.mark.usefixtures("retraces_are_meant"), pytest.mark.slow]  # a hundred random programs


def function_of(program: Program, staged: bool) -> tuple[list[Any], Any]:
    """Fresh variables, and the program as a function over them."""
    variables = [ll.Variable(x) for x in program.variables]
    runner = Limelight(variables, staged)

    def run(*inputs: Any) -> Any:
        values = runner.body(program.body, inputs)
        return [values[i] for i in program.outputs]

    return variables, ll.function(run) if staged else run


def like(xs: list[Any], seed: int) -> list[Any]:
    rng = np.random.Generator(np.random.Philox(seed))
    return [ll.constant(rng.uniform(-1, 1, x.shape).astype(x.dtype)) for x in xs]


def products(xs: list[Any], ys: list[Any]) -> np.ndarray:
    """The terms of an inner product, in 64 bits; None counts as zeros."""
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
    with np.errstate(all="ignore"):
        terms = [np.array(x, np.float64).ravel() * np.array(y, np.float64).ravel() for x, y in pairs]
    return np.concatenate([np.zeros(1), *terms])


@settings(max_examples=50, suppress_health_check=SLOW)
@given(programs())
def push_forward(program: Program) -> None:
    if not program.differentiable():
        return
    tensors = [ll.constant(x) for x in program.inputs]
    for staged in (False, True):
        variables, f = function_of(program, staged)
        floats = [x for x in (*tensors, *variables) if x.dtype.name in FLOATS]
        directions = like(floats, 1)
        with ll.ForwardAccumulator(floats, directions) as forward, ll.GradientTape() as tape:
            tape.watch(floats)
            targets = [y for y in f(*tensors) if y.dtype.name in FLOATS]
        weights = like(targets, 2)
        ahead = products(weights, [forward.jvp(y) for y in targets])
        gradients = tape.gradient(targets, floats, output_gradients=weights)
        back = products([None if g is None else g for g in gradients], directions)
        if not (np.isfinite(ahead).all() and np.isfinite(back).all()):
            return
        size = max(np.abs(ahead).sum(), np.abs(back).sum())
        near = 1e-3 if program.dtypes().isdisjoint(HALVES) else 0.1
        assert abs(ahead.sum() - back.sum()) <= near * (1e-3 + size), "staged" if staged else "eager"
        seen["pushed forward"] += 1


@settings(max_examples=50, suppress_health_check=SLOW)
@given(programs(effects=False))
def vectorise(program: Program) -> None:
    rows = [[x, *_others(x)] for x in program.inputs]
    for staged in (False, True):
        _, f = function_of(program, staged)
        V = ll.vectorize(f)
        found = V(*[ll.constant(np.stack(row)) for row in rows])
        for k in range(3):
            wanted = f(*[ll.constant(row[k]) for row in rows])
            for y, x in zip(found, wanted, strict=True):
                mine, theirs = y.numpy()[k], x.numpy()
                close(mine, theirs, f"staged: {staged}, row {k}, looped: {V.looped}")
        seen["vectorised"] += 1
        seen.update(op for op in ("cond", "switch", "while", "scan", "map", "call", "tape") if program.holds(op))


def _others(x: np.ndarray) -> list[np.ndarray]:
    """Two more examples."""
    if x.dtype.name in FLOATS or x.dtype.kind == "c":
        half = np.asarray(0.5, x.dtype)
        return [x * half + half * half, -x]
    return [~x, x] if x.dtype == bool else [x + x.dtype.type(1), x.dtype.type(2) - x]


def test_forward_is_the_transpose_of_reverse(record_property: Any) -> None:
    seen.clear()
    push_forward()
    record_property("random programs", dict(seen))
    assert seen["pushed forward"] > 60


def test_vectorised_as_a_loop(record_property: Any) -> None:
    seen.clear()
    vectorise()
    record_property("random programs", {"vectorised": seen["vectorised"]})
    assert seen["vectorised"] > 60
    assert min(seen[op] for op in ("cond", "switch", "while", "scan", "map", "call", "tape")) > 3, seen
