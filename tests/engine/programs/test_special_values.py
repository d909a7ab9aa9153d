"""Random programs on NaN, infinities, zeros of both signs, subnormals and the extremes of integers.

Staged at each level they give what they give eagerly: to the last bit up to level 2, infinities and NaN in the same
places at level 3. `LIMELIGHT_PROGRAMS=3000 pytest tests/engine/programs/test_special_values.py` runs thousands.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import limelight as ll

N = int(os.environ.get("LIMELIGHT_PROGRAMS", "24"))
UNARY = [
    "abs",
    "sign",
    "exp",
    "expm1",
    "exp2",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "square",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "floor",
    "ceil",
    "round",
    "trunc",
    "negative",
    "isnan",
    "isfinite",
    "isinf",
    "signbit",
    "erf",
    "lgamma",
    "digamma",
    "rsqrt",
    "nn.sigmoid",
    "nn.relu",
    "nn.softplus",
    "nn.silu",
    "nn.elu",
    "nn.gelu",
    "nn.log_sigmoid",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "pow",
    "atan2",
    "hypot",
    "logaddexp",
    "remainder",
    "floor_divide",
    "copysign",
    "nextafter",
    "less",
    "equal",
    "greater_equal",
    "not_equal",
    "xlogy",
]
OF_INTEGERS = [
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "floor_divide",
    "remainder",
    "less",
    "equal",
]
REDUCTIONS = [
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "var",
    "std",
    "logsumexp",
    "any",
    "all",
    "cumsum",
    "cumprod",
    "argmax",
    "argmin",
    "sort",
    "median",
    "count_nonzero",
]
BESIDE: dict[str, Callable[[Any, float], Any]] = {
    "x + c": lambda x, c: x + c,
    "x - c": lambda x, c: x - c,
    "c - x": lambda x, c: c - x,
    "x * c": lambda x, c: x * c,
    "x / c": lambda x, c: x / c,
    "c / x": lambda x, c: c / x,
    "x ** c": lambda x, c: x**c,
    "c ** x": lambda x, c: c**x,
}
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, np.nan, 3.0, -2.0, 1e38)


class Step(NamedTuple):
    """One op on earlier values."""

    kind: str
    name: str
    operands: tuple[int, int]
    number: float

    def run(self, values: list[Any]) -> Any:
        x, y = (values[i] for i in self.operands)
        if self.kind == "beside":
            return BESIDE[self.name](x, self.number)
        if self.kind == "where":
            return ll.where(x > y, x, y + x)
        function = getattr(ll.nn, self.name[3:]) if self.name.startswith("nn.") else getattr(ll, self.name)
        return function(x, axis=0) if self.kind == "reduce" else function(x, y) if self.kind == "two" else function(x)


def specials(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    if np.dtype(dtype).kind == "f":
        limits = np.finfo(dtype)
        ends = [limits.max, limits.tiny, limits.smallest_subnormal, limits.eps, 1 + limits.eps, 2.0, 0.5, 100.0, 1e-3]
        pool = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, -3.0, *ends, *[-x for x in ends[:3]]]
    else:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        pool = [low, low + 1, high, high - 1, 0, 1, 2, 7, *([-1, -7] if low else [])]
    return np.array(pool, dtype)[rng.integers(len(pool), size=shape)]


def drawn(rng: np.random.Generator, integers: bool) -> list[Step]:
    steps = []
    for k in range(int(rng.integers(2, 9))):
        kind = "two" if integers else str(rng.choice(["one", "two", "beside", "reduce", "where"]))
        names = {"one": UNARY, "two": OF_INTEGERS if integers else BINARY, "beside": [*BESIDE], "reduce": REDUCTIONS}
        name = str(rng.choice(names.get(kind, ["where"])))
        operands = (int(rng.integers(k + 2)), int(rng.integers(k + 2)))
        steps.append(Step(kind, name, operands, NUMBERS[rng.integers(len(NUMBERS))]))
    return steps


def results(steps: list[Step], *inputs: Any) -> list[Any]:
    values = list(inputs)
    for step in steps:
        y = step.run(values)
        values.append(ll.broadcast_to(ll.astype(y, inputs[0].dtype), inputs[0].shape))
    return values[len(inputs) :]


def agree(a: Any, b: Any, to_the_bit: bool) -> bool:
    if a.dtype.kind != "f":
        return bool((a == b).all())
    if not to_the_bit:
        return bool(((np.isnan(a) == np.isnan(b)) & (np.isinf(a) == np.isinf(b))).all())
    return bool((np.isnan(a) & np.isnan(b) | (a == b) & (np.signbit(a) == np.signbit(b))).all())


@pytest.mark.slow
@pytest.mark.usefixtures("retraces_are_meant")
@pytest.mark.timeout(600 + N)
@pytest.mark.filterwarnings("ignore")  # NumPy's, of casts of NaN
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_staged_programs_on_special_values(dtype: str) -> None:
    for seed in range(max(N // 5, 1)):
        rng = np.random.default_rng(seed)
        inputs = [ll.constant(specials(rng, dtype, (3, 4))) for _ in range(2)]
        steps = drawn(rng, np.dtype(dtype).kind != "f")
        eager = [y.numpy() for y in results(steps, *inputs)]
        for level in range(4):
            with ll.config.optimiser(level):
                staged = ll.function(lambda *xs, steps=steps: results(steps, *xs))(*inputs)
            wrong = [
                step for step, a, b in zip(steps, eager, staged, strict=True) if not agree(a, b.numpy(), level < 3)
            ]
            assert not wrong, (seed, level, steps)
