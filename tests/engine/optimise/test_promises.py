"""What each level promises, held for every rule and every pass on programs drawn at random.

Levels 1 and 2 keep every bit: signs of zeros, infinities, NaN (of which there is one here). Level 3 rounds otherwise,
and no infinity and no NaN appears or vanishes: what it gives differs by units in the last place of the largest terms.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.errors import LimelightError
from limelight.executors.plan import plan
from limelight.optimise import algebra, inexact_algebra, optimise, pipeline, simplify, view_algebra
from limelight.staging.tracer import Tracer

sys.path.insert(0, str(Path(__file__).parent))

from applying import bits  # beside this file
from rule_programs import PASSES, RULES, Choice, Operands

DTYPES = (
    *["float32"] * 4,
    *["float64", "complex64", "complex64", "complex128", "float16", "bfloat16", "int32", "int8", "uint8", "int64"],
    *["int64", "uint64", "bool"],
)
FULL = os.environ.get("LIMELIGHT_TESTS") == "full"
EXAMPLES = settings(
    max_examples=int(os.environ.get("LIMELIGHT_EXAMPLES") or (16 if FULL else 3)),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
UNITS = 16
"""Units in the last place of the largest term, or of the result, that level 3 may be off."""

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in"),
    pytest.mark.filterwarnings("ignore:Casting complex values"),
    pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning"),
]


class Traced:
    """A program's graph, traced once for what is known of the sizes."""

    def __init__(self, f: Callable[..., Any], drawn: Operands) -> None:
        with Tracer("program") as tracer:
            result = f(*[tracer.add_input(spec) for spec in drawn.specs])
            self.graph = tracer.finish((result,))
        self.payloads = [*drawn.arrays, *[x._data for x in tracer.captures]]
        self.plain = self.at(0)

    def at(self, level: int) -> np.ndarray:
        """What a level makes of it."""
        with ll.config.optimiser(level=level), np.errstate(all="ignore"):
            return np.asarray(plan.build(optimise(self.graph).graph)(*self.payloads)[0])


def traced(f: Callable[..., Any], drawn: Operands) -> Traced | None:
    """None where it is no program, since it does not run eagerly, or cannot be traced."""
    try:
        with np.errstate(all="ignore"):
            f(*map(ll.constant, drawn.arrays))
        return Traced(f, drawn)
    except (LimelightError, TypeError):
        return None


def rounds_only(got: np.ndarray, wanted: np.ndarray, largest: np.ndarray | float) -> None:
    """Level 3: the same infinities and NaN, and near them otherwise."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, wanted)
        return
    if got.dtype.kind == "c":
        for one, other in ((got.real, wanted.real), (got.imag, wanted.imag)):
            rounds_only(one, other, np.abs(largest))
        return
    one, other = got.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
    infinite = np.isinf(one) | np.isinf(other)
    np.testing.assert_array_equal(one[infinite], other[infinite])
    info: Any = ml_dtypes.finfo(got.dtype)
    finite = np.isfinite(other)
    scale = np.maximum(np.abs(other), np.broadcast_to(np.asarray(largest, np.float64), other.shape))[finite]
    allowed = UNITS * (float(info.eps) * np.nan_to_num(scale) + float(info.smallest_subnormal))
    assert np.all(np.abs(one[finite] - other[finite]) <= allowed), (got, wanted)


def largest_of(*arrays: np.ndarray) -> float:
    """The largest finite magnitude in some arrays."""
    with np.errstate(all="ignore"):
        sizes = [np.abs(x.astype(np.complex128)) for x in arrays if x.size]
        return float(max([np.max(x[np.isfinite(x)], initial=0.0) for x in sizes], default=0.0))


def keeps_promises(f: Callable[..., Any], drawn: Operands, largest: float) -> None:
    program = traced(f, drawn)
    assume(program is not None)
    assert program is not None  # for mypy
    for level in (1, 2):
        found = program.at(level)
        assert bits(found) == bits(program.plain), (level, drawn.arrays, drawn.specs, found, program.plain)
    rounds_only(program.at(3), program.plain, largest)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_keeps_what_levels_promise(rule: Any) -> None:
    @EXAMPLES
    @given(st.data())
    def check(data: Any) -> None:
        f = RULES[rule](Choice(data.draw))
        drawn = Operands(data.draw, DTYPES)
        keeps_promises(f, drawn, largest_of(*drawn.arrays) if rule is inexact_algebra._join_constants else 0.0)

    check()


def of_terms(name: str, f: Callable[..., Any], drawn: Operands) -> float:
    """A bound of the terms of a program's sums: of the products of what is largest in its operands."""
    if name != "stack":
        return 0.0
    one, other = map(largest_of, drawn.arrays)
    count = max([*drawn.arrays[0].shape, *drawn.arrays[1].shape, 1])
    return 60.0 * count * max(1.0, one) * max(1.0, other)


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_keeps_what_levels_promise(name: str) -> None:
    @EXAMPLES
    @given(st.data())
    def check(data: Any) -> None:
        f = PASSES[name](Choice(data.draw))
        drawn = Operands(data.draw, DTYPES if name != "stack" else ("float32", "float64"), alike=name == "stack")
        with np.errstate(all="ignore"):
            keeps_promises(f, drawn, of_terms(name, f, drawn) if name != "simplify" else largest_of(*drawn.arrays))

    check()


