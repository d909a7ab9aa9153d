"""One variable is one value in a trace, by whichever way the code reaches it: random programs, staged and not."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll

N = 3
WAYS = ("argument", "list", "dictionary", "closure", "module", "attribute", "referred to")


class Holder:
    """An object that is no module."""


class World:
    """Variables, all that holds them, and a function that runs a program on them."""

    def __init__(self, program: list[Any]) -> None:
        self.vs = [ll.Variable(1.0 + i, name=f"v{i}") for i in range(N)]
        self.module, self.holder = ll.Module(), Holder()
        self.module.held, self.holder.held = list(self.vs), list(self.vs)  # type: ignore[attr-defined]
        self.references = [v.ref() for v in self.vs]
        self.optimiser = ll.optim.Momentum(0.25)
        self.inner = ll.function(lambda v, i: v * 2.0 + self.vs[i])
        self.program = program

    def step(self, x: Any, one: Any, many: Any, named: Any, holder: Any) -> Any:
        total = x
        for action, way, i, other, j in self.program:
            v, w = [self.reached(*at, one, many, named, holder) for at in ((way, i), (other, j))]
            total = getattr(self, action)(total, v, w, i)
        return total

    def reached(self, way: str, i: int, one: Any, many: Any, named: Any, holder: Any) -> Any:
        match way:
            case "argument":
                return one
            case "list":
                return many[i]
            case "dictionary":
                return named[str(i)]
            case "closure":
                return self.vs[i]
            case "module":
                return self.module.held[i]
            case "attribute":
                return holder.held[i]
        return self.references[i].deref()

    def reads(self, total: Any, v: Any, w: Any, i: int) -> Any:
        return total * 0.5 + v * w

    def assigns(self, total: Any, v: Any, w: Any, i: int) -> Any:
        v.assign(w * 0.5 + ll.tanh(total))
        return total + w

    def adds(self, total: Any, v: Any, w: Any, i: int) -> Any:
        return total + v.assign_add(0.5) * w

    def differentiates(self, total: Any, v: Any, w: Any, i: int) -> Any:
        with ll.GradientTape() as tape:
            loss = v * v * 0.25 + total
        gradient = tape.gradient(loss, w)
        return total - 1.0 if gradient is None else total * 0.5 + gradient

    def trains(self, total: Any, v: Any, w: Any, i: int) -> Any:
        with ll.GradientTape() as tape:
            loss = ll.sin(v) * w
        self.optimiser.apply(tape.gradient(loss, [w]), [w])
        return total + loss

    def branches(self, total: Any, v: Any, w: Any, i: int) -> Any:
        return ll.cond(total > 0, lambda: v.assign_add(0.25) + w, lambda: w.assign_sub(0.25) * v)

    def calls(self, total: Any, v: Any, w: Any, i: int) -> Any:
        return ll.tanh(total) + self.inner(v, i) * self.inner(w, i)

    def repeats(self, total: Any, v: Any, w: Any, i: int) -> Any:
        return ll.fori_loop(0, 2, lambda k, t: t * 0.5 + v * w.assign_add(0.125), total)


ACTIONS = ("reads", "assigns", "adds", "differentiates", "trains", "branches", "calls", "repeats")
places = st.integers(0, N - 1)
statements = st.tuples(st.sampled_from(ACTIONS), st.sampled_from(WAYS), places, st.sampled_from(WAYS), places)
calls = st.tuples(places, st.lists(places, min_size=N, max_size=N), st.lists(places, min_size=N, max_size=N))


def outcome(program: list[Any], sequence: list[Any], staged: bool) -> tuple[list[Any], Any]:
    world = World(program)
    step = ll.function(world.step) if staged else world.step
    seen = []
    for one, many, named in sequence:
        dictionary = {str(k): world.vs[i] for k, i in enumerate(named)}
        y = step(ll.constant(0.5), world.vs[one], [world.vs[i] for i in many], dictionary, world.holder)
        seen.append([y.item(), *[v.numpy().item() for v in world.vs]])
    return seen, step


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # each program is another function
@given(st.lists(statements, min_size=1, max_size=4), st.lists(calls, min_size=1, max_size=3))
def test_a_staged_program_is_the_eager_one(program: list[Any], sequence: list[Any]) -> None:
    eager, _ = outcome(program, sequence * 3, staged=False)
    staged, step = outcome(program, sequence * 3, staged=True)
    for wanted, got in zip(eager, staged, strict=True):
        assert got == pytest.approx(wanted, rel=1e-3, abs=1e-4, nan_ok=True)
    history = step.trace_cache.history
    assert step.trace_count == history.made <= 2 * len(sequence), "no trace is made twice"


@pytest.mark.parametrize(
    "body",
    [
        lambda vs, x: {v.name: v * x for v in vs},
        lambda vs, x: [v * x for v in sorted(vs, key=operator.attrgetter("name"))],
        lambda vs, x: [v * x * getattr(v, "scale", 1.0) for v in vs],
    ],
)
def test_what_a_variable_is_called_and_has_attached_is_its_own(body):
    a, b, c = [ll.Variable(value, name=name) for value, name in ((1.0, "a"), (2.0, "b"), (3.0, "c"))]
    a.scale, b.scale = 10.0, 20.0
    f, x = ll.function(body), ll.constant(2.0)
    for variables in ([a, b], [b, a], [a, c], [c, a], [a, b]):
        plain, staged = [ll.tree.map(lambda y: y.item(), g(variables, x)) for g in (body, f)]
        assert staged == plain


def test_a_name_that_only_the_engine_reads_makes_no_trace():
    f = ll.function(lambda v, x: (v.assign_add(x), repr(v) and v * x)[1])
    assert [f(ll.Variable(n, name=f"v{n:.0f}"), ll.constant(2.0)).item() for n in (1.0, 2.0)] == [6.0, 8.0]
    assert f.trace_count == 1
