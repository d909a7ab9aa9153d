"""`vectorize` through staged functions and control flow, in every order with staging and differentiation."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight import batching

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every program is staged anew

inner = ll.function(lambda a, b: ll.exp(a * b) / (1 + b * b))


def repeat(until, body):
    def run(x, y):
        return ll.while_loop(until(x), lambda i, a: (i + 1, body(a, x)), (ll.constant(0), y))[1]

    return run


PROGRAMS = {
    "ops": lambda x, y: ll.sin(x * y),
    "calls": lambda x, y: inner(x, y) * inner(y, x) + inner(x, x),
    "cond, by a batch": lambda x, y: ll.cond(ll.sum(x) > 0, lambda: x * x * y, lambda: ll.sin(y) + 0 * x),
    "cond, shared": lambda x, y: ll.cond(ll.constant(3) > 0, lambda: x * y, lambda: y),
    "while, counted": repeat(lambda x: lambda i, a: i < 3, lambda a, x: a * x + ll.sin(a)),
    "while, by a batch": repeat(
        lambda x: lambda i, a: ll.sum(a * a) < 20, lambda a, x: a * (ll.abs(x) + 1) + ll.sin(a) * 0.1
    ),
    "while, detached": lambda x, y: (
        x
        * ll.while_loop(
            lambda i, a: ll.sum(a * a) < 9, lambda i, a: (i + 1, a * 1.5 + x), (ll.constant(0), y), back_prop=False
        )[1]
    ),
    "py_func": lambda x, y: ll.py_func(lambda a, b: a * ll.sin(b) * a, [x, y], ll.TensorSpec((3,), "float64")) * x,
}


def draw(n, seed=1):
    rng = np.random.Generator(np.random.Philox(seed))
    return ll.constant(rng.uniform(-1, 1, (n, 3))), ll.constant(rng.uniform(-1, 1, (n, 3)))


def by_loop(f, xs, ys):
    return np.stack([f(x, y).numpy() for x, y in zip(xs, ys, strict=True)])


@pytest.fixture(params=PROGRAMS.values(), ids=PROGRAMS)
def f(request):
    return request.param


def gradient(f):
    return ll.grad(lambda x, y: ll.sum(f(x, y) * f(x, y)))


def hessian(f):
    return ll.hessian(lambda x, y: ll.sum(f(x, y)))


@pytest.mark.slow  # each nesting is staged
@pytest.mark.parametrize("derive", [lambda f: f, gradient, hessian], ids=["value", "gradient", "hessian"])
def test_staging_in_any_place(f, derive):
    xs, ys = draw(4)
    wanted = by_loop(derive(f), xs, ys)
    ways = {
        "eager": ll.vectorize(derive(f)),
        "of a staged function": ll.vectorize(derive(ll.function(f))),
        "of a staged derivative": ll.vectorize(ll.function(derive(f))),
        "staged": ll.function(ll.vectorize(derive(f))),
        "staged twice": ll.function(ll.vectorize(ll.function(derive(ll.function(f))))),
        "in chunks": ll.vectorize(derive(ll.function(f)), chunk_size=3),
    }
    for way, F in ways.items():
        np.testing.assert_allclose(F(xs, ys).numpy(), wanted, rtol=1e-9, atol=1e-11, err_msg=way)


def test_one_operand_shared(f):
    xs, ys = draw(4)
    wanted = np.stack([f(x, ys[0]).numpy() for x in xs])
    for F in (f, ll.function(f)):
        found = ll.vectorize(F, in_axes=(0, None))(xs, ys[0])
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


def test_the_gradient_of_a_vectorised_function(f):
    xs, ys = draw(4)
    wanted = np.stack([ll.grad(lambda x, y: ll.sum(f(x, y)))(x, y).numpy() for x, y in zip(xs, ys, strict=True)])
    for F in (ll.vectorize(f), ll.vectorize(ll.function(f)), ll.function(ll.vectorize(f))):
        found = ll.grad(lambda xs, ys, F=F: ll.sum(F(xs, ys)))(xs, ys)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-12)


def test_a_batched_graph_is_built_once_for_each_number_of_examples():
    traced = []
    F = ll.function(lambda x: traced.append(1) or ll.sin(x) * x)
    V = ll.vectorize(F)
    xs, _ = draw(4)
    for _ in range(3):
        V(xs)
    assert len(traced) == 1
    assert len(F.trace_cache[0].function.pairs) == 1
    assert not V.looped


def test_of_an_unknown_number_of_examples():
    signature = [ll.TensorSpec((None, 3), "float64")] * 2
    for name in ("ops", "calls", "cond, by a batch", "while, counted", "while, by a batch"):
        f = PROGRAMS[name]
        F = ll.function(ll.vectorize(gradient(ll.function(f))), input_signature=signature)
        for n in (2, 5):
            np.testing.assert_allclose(F(*draw(n)).numpy(), by_loop(gradient(f), *draw(n)), rtol=1e-9, err_msg=name)


def test_a_staged_function_that_closed_over_one_example_is_traced_again():
    xs, ys = draw(3)
    F = None

    def f(x):
        nonlocal F
        F = F or ll.function(lambda y: y * captured[0])
        captured[0] = x
        return F(ys[0])

    captured = [None]
    first = ll.vectorize(f)(xs)
    second = ll.vectorize(f)(ys)
    np.testing.assert_allclose(first.numpy(), xs.numpy() * ys[0].numpy())
    np.testing.assert_allclose(second.numpy(), ys.numpy() * ys[0].numpy())


def test_branches_with_effects_are_run_example_by_example():
    v = ll.Variable(0.0)

    @ll.function
    def f(x):
        return ll.cond(x > 0, lambda: v.assign_add(1.0) + x, lambda: x)

    F = ll.vectorize(f)
    assert F(ll.constant([1.0, -1.0, 2.0])).tolist() == [2.0, -1.0, 4.0]
    assert v.numpy() == 2.0
    assert F.looped
    assert batching.how("py_func") == "loop"


@pytest.mark.parametrize(
    "wrap", [ll.recompute_grad, lambda f: ll.custom_gradient(lambda x: (f(x), lambda g: 3 * g * x))]
)
def test_a_gradient_of_its_own_goes_through_a_batch_of_batches(wrap):
    xs = ll.constant(np.linspace(0.2, 1.4, 6).reshape(2, 3))
    w = ll.constant(0.5, dtype=xs.dtype)

    def total(f):
        return lambda xs: ll.sum(ll.vectorize(ll.vectorize(f))(xs))

    def slopes(f):
        return ll.grad(lambda xs: ll.sum(ll.grad(f)(xs) ** 3))

    def g(x):
        return ll.sin(x) * x * w

    for wanted, staged in (
        (ll.grad(total(wrap(g))), ll.grad(ll.function(total(wrap(g))))),
        (slopes(total(wrap(g))), ll.function(slopes(total(wrap(g))))),
    ):
        np.testing.assert_allclose(staged(xs).numpy(), wanted(xs).numpy(), rtol=1e-6)