def gradient_of(f: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(x: Any, y: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            z = f(x, y)
        found = tape.gradient(z, x)
        return ll.zeros_like(x) if found is None else found

    return gradient


@pytest.mark.slow  # staged four times for each example
@pytest.mark.parametrize("name", [*PASSES, *[rule.__name__ for rule in RULES]])
def test_gradients_keep_what_levels_promise(name: str) -> None:
    make = PASSES.get(name) or next(made for rule, made in RULES.items() if rule.__name__ == name)

    @EXAMPLES
    @given(st.data())
    def check(data: Any) -> None:
        f = gradient_of(make(Choice(data.draw)))
        drawn = Operands(data.draw, ("float32", "float64", "complex64"), alike=name == "stack")
        with np.errstate(all="ignore"):
            keeps_promises(f, drawn, of_terms("stack", f, drawn))

    check()


def test_every_rule_and_every_pass_has_programs() -> None:
    tables = (algebra.EXACT, view_algebra.EXACT, inexact_algebra.INEXACT)
    assert set(RULES) == {rule for table in tables for rules in table.values() for rule in rules}
    assert [*PASSES] == [*pipeline.names()]


class Found(Exception):  # noqa: N818  # no error
    """Ends a search: Hypothesis would draw on."""


@pytest.mark.slow  # many examples until something is found
@pytest.mark.parametrize("wanted", [*RULES, *PASSES], ids=lambda one: getattr(one, "__name__", one))
def test_the_programs_give_it_something_to_do(wanted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or what is above would say nothing of it."""
    found: set[Any] = set()

    def noting(rule: Any) -> Any:
        def noted(*operands: Any) -> Any:
            replacement = rule(*operands)
            found.update([rule] if replacement is not None else [])
            return replacement

        return noted

    watched = {op: [noting(rule) for rule in rules] for op, rules in simplify._INEXACT.items()}
    monkeypatch.setattr(simplify, "_INEXACT", watched)

    @settings(EXAMPLES, max_examples=400, database=None, phases=[Phase.generate])
    @given(st.data())
    def draw(data: Any) -> None:
        f = (RULES.get(wanted) or PASSES[wanted])(Choice(data.draw))
        drawn = Operands(data.draw, ("float32", "float32", "int8"), alike=wanted == "stack")
        program = traced(f, drawn)
        if program is None:
            return
        found.update(record.name for record in optimise(program.graph, 3).records if record.changes)
        if wanted in found:
            raise Found

    with pytest.raises(Found):
        draw()
