"""Random programs of nested control flow: the same values, gradients, tangents and effects eagerly and staged."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.core import nest as nests

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")

Program = tuple[Any, ...]
"""A chain of steps on a vector: (name, number, programs inside). Every program sees `x`, `w`, and the variable `v`."""

LEAVES = ("tanh", "scale", "shift", "read", "assign", "sum")
NESTS = {"cond": 2, "switch": 3, "while": 1, "scan": 1, "rows": 1, "map": 1, "call": 1, "back": 1}

leaf = st.tuples(st.sampled_from(LEAVES), st.integers(0, 3), st.just(()))


def nest(inside: Any) -> Any:
    chain = st.lists(inside, min_size=1, max_size=2).map(tuple)
    parts = {name: st.tuples(*[chain] * n) for name, n in NESTS.items()}
    return st.sampled_from(sorted(NESTS)).flatmap(lambda name: st.tuples(st.just(name), st.integers(0, 3), parts[name]))


programs = st.lists(st.recursive(leaf, nest, max_leaves=6), min_size=1, max_size=3).map(tuple)


class Machine:
    """Runs programs on tensors."""

    def __init__(self, w: Any, v: Any) -> None:
        self.w = w
        self.v = v

    def run(self, program: Program, x: Any) -> Any:
        for name, number, inside in program:
            x = getattr(self, f"run_{name}")(x, number, inside)
        return x

    def run_tanh(self, x: Any, number: int, inside: Any) -> Any:
        return ll.tanh(x)

    def run_scale(self, x: Any, number: int, inside: Any) -> Any:
        return x * self.w * (0.5 + number / 4)

    def run_shift(self, x: Any, number: int, inside: Any) -> Any:
        return x - (number - 1.5) / 2 + self.w

    def run_read(self, x: Any, number: int, inside: Any) -> Any:
        return ll.sin(x * self.v)

    def run_assign(self, x: Any, number: int, inside: Any) -> Any:
        self.v.assign(ll.tanh(self.v + x * 0.1))
        return x

    def run_sum(self, x: Any, number: int, inside: Any) -> Any:
        return x + ll.cos(ll.sum(x))

    def run_cond(self, x: Any, number: int, inside: Any) -> Any:
        return ll.cond(
            ll.sum(ll.sin(7 * x)) > 0.1, lambda: self.run(inside[0], x), lambda: self.run(inside[1], x * 0.9)
        )

    def run_switch(self, x: Any, number: int, inside: Any) -> Any:
        index = ll.floor(ll.abs(ll.sum(5 * x)) % 3).astype("int32")
        return ll.switch(index, [lambda part=part: self.run(part, x) for part in inside])

    def run_while(self, x: Any, number: int, inside: Any) -> Any:
        more = lambda i, y: ll.logical_and(i < number, ll.sum(ll.abs(y)) < 20)  # noqa: E731
        return ll.while_loop(more, lambda i, y: (i + 1, self.run(inside[0], y)), (0, x))[1]

    def run_scan(self, x: Any, number: int, inside: Any) -> Any:
        last, seen = ll.scan(lambda c, _: (self.run(inside[0], c), ll.sin(c)), x, length=number)
        return last + ll.sum(seen, axis=0)

    def run_rows(self, x: Any, number: int, inside: Any) -> Any:
        rows = x.expand_dims(0) * ll.arange(1, number + 2).astype("float64").expand_dims(1)
        _, seen = ll.scan(
            lambda c, r: (self.run(inside[0], c + r["r"]), c * r["r"]), x * 0, {"r": rows}, reverse=number % 2 == 1
        )
        return ll.tanh(ll.sum(seen, axis=0))

    def run_map(self, x: Any, number: int, inside: Any) -> Any:
        rows = ll.stack([x, x * 0.5, -x][: number + 1])
        return ll.mean(ll.map_fn(lambda r: self.run(inside[0], r), rows), axis=0)

    def run_call(self, x: Any, number: int, inside: Any) -> Any:
        return ll.function(lambda y: self.run(inside[0], y))(x)

    def run_back(self, x: Any, number: int, inside: Any) -> Any:
        return ll.tanh(ll.grad(lambda y: ll.sum(ll.sin(self.run(inside[0], y))))(x))


seen: Counter[str] = Counter()


def note(program: Program) -> None:
    for name, _, inside in program:
        seen[name] += 1
        for part in inside:
            note(part)


def outcome(program: Program, way: str) -> dict[str, Any]:
    """What a program gives: value, gradients, a directional derivative, and what it leaves in the variable."""
    v = ll.Variable(np.array([0.3, -0.4]))
    stage = ll.function if way == "staged" else (lambda f: f)
    f = stage(lambda x, w: ll.sum(Machine(w, v).run(program, x) * ll.constant([1.0, 2.0], dtype="float64")))

    def slopes(x: Any, w: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch([x, w])
            y = f(x, w)
        return y, tape.gradient(y, [x, w, v], unconnected_gradients="zero")

    x, w = ll.constant(np.array([0.7, -0.2])), ll.constant(np.array([1.1, 0.6]))
    found: dict[str, Any] = {}
    found["y"], found["gradients"] = (ll.function(slopes) if way == "staged around" else slopes)(x, w)
    found["v"] = v.read_value()
    v.assign([0.3, -0.4])
    found["tangent"] = ll.jvp(f, (x, w), (x * 3, w))[1]
    return found


@pytest.mark.slow  # hundreds of random programs
@settings(max_examples=40)
@given(programs)
def test_random_control_flow(program: Program) -> None:
    note(program)
    wanted = outcome(program, "eager")
    if not all(np.all(np.isfinite(x.numpy())) for x in nests.leaves_of(wanted)):
        return
    for way in ("staged", "staged around"):
        found = outcome(program, way)
        for key, value in wanted.items():
            for a, b in zip(nests.leaves_of(found[key]), nests.leaves_of(value), strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-7, atol=1e-9, err_msg=f"{way}: {key}")


@pytest.mark.slow  # with the random programs above
def test_the_programs_had_every_kind_of_control_flow() -> None:
    if not seen:
        pytest.skip("the random programs ran in another process")
    assert set(NESTS) <= set(seen)
