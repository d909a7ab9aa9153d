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

from programs import Limelight, Program, programs  # beside this file

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
seen: Counter[str] = Counter()

pytestmark = pytest.mark.usefixtures("retraces_are_meant")


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


@settings(max_examples=150, suppress_health_check=SLOW)
@given(programs())
def test_forward_is_the_transpose_of_reverse(program: Program) -> None:
    if not program.differentiable():
        return
    tensors = [ll.constant(x) for x in program.inputs]
    for staged in (False, True):
        variables, f = function_of(program, staged)
        floats = [x for x in (*tensors, *variables) if x.dtype.kind == "f"]
        directions = like(floats, 1)
        with ll.ForwardAccumulator(floats, directions) as forward, ll.GradientTape() as tape:
            tape.watch(floats)
            targets = [y for y in f(*tensors) if y.dtype.kind == "f"]
        weights = like(targets, 2)
        ahead = products(weights, [forward.jvp(y) for y in targets])
        gradients = tape.gradient(targets, floats, output_gradients=weights)
        back = products([None if g is None else g for g in gradients], directions)
        if not (np.isfinite(ahead).all() and np.isfinite(back).all()):
            return
        size = max(np.abs(ahead).sum(), np.abs(back).sum())
        assert abs(ahead.sum() - back.sum()) <= 1e-3 * (1e-3 + size), "staged" if staged else "eager"
        seen["pushed forward"] += 1


@settings(max_examples=150, suppress_health_check=SLOW)
@given(programs())
def test_vectorised_as_a_loop(program: Program) -> None:
    if program.holds("assign") or not program.inputs:
        return
    rows = [[x, *_others(x)] for x in program.inputs]
    for staged in (False, True):
        _, f = function_of(program, staged)
        V = ll.vectorize(f)
        found = V(*[ll.constant(np.stack(row)) for row in rows])
        for k in range(3):
            wanted = f(*[ll.constant(row[k]) for row in rows])
            for y, x in zip(found, wanted, strict=True):
                mine, theirs = y.numpy()[k], x.numpy()
                assert mine.dtype == theirs.dtype
                finite = np.abs(theirs[np.isfinite(theirs)]) if theirs.dtype.kind == "f" else np.zeros(0)
                near = (1e-4 if mine.dtype == np.float32 else 1e-9) * (1 + (finite.max() if finite.size else 0))
                with np.errstate(all="ignore"):
                    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=near, err_msg=f"{staged} {k} {V.looped}")
        seen["vectorised"] += 1
        seen.update(op for op in ("cond", "while", "call", "tape") if program.holds(op))


def _others(x: np.ndarray) -> list[np.ndarray]:
    """Two more examples."""
    return [(x * 0.5 + 0.25).astype(x.dtype), (-x).astype(x.dtype)] if x.dtype.kind == "f" else [x + 1, 2 - x]


def test_enough_of_them_ran(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\nRandom programs:", ", ".join(f"{n} {what}" for what, n in seen.most_common()))  # noqa: T201
    if not seen:
        pytest.skip("run together with the tests above, whose programs it counts")
    assert seen["pushed forward"] > 60
    assert seen["vectorised"] > 60
