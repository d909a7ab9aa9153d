"""What `recompute_grad` runs again reads variables as they were, wherever it reads them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll

Function = Callable[..., Any]
again = ll.recompute_grad


def same(f: Function) -> Function:
    return f


class Model:
    """A trainable and a frozen variable, and functions that read them in each way that there is."""

    def __init__(self) -> None:
        self.u = ll.Variable(np.array([0.6, 0.2]))
        self.n = ll.Variable(np.array([1.1, 0.7]), trainable=False)
        self.called = ll.function(self.plain)

    def plain(self, x: Any) -> Any:
        return ll.sin(x * self.n + self.u * x)

    def given(self, x: Any, inner: Function) -> Any:
        return inner(lambda v, q: ll.sin(q * v))(self.u, x)

    def call(self, x: Any, inner: Function) -> Any:
        return self.called(x) + inner(self.called)(x)

    def cond(self, x: Any, inner: Function) -> Any:
        return ll.cond(ll.sum(x) > -9.0, lambda: inner(self.plain)(x), lambda: x)

    def switch(self, x: Any, inner: Function) -> Any:
        return ll.switch(ll.astype(ll.sum(x) * 0.0 + 1.0, ll.int32), [lambda: x, lambda: inner(self.plain)(x)])

    def while_loop(self, x: Any, inner: Function) -> Any:
        return ll.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, inner(self.plain)(a)), (ll.constant(0), x))[1]

    def scan(self, x: Any, inner: Function) -> Any:
        return ll.scan(lambda c, _: (inner(self.plain)(c), c * self.u), x, length=2)[1]

    def branch_in_scan(self, x: Any, inner: Function) -> Any:
        step = lambda c: ll.cond(ll.sum(c) > -9.0, lambda: inner(self.called)(c), lambda: c)  # noqa: E731
        return ll.scan(lambda c, _: (step(c), c), x, length=2)[1]

    def map_fn(self, x: Any, inner: Function) -> Any:
        return ll.map_fn(inner(self.plain), ll.stack([x, x]))

    def vectorize(self, x: Any, inner: Function) -> Any:
        step = lambda r: ll.scan(lambda c, _: (inner(self.plain)(c), c), r, length=2)[1]  # noqa: E731
        return ll.vectorize(step)(ll.stack([x, x]))

    def vectorize_assigned(self, x: Any, inner: Function) -> Any:
        def step(r: Any) -> Any:
            before = self.plain(r)
            self.u.assign(self.u * 2.0)
            return before * self.u

        return ll.vectorize(inner(step))(ll.stack([x, x * 2.0]))

    def gradient_inside(self, x: Any, inner: Function) -> Any:
        slope = ll.grad(lambda q: ll.sum(inner(self.called)(q) * q))
        return ll.scan(lambda c, _: (slope(c), c), x, length=2)[1]

    def custom_gradient(self, x: Any, inner: Function) -> Any:
        """Whose rule reads a variable, which is another one by then: the rule is Python code, run later."""

        @ll.custom_gradient
        def f(q: Any) -> Any:
            return self.plain(q), lambda dy, variables=None: (dy * self.u * q, [dy for _ in variables])

        return inner(ll.function(f))(x)

    def assigned_in_scan(self, x: Any, inner: Function) -> Any:
        def step(c: Any) -> Any:
            before = self.plain(c)
            self.u.assign(self.u * 2.0)
            return before * self.plain(c)

        return ll.scan(lambda c, _: (inner(step)(c), c), x, length=2)[1]


WAYS = sorted(name for name, way in vars(Model).items() if callable(way) and name not in ("__init__", "plain"))


def gradients(way: str, outer: Function, inner: Function, stage: Function, order: int) -> list[Any]:
    model = Model()
    recomputed = outer(lambda x: getattr(model, way)(x, inner))

    @stage
    def loss(x: Any) -> Any:
        y = ll.sum(recomputed(x))
        model.u.assign(model.u * 5.0)
        model.n.assign(model.n * 3.0)
        return y

    x = ll.constant([0.7, -0.2], "float64")
    with ll.GradientTape() as second:
        second.watch(x)
        with ll.GradientTape() as first:
            first.watch(x)
            z = y = loss(x)
        model.u.assign(model.u + 1.0)
        if order == 2:
            z = ll.sum(first.gradient(y, x) ** 2) + y
    found = (first if order == 1 else second).gradient(z, [x, model.u])
    return [*found, model.u.read_value(), model.n.read_value()]


@pytest.mark.slow  # collects garbage in each of its many cases
@pytest.mark.usefixtures("retraces_are_meant")
@pytest.mark.parametrize("stage", [same, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize("way", WAYS)
def test_variables_that_have_been_assigned_to(way: str, stage: Function) -> None:
    for order in (1, 2):
        wanted = gradients(way, same, same, same, order)
        for outer, inner in ((again, same), (same, again), (again, again)):
            found = gradients(way, outer, inner, stage, order)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


def test_a_scan_keeps_a_weight_that_it_recomputes_with_once() -> None:
    w = ll.Variable(np.eye(100))
    F = ll.function(lambda x: ll.scan(lambda c, _: (again(lambda q: ll.tanh(q @ w))(c), None), x, length=50)[0])
    with ll.GradientTape() as tape:
        tape.watch(x := ll.ones((1, 100), dtype="float64"))
        F(x)
    assert tape.saved_bytes < 2 * w.numpy().nbytes + 50 * 2 * x.nbytes


def test_a_function_that_does_something_else_when_it_is_run_again() -> None:
    v, x, calls = ll.Variable(2.0), ll.constant(3.0), itertools.count()
    quiet, writing = ll.function(lambda x: x * v), ll.function(lambda x: (x * v, v.assign_add(1.0))[0])

    def moody(x: Any) -> Any:
        return (writing if next(calls) else quiet)(x)

    with ll.GradientTape() as tape:
        tape.watch(x)
        y = again(moody)(x)
    with pytest.raises(ll.errors.GradientError, match="call now changes a variable that it only read"):
        tape.gradient(y, x)


@pytest.mark.usefixtures("retraces_are_meant")
@pytest.mark.filterwarnings("ignore:gradient.. of a persistent tape inside its own block")
@pytest.mark.parametrize("way", ["call", "cond", "scan"])
def test_a_persistent_tape_that_runs_a_call_once_more_gives_variables_the_values_that_they_had(way: str) -> None:
    found = []
    for stage in (same, ll.function):
        model, x = Model(), ll.constant([0.7, -0.2], "float64")
        f = stage(lambda x, model=model: ll.sin(getattr(model, way)(x, same)))
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
            slopes = tape.gradient(y, x)
            curves = tape.gradient(slopes, [x, model.u])
        model.u.assign(model.u * 5.0)
        found.append([*tape.gradient(slopes, [x, model.u]), tape.gradient(curves[0], model.u)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


def test_the_second_order_of_a_py_func_runs_it_again_on_variables_as_they_were() -> None:
    v, n, x = ll.Variable(2.0, trainable=False), ll.Variable(1.0, trainable=False), ll.constant(3.0)

    def host(t: Any) -> Any:
        n.assign_add(1.0)
        return t * t * v * n

    F = ll.function(lambda x: ll.py_func(host, [x], ll.TensorSpec((), "float32")))
    with ll.GradientTape() as second:
        second.watch(x)
        with ll.GradientTape() as first:
            first.watch(x)
            y = F(x)
        v.assign(50.0)
        n.assign(70.0)
        slope = first.gradient(y, x)
    assert (y.item(), slope.item(), second.gradient(slope, x).item()) == (36.0, 24.0, 8.0)
    assert (v.item(), n.item()) == (50.0, 70.0)
