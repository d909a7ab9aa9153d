"""Initial values of variables that a staged function computes while it is traced."""

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll
from limelight.errors import StateCreationError, SymbolicValueError


@pytest.mark.parametrize(
    ("initial", "wanted"),
    [
        (lambda x: ll.ones((2,)), [1.0, 2.0]),
        (lambda x: ll.zeros((x.shape[0],)) + 3.0, [3.0, 6.0]),
        (lambda x: x * 2.0, [2.0, 8.0]),
        (ll.function(lambda y: y + 1.0), [2.0, 6.0]),
    ],
)
def test_an_inner_function_computes_what_it_creates_when_called_from_an_outer_one(
    initial: Any, wanted: list[float]
) -> None:
    """Item 155."""
    made: list[ll.Variable] = []

    @ll.function
    def inner(x: Any) -> Any:
        if not made:
            made.append(ll.Variable(initial(x)))
        return x * made[0]

    @ll.function
    def outer(x: Any) -> Any:
        with ll.GradientTape() as tape:
            y = inner(x + 1.0)
        return y, tape.gradient(y, made[0])

    y, gradient = outer(ll.constant([0.0, 1.0]))
    assert y.tolist() == wanted
    assert gradient.tolist() == [1.0, 2.0]
    assert outer(ll.constant([0.0, 1.0]))[0].tolist() == y.tolist()


def test_an_initial_value_that_depends_on_an_argument_without_a_value_is_refused() -> None:
    made: list[ll.Variable] = []

    @ll.function
    def inner(x: Any) -> Any:
        if not made:
            made.append(ll.Variable(x * 2.0))
        return x * made[0]

    outer = ll.function(lambda x: inner(x + 1.0))
    with pytest.raises(SymbolicValueError, match="depends on an argument of '<lambda>' that has no value yet"):
        outer.get_concrete_function(ll.TensorSpec((2,), "float32"))
    made.clear()
    inner.clear_cache()
    assert outer(ll.ones(2)).tolist() == [8.0, 8.0]


@pytest.mark.parametrize(
    ("initial", "wanted"),
    [
        (lambda x, y: ll.zeros((2,)) + 3.0, [3.0, 3.0]),
        (lambda x, y: ll.random.Generator(1).uniform((2,)) * 0.0 + 3.0, [3.0, 3.0]),
        (lambda x, y: x * 2.0, [2.0, 4.0]),
        (lambda x, y: y + x, [2.0, 4.0]),
    ],
)
def test_a_branch_computes_the_initial_value_of_what_it_creates(initial: Any, wanted: list[float]) -> None:
    made: list[ll.Variable] = []

    @ll.function
    def f(x: Any) -> Any:
        y = x * 1.0

        def inner() -> Any:
            if not made:
                made.append(ll.Variable(initial(x, y)))
            return y * made[0]

        return ll.cond(ll.sum(x) > 0, lambda: ll.cond(ll.sum(x) > 1, inner, lambda: x), lambda: x)

    with pytest.warns(UserWarning, match="a variable is made while a branch is traced"):
        assert f(ll.constant([1.0, 2.0])).tolist() == [wanted[0], 2 * wanted[1]]
    assert f(ll.constant([1.0, -2.0])).tolist() == [1.0, -2.0]
    assert made[0].tolist() == wanted


