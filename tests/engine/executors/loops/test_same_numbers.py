"""Every case of every op, and its gradient: tables find the plan's numbers to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES
from opcase import FULL, Case, call_of, each, one_of_each, op_of
from ways import _traced

import limelight as ll
from limelight.core import dtypes
from limelight.core.tensor import wrap
from limelight.errors import LimelightError
from limelight.executors.loops import loops, stretch
from limelight.executors.plan import plan


@pytest.fixture(autouse=True)
def single_instructions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretch, "FEWEST", 1)


def special(array: np.ndarray) -> np.ndarray:
    """The same with zeros of both signs, infinities and NaN among the numbers."""
    if array.dtype.kind not in "fc":
        return array
    array = array.copy()
    flat = array.reshape(-1)
    for start, value in enumerate((-0.0, np.inf, np.nan, 0.0, -np.inf)):
        flat[start + 1 :: 7] = value
    return array


def column_major(array: np.ndarray) -> np.ndarray:
    return np.array(array, order="F")


def bits(payload: Any) -> tuple[Any, ...]:
    """Dtype, shape and bytes; of a NaN the sign is left out, which depends on where in memory complex numbers lie."""
    array = np.array(payload)
    dtype = array.dtype
    if dtype.kind in "fc":
        parts = array.reshape(-1).view(f"f{dtype.itemsize // 2}" if dtype.kind == "c" else dtype)
        parts[np.isnan(parts)] = np.nan
    return dtype, array.shape, array.tobytes()


def with_gradient(case: Case, tensors: list[Any]) -> Any:
    def function(*xs: Any) -> Any:
        watched = [x for x in xs if dtypes.is_inexact(x.dtype)]
        with ll.GradientTape() as tape:
            tape.watch(watched)
            found = case.call(*xs)
        results = found if isinstance(found, tuple) else (found,)
        targets = [x for x in results if dtypes.is_inexact(x.dtype)]
        slopes = tape.gradient(targets, watched) if targets and watched else []
        return (*results, *[slope for slope in slopes if isinstance(slope, ll.Tensor)])

    return function


@each([(case,) for case in one_of_each(CASES, call_of if FULL else op_of)])
def test_bits_of_an_op_and_its_gradient(case: Case) -> None:
    for dtype in case.tried:
        arrays = case.arrays(dtype)
        function = with_gradient(case, arrays)
        try:
            graph, payloads, _ = _traced(function, [wrap(x) for x in arrays])
        except LimelightError:
            function = case.call
            graph, payloads, _ = _traced(function, [wrap(x) for x in arrays])
        if len(payloads) > len(arrays):
            continue  # it draws, and a run changes the generator
        by_plan, by_loops = plan.build(graph), loops.build(graph)
        for change in (np.array, special, column_major):
            given = [change(x) for x in payloads]
            assert outcome(by_loops, given) == outcome(by_plan, given), f"{dtype}, {change.__name__}"


def outcome(run: Any, payloads: list[Any]) -> Any:
    """The bits of all results, or what the run raises."""
    try:
        with np.errstate(all="ignore"):
            return [bits(x) for x in run(*payloads)]
    except LimelightError as error:  # a singular matrix, say
        return str(error)
