"""Generators in staged functions: the stream of eager code, by reference, in program order, anew at each call."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import limelight as ll
from limelight.errors import StateCreationError
from limelight.graph.parser import parse

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")

DRAWS = {
    "normal": lambda g, a: g.normal(mean=a),
    "uniform": lambda g, a: g.uniform(low=-a, high=a),
    "exponential": lambda g, a: g.exponential(scale=a),
    "laplace": lambda g, a: g.laplace(mean=a),
    "gumbel": lambda g, a: g.gumbel(mode=a),
    "cauchy": lambda g, a: g.cauchy(median=a),
    "truncated_normal": lambda g, a: g.truncated_normal(mean=a, stddev=a),
    "gamma": lambda g, a: g.gamma(a),
    "beta": lambda g, a: g.beta(a, 2.0 * a),
    "dirichlet": lambda g, a: g.dirichlet(a),
    "integers": lambda g, a: g.integers(100, shape=ll.shape_of(a)),
    "bernoulli": lambda g, a: g.bernoulli(a * 0.3),
    "poisson": lambda g, a: g.poisson(a),
    "categorical": lambda g, a: g.categorical(a, (4,)),
    "multinomial": lambda g, a: g.multinomial(5, a),
    "permutation": lambda g, a: g.permutation(a),
    "dropout_mask": lambda g, a: g.dropout_mask(a, 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("sizes", ["known", "unknown"])
def test_the_stream_is_that_of_eager_code(name, sizes):
    g, a = ll.random.Generator(1), ll.constant([0.5, 1.0, 2.0])
    signature = [ll.TensorSpec((None,))] if sizes == "unknown" else None

    def both(a):
        return DRAWS[name](g, a), g.uniform((2,)), DRAWS[name](g, a)

    F = ll.function(both, input_signature=signature)
    start = g.state
    staged = [[x.tolist() for x in F(a)] for _ in range(2)]
    g.state = start
    assert staged == [[x.tolist() for x in both(a)] for _ in range(2)]
    assert F.trace_count == 1
    assert staged[0] != staged[1]


NUMBERS = {
    "normal": lambda g, n: g.normal(n, 1.0, 2.0),
    "uniform": lambda g, n: g.uniform(n, -1.0, 2.0),
    "exponential": lambda g, n: g.exponential(n, 3.0),
    "truncated_normal": lambda g, n: g.truncated_normal(n, low=1.0, high=3.0),
    "gamma": lambda g, n: g.gamma(2.5, 2.0, n),
    "gamma, small": lambda g, n: g.gamma(0.25, shape=n),
    "beta": lambda g, n: g.beta(0.5, 2.0, n),
    "poisson": lambda g, n: g.poisson(3.0, n),
    "bernoulli": lambda g, n: g.bernoulli(0.3, n),
    "permutation": lambda g, n: g.permutation(5),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_so_it_is_where_parameters_are_numbers(name):
    g = ll.random.Generator(1)
    F = ll.function(lambda: (NUMBERS[name](g, (3, 2)), g.uniform((2,))))
    start = g.state
    staged = [x.tolist() for x in F()]
    g.state = start
    assert staged == [NUMBERS[name](g, (3, 2)).tolist(), g.uniform((2,)).tolist()]


def test_setting_and_resetting_it_outside_is_heeded():
    g = ll.random.Generator(1)
    F = ll.function(lambda: g.normal((2,)))
    first = F().tolist()
    g.reset(1)
    assert F().tolist() == first
    g.state = ll.random.Generator(2).state
    assert F().tolist() == ll.random.Generator(2).normal((2,)).tolist()


def test_setting_it_inside_happens_at_each_call_and_in_order():
    g = ll.random.Generator(1)

    @ll.function
    def F():
        before = g.uniform()
        g.reset(7)
        first = g.uniform()
        state = g.state
        second = g.uniform()
        g.state = state
        return before, first, second, g.uniform()

    before, first, second, again = F()
    assert before.item() == ll.random.Generator(1).uniform().item()
    assert [first.item(), second.item()] == ll.random.Generator(7).uniform((2,)).tolist()
    assert again.item() == second.item()
    assert F()[1].item() == first.item()


def test_unused_draws_stay_and_are_not_merged():
    g = ll.random.Generator(1)

    @ll.function
    def F():
        g.uniform((2,))
        return g.uniform((2,)), g.uniform((2,))

    assert [F()[0].tolist(), g.uniform((2,)).tolist()] == [
        x.tolist() for x in ll.split(ll.random.Generator(1).uniform((8,)), 4)[1::2]
    ]
    optimised = F.trace_cache[0].optimised
    assert [node.op.name for node in optimised.nodes].count("random_uniform") == 3


def test_as_an_argument_it_is_keyed_by_its_type_and_weakly():
    F = ll.function(lambda g: g.uniform((2,)))
    g, h = ll.random.Generator(1), ll.random.Generator(1)
    assert F(g).tolist() == F(h).tolist()
    assert F(g).tolist() == F(h).tolist()
    assert F.trace_count == 1
    gone = weakref.ref(h)
    del h
    gc.collect()
    assert gone() is None, "a trace keeps it alive"


def test_a_generator_that_a_function_makes_is_state():
    with pytest.raises(StateCreationError):
        ll.function(lambda: ll.random.Generator(1).uniform())()

    class Once:
        g = None

        @ll.function
        def draw(self):
            if self.g is None:
                (self.g,) = ll.random.Generator(1).split(1)
            return self.g.uniform()

    kept = Once()
    a, b = kept.draw(), kept.draw()
    assert a.item() != b.item()
    (wanted,) = ll.random.Generator(1).split(1)
    assert [a.item(), b.item()] == wanted.uniform((2,)).tolist()


def test_an_initial_value_may_be_drawn_in_the_function():
    g = ll.random.Generator(1)

    class Once:
        v = None

        @ll.function
        def run(self):
            if self.v is None:
                self.v = ll.Variable(g.normal((2,)))
            return self.v + 0.0, g.uniform(())

    once = Once()
    first, drawn = once.run()
    again, later = once.run()
    assert first.tolist() == again.tolist() == ll.random.Generator(1).normal((2,)).tolist()
    assert drawn.item() != later.item()


def test_in_branches_loops_and_called_functions():
    g = ll.random.Generator(1)
    inner = ll.function(lambda: g.normal(()))

    @ll.function
    def F(p, n):
        a = ll.cond(p, lambda: g.uniform(()), lambda: g.normal(()) + inner())
        _, total = ll.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x + inner()), (ll.constant(0), a))
        return total, g.uniform(())

    def plain(p, n):
        a = g.uniform(()) if p else g.normal(()) + g.normal(())
        for _ in range(n):
            a = a + g.normal(())
        return a, g.uniform(())

    for p in (True, False):
        start = g.state
        staged = [x.item() for x in F(ll.constant(p), ll.constant(3))]
        g.state = start
        np.testing.assert_allclose(staged, [x.item() for x in plain(p, 3)], rtol=1e-6)


def test_going_back_does_not_draw_again():
    g, x = ll.random.Generator(1), ll.ones(3)
    F = ll.function(lambda x: x * g.normal((3,)) + g.gamma(x) * 0.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = F(x)
    before = g.state.tolist()
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), y.numpy(), rtol=1e-6)
    assert g.state.tolist() == before


def _looped(g, x):
    return ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * g.gamma(x) + g.normal(()) * x), (0, x))[1]


def _chosen(g, x):
    return ll.cond(x > 1.0, lambda: x * g.normal(()), lambda: g.gamma(x)) + g.gamma(x)


@pytest.mark.parametrize("body", [_looped, _chosen])
@pytest.mark.parametrize("value", [0.5, 2.0])
def test_gradients_through_draws_in_loops_and_branches(body, value):
    g, x = ll.random.Generator(1), ll.constant(value)
    F = ll.function(lambda x: body(g, x))
    found = []
    for run in (lambda x: body(g, x), F):
        g.reset(1)
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        found.append((y.item(), tape.gradient(y, x).item(), g.uniform(()).item()))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_recomputing_draws_the_same():
    g, x = ll.random.Generator(1), ll.ones(3)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.recompute_grad(lambda x: x * g.normal((3,)))(x)
    assert tape.gradient(y, x).tolist() == y.tolist()


def test_draws_go_where_they_are_asked_for(second_cpu):
    g = ll.random.Generator(1)
    F = ll.function(lambda: (g.normal((2,)), g.gamma(ll.ones(2))))
    with ll.device("cpu:1"):
        eager = g.normal((2,)), g.gamma(ll.ones(2))
        staged = F()
    assert {x.device.short for x in (*eager, *staged)} == {"CPU:1"}
    assert ll.random.dropout_mask(eager[0], 0.5).device.short == "CPU:1"
    assert g.state.device.short == "CPU:0"


def test_its_graph_is_text_that_reads_back():
    g = ll.random.Generator(1)
    F = ll.function(lambda: g.normal((2,)) + g.uniform((2,)))
    F()
    text = F.trace_cache[0].graph.text()
    assert "capture %0: generator" in text
    assert parse(text).text() == text


def test_generators_that_are_arguments_are_inputs_of_one_trace_as_variables_are():
    @ll.function
    def step(p, g):
        return p + g.normal((2,))

    ours, theirs = ll.random.Generator(1).split(5), ll.random.Generator(1).split(5)
    for g, h in zip(ours, theirs, strict=True):
        for _ in range(2):
            assert np.array_equal(step(ll.ones(2), g), ll.ones(2) + h.normal((2,)))
    assert len(step.trace_cache) == 1

    outer = ll.function(lambda g: step(ll.zeros(2), g))
    assert np.array_equal(outer(ours[0]), theirs[0].normal((2,)))
    assert np.array_equal(outer(ours[1]), theirs[1].normal((2,)))
    assert (len(outer.trace_cache), len(step.trace_cache)) == (1, 1)


def test_a_trace_knows_which_generators_among_arguments_and_outside_are_the_same():
    outside, other, third = ll.random.Generator(1), ll.random.Generator(2), ll.random.Generator(3)
    f = ll.function(lambda a, b: a.uniform(()) - b.uniform(()) + 0 * outside.uniform(()))
    for a, b in ((other, other), (other, third), (outside, third), (third, outside)):
        twins = {id(g): copy.copy(g) for g in (a, b, outside)}
        x, y = twins[id(a)], twins[id(b)]
        expected = x.uniform(()) - y.uniform(()) + 0 * twins[id(outside)].uniform(())
        assert f(a, b).item() == expected.item()
        assert all(bool((g.state == twins[id(g)].state).all()) for g in (a, b, outside))


def test_a_generator_that_is_an_argument_can_be_set_back_and_used_for_initial_values():
    @ll.function
    def again(g):
        g.reset(3)
        return g.uniform(())

    a, b = ll.random.Generator(1).split()
    assert again(a).item() == again(b).item() == ll.random.Generator(3).uniform(()).item()
    made = []

    @ll.function
    def first(x, g):
        if not made:
            made.append(ll.Variable(x + 1.0))
        return made[0] + 0 * g.uniform(())

    assert first(ll.constant(1.0), a).item() == 2.0


def test_a_trace_that_asks_which_generator_an_argument_is_is_for_that_one():
    a, b = ll.random.Generator(1).split()
    scale = {a: 10.0, b: 20.0}
    by_key = ll.function(lambda g: scale[g] + 0 * g.uniform(()))
    assert [by_key(g).item() for g in (a, b, a)] == [10.0, 20.0, 10.0]
    same = ll.function(lambda g: ll.constant(g == a))
    assert [bool(same(g)) for g in (a, b, a)] == [True, False, True]
    assert ll.function(lambda g: g)(b) is b