def test_a_body_cannot_compute_an_initial_value_from_a_loop_variable() -> None:
    made: list[ll.Variable] = []

    @ll.function
    def f(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            if not made:
                made.append(ll.Variable(c * 2.0))
            return c * made[0], None

        return ll.scan(body, x, length=2)[0]

    with pytest.raises(SymbolicValueError, match=r"argument of 'body' that has no value yet.*before the loop"):
        f(ll.ones(2))


def trained(creates: bool = False):
    """A step that an optimiser takes, which creates its slots; and how often its Python code ran."""
    model = [ll.Variable([1.0, 2.0]), ll.Variable([3.0])]
    adam, ran, own = ll.optim.Adam(0.1), [], []

    @ll.function
    def step(x):
        ran.append(1)
        if creates and not own:
            own.append(ll.Variable(0.0))
        with ll.GradientTape() as tape:
            loss = ll.sum(model[0] * x) ** 2 + ll.sum(model[1])
        adam.apply(tape.gradient(loss, model), model)
        return loss

    losses = [step(ll.constant(2.0)).item() for _ in range(3)]
    return step, losses + [v.numpy().tolist() for v in model], ran, adam


def test_slots_of_optimisers_are_created_in_the_only_trace():
    step, values, ran, adam = trained()
    assert len(ran) == step.trace_count == len(step.trace_cache) == 1
    assert len(adam.slots) == 2
    with ll.config.run_functions_eagerly():
        _, eager, _, _ = trained()
    assert values[:3] == pytest.approx(eager[:3], rel=1e-5)
    assert step.trace_cache[0].graph.n_captures == 2 + 4 + 2  # variables, slots, step counter and rate


def test_other_state_still_has_the_second_trace():
    step, values, ran, _ = trained(creates=True)
    assert len(ran) == step.trace_count == 2
    assert str(values) == str(trained()[1])


def test_slots_for_a_later_variable_are_made_in_its_trace():
    def run(stage):
        v, w, adam = ll.Variable(1.0), ll.Variable(1.0), ll.optim.Adam(0.1)
        step = stage(lambda which: adam.apply([ll.constant(1.0)], [v if which else w]))
        for which in (True, False, False, True):
            step(which)
        assert len(adam.slots) == 2
        return [v.numpy().item(), w.numpy().item()], step

    (eager, _), (staged, step) = run(lambda f: f), run(ll.function)
    assert staged == pytest.approx(eager)
    assert step.trace_count == 2


class Lazy:
    """Makes its weight at its first call, as people write it."""

    def __init__(self) -> None:
        self.w: Any = None

    def __call__(self, x: Any) -> Any:
        if self.w is None:
            self.w = ll.Variable(ll.ones((x.shape[-1],)))
        return x * self.w


class Deep(ll.Module):
    """A module that makes its layers at its first call."""

    def call(self, x: Any) -> Any:
        if "layer" not in vars(self):
            self.layer = ll.nn.Dense(2)
        return self.layer(x)


@pytest.mark.parametrize("make", [lambda: ll.nn.Dense(2), lambda: ll.nn.Sequential(ll.nn.Dense(2)), Deep, Lazy])
def test_another_object_may_make_its_state(make: Any) -> None:
    step = ll.function(lambda net, x: net(x))
    x = ll.ones((2, 3))
    kept = []
    for i in range(4):
        kept.append(make())
        wanted = step(kept[-1], x).numpy()
        assert (kept[-1](x).numpy() == wanted).all()
        assert (step.trace_count, len(step.trace_cache)) == (2 * i + 2, i + 1)
    assert all((step(net, x).numpy() == net(x).numpy()).all() for net in kept)
    assert step.trace_count == 8


@pytest.mark.parametrize("make", [lambda: ll.nn.Dense(2), Deep, Lazy])
def test_another_object_may_make_its_state_eagerly(make: Any) -> None:
    step = ll.function(lambda net, x: net(x), run_eagerly=True)
    for _ in range(3):
        net = make()
        assert step(net, ll.ones((2, 3))).shape == step(net, ll.ones((2, 3))).shape


ORDER = [(0, 0), (0, 1), (1, 0), (0, 0), (1, 1), (1, 0), (0, 1)]


def test_other_optimisers_and_networks_in_turn() -> None:
    def run(stage: Any) -> Any:
        ll.random.seed(3)
        nets = [ll.nn.Dense(2), ll.nn.Dense(3)]
        optimisers = [ll.optim.Adam(0.1), ll.optim.Momentum(0.1)]

        @stage
        def step(net: Any, optimiser: Any, x: Any) -> Any:
            with ll.GradientTape() as tape:
                loss = ll.sum(net(x) ** 2)
            optimiser.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
            return loss

        return [step(nets[i], optimisers[j], ll.ones((2, 3))).item() for i, j in ORDER]

    assert run(ll.function) == pytest.approx(run(lambda f: f), rel=1e-4)


def test_weights_of_a_layer_closed_over_may_be_made_in_a_later_trace() -> None:
    layers = {2: ll.nn.Dense(2), 3: ll.nn.Dense(2)}
    f = ll.function(lambda x: layers[x.shape[-1]](x))
    assert [f(ll.ones((1, n))).shape for n in (2, 3, 2)] == [(1, 2)] * 3
    assert f.trace_count == 4


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda x: ll.nn.Dense(2)(x) * 1.0, "a variable of a layer each time .*Create the layer outside"),
        (
            lambda x: ll.optim.Adam(0.1).apply([x], [outside]),
            "a variable of an optimiser each time .*Create the optimiser outside",
        ),
        (lambda x: x * ll.Variable(1.0), "a variable each time .*Create the variable outside"),
    ],
)
def test_what_is_made_anew_each_time_is_refused_by_its_name(body: Any, words: str) -> None:
    f = ll.function(body)
    for net in ("first", "second"):
        with pytest.raises(StateCreationError, match=words):
            f(ll.ones((2, 3)))
        assert len(f.trace_cache) == 0, net


outside = ll.Variable(ll.ones((2, 3)))


def test_slots_made_by_an_inner_function_do_not_trace_the_outer_one_again():
    v, adam, ran = ll.Variable(1.0), ll.optim.Adam(0.1), []
    inner = ll.function(lambda g: adam.apply([g], [v]))

    @ll.function
    def outer(g):
        ran.append(1)
        inner(g)
        return v.read_value()

    assert outer(ll.constant(1.0)).item() == pytest.approx(0.9)
    assert (len(ran), inner.trace_count) == (1, 1)
