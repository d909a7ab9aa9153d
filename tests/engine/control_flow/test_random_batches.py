"""Random programs of nested control flow under `vectorize`: as each example alone, derivatives of all kinds included.

Examples choose their own branches and numbers of steps, 0 included, and steps overwrite loop variables by others, by
what they capture and by constants: which gradients there are depends on how many steps an example makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.core import nest as nests

pytestmark = [
    pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning"),
    pytest.mark.filterwarnings("ignore:.*does input or output:RuntimeWarning"),
]

Program = tuple[Any, ...]
"""A chain of steps on two loop variables: (name, number, programs inside). Every program sees `x`, `w` and `n`."""

LEAVES = ("tanh", "swap", "overwrite", "forget", "mix", "sum", "custom", "python")
NESTS = {"while": 1, "scan": 1, "rows": 1, "cond": 2, "switch": 3, "call": 1, "again": 1, "back": 1}

leaf = st.tuples(st.sampled_from(LEAVES), st.integers(0, 2), st.just(()))


def nest(inside: Any) -> Any:
    chain = st.lists(inside, min_size=1, max_size=2).map(tuple)
    parts = {name: st.tuples(*[chain] * n) for name, n in NESTS.items()}
    return st.sampled_from(sorted(NESTS)).flatmap(lambda name: st.tuples(st.just(name), st.integers(0, 2), parts[name]))


programs = st.lists(st.recursive(leaf, nest, max_leaves=5), min_size=1, max_size=3).map(tuple)
loops = st.lists(programs, min_size=1, max_size=2).flatmap(
    lambda inside: st.integers(0, 2).map(lambda k: tuple([("while", k, (program,)) for program in inside]))
)


@ll.custom_gradient
def doubled_slope(a: Any) -> Any:
    return ll.sin(a), lambda g: 2.0 * g * ll.cos(a)


def in_numpy(a: Any, spec: Any) -> Any:
    return ll.py_func(ll.sin, [a], spec)


class Machine:
    """Runs programs for one example: `x` is its own, `w` is shared, `n` is its integer."""

    def __init__(self, x: Any, w: Any, n: Any) -> None:
        self.x, self.w, self.n = x, w, n

    def run(self, program: Program, ab: Any) -> Any:
        for name, number, inside in program:
            ab = getattr(self, f"run_{name}")(*ab, number, inside)
        return ab

    def run_tanh(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return ll.tanh(a), b * (0.5 + number)

    def run_swap(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return b, a

    def run_overwrite(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return (self.x, self.w, self.x * self.w)[number], b

    def run_forget(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return ll.full_like(a, 0.25 * number), b

    def run_mix(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return a * ll.cos(b) + self.w, b + ll.sin(a)

    def run_sum(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return a + ll.cos(ll.sum(b)), b

    def run_custom(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return doubled_slope(a), b

    def run_python(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return a, in_numpy(b, a.spec)

    def run_while(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        more = lambda i, ab: i < (self.n + number) % 3  # noqa: E731
        return ll.while_loop(more, lambda i, ab: (i + 1, self.run(inside[0], ab)), (0, (a, b)))[1]

    def run_scan(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return ll.scan(lambda ab, _: (self.run(inside[0], ab), None), (a, b), length=number)[0]

    def run_rows(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        def step(ab: Any, r: Any) -> Any:
            return self.run(inside[0], (ab[0] + r, ab[1])), ab[0] * r

        last, seen = ll.scan(step, (a, b), ll.stack([a, self.x, b * self.w]), reverse=number == 1)
        return last[0] + ll.sum(seen, axis=0), last[1]

    def run_cond(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        pred = self.n % 2 == number if number < 2 else ll.sum(a) > 0.3
        return ll.cond(pred, lambda: self.run(inside[0], (a, b)), lambda: self.run(inside[1], (a, b)))

    def run_switch(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return ll.switch((self.n + number) % 3, [lambda part=part: self.run(part, (a, b)) for part in inside])

    def run_call(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        return ll.function(lambda ab, x, w, n: Machine(x, w, n).run(inside[0], ab))((a, b), self.x, self.w, self.n)

    def run_again(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        again = ll.recompute_grad(lambda a, b, x, w, n: Machine(x, w, n).run(inside[0], (a, b)))
        return again(a, b, self.x, self.w, self.n)

    def run_back(self, a: Any, b: Any, number: int, inside: Any) -> Any:
        def length(a: Any, b: Any) -> Any:
            last = self.run(inside[0], (a, b))
            return ll.sum(ll.sin(last[0]) + last[1])

        return ll.grad(length, argnums=(0, 1))(a, b)


def of(program: Program) -> Callable[..., Any]:
    """What one example gives, a number."""

    def f(x: Any, w: Any, n: Any) -> Any:
        a, b = Machine(x, w, n).run(program, (x * 2.0, ll.cos(x)))
        return ll.sum(a * 0.7 + ll.sin(b))

    return f


def tangent_of(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, w, n: ll.jvp(lambda x, w: f(x, w, n), (x, w), (ll.cos(x), ll.ones_like(w)))[1]


def both(f: Callable[..., Any]) -> Callable[..., Any]:
    return ll.grad(f, argnums=(0, 1))


def slope_of_slope(f: Callable[..., Any]) -> Callable[..., Any]:
    return both(lambda x, w, n: sum(ll.sum(ll.sin(g)) for g in both(f)(x, w, n)))


KINDS: dict[str, Callable[..., Any]] = {
    "value": lambda f: f,
    "gradient": both,
    "tangent": tangent_of,
    "second order": slope_of_slope,
}


def around(f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of each example's own `x`, by a tape around the batch."""

    def slopes(x: Any, w: Any, n: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = ll.sum(ll.vectorize(f, in_axes=(0, None, 0))(x, w, n))
        return tape.gradient(y, x, unconnected_gradients="zero")

    return slopes


def agree(got: Any, want: Any, what: str) -> None:
    """Up to rounding, in units of the largest element: sums are made in another order."""
    for a, b in zip(nests.leaves_of(got), nests.leaves_of(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), what
        rtol, atol = (1e-6, 1e-8) if b.dtype == ll.float64 else (1e-3, 1e-4)
        size = float(np.max(np.abs(b.numpy()), initial=1.0))
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=atol * size, err_msg=what)


def check(
    program: Program, shape: tuple[int, ...], counts: list[int], kinds: Any = tuple(KINDS), dtype: str = "float64"
) -> None:
    random = np.random.default_rng(len(counts))
    x = ll.constant(random.uniform(-1, 1, (len(counts), *shape)), dtype)
    w, n = ll.constant(random.uniform(-1, 1, shape), dtype), ll.constant(counts)
    f, axes = of(program), (0, None, 0)

    def each(g: Callable[..., Any]) -> Any:
        rows = [g(x[i], w, n[i]) for i in range(len(counts))]
        return nests.map_structure(lambda *leaves: ll.stack(leaves), *rows)

    for kind in kinds:
        wanted, derive = each(KINDS[kind](f)), KINDS[kind]
        if not all(np.all(np.isfinite(leaf.numpy())) for leaf in nests.leaves_of(wanted)):
            return
        agree(ll.vectorize(derive(f), in_axes=axes)(x, w, n), wanted, kind)
        agree(ll.function(ll.vectorize(derive(f), in_axes=axes))(x, w, n), wanted, f"{kind}, staged")
        agree(ll.vectorize(derive(ll.function(f)), in_axes=axes)(x, w, n), wanted, f"{kind}, of a staged function")
    wanted = each(ll.grad(f))
    agree(around(f)(x, w, n), wanted, "a tape around")
    agree(ll.function(around(f))(x, w, n), wanted, "a tape around, staged")


@pytest.mark.slow  # random programs, each in fourteen ways
@settings(max_examples=8)
@given(
    loops | programs,
    st.sampled_from([(), (2,), (2, 1)]),
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.sampled_from(["float64", "float32"]),
)
def test_random_programs(program: Program, shape: tuple[int, ...], counts: list[int], dtype: str) -> None:
    check(program, shape, counts, dtype=dtype)


PYTHON: Program = ("python", 0, ())
INSIDE = (("while", 0, ((PYTHON, ("mix", 0, ())),)),)
"""Examples make different numbers of steps with an effect: they run one by one, and keep residuals of unlike shapes."""
NESTED = {
    "alone": INSIDE,
    "recomputed": (("again", 0, (INSIDE,)),),
    "called": (("call", 0, (INSIDE,)),),
    "scanned": (("rows", 1, (INSIDE,)),),
    "in a loop": (("while", 1, (INSIDE,)),),
    "in a branch": (("switch", 1, (INSIDE, (PYTHON,), (("swap", 0, ()),))),),
    "differentiated": (("back", 0, (INSIDE,)),),
    "a branch": (("cond", 0, ((PYTHON,), (("tanh", 0, ()),))),),
}


@pytest.mark.slow  # each in fourteen ways
@pytest.mark.parametrize("program", NESTED.values(), ids=NESTED)
def test_examples_with_effects_differ(program: Program) -> None:
    check(program, (2,), [0, 1, 2])


def test_residuals_of_unlike_shapes_quickly() -> None:
    check((("while", 0, ((PYTHON,),)),), (), [0, 2], ("gradient",))
