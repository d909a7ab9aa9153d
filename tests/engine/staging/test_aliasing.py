"""A variable that is an argument, and the same variable closed over: one program, two meanings."""

from __future__ import annotations

import pytest

import limelight as ll


def test_a_closed_over_variable_stays_itself_when_another_one_is_passed() -> None:
    w, u = ll.Variable(1.0), ll.Variable(100.0)
    f = ll.function(lambda v: v + 10.0 * w)
    assert f(w).item() == 11.0
    assert f(u).item() == 110.0
    assert f(w).item() == 11.0
    assert len(f.trace_cache) == 2


def test_gradients_go_to_the_right_variable() -> None:
    w, u = ll.Variable(2.0), ll.Variable(3.0)
    f = ll.function(lambda v: v * w * w)
    f(w)
    with ll.GradientTape() as tape:
        y = f(u)
    assert [g.item() for g in tape.gradient(y, [u, w])] == [4.0, 12.0]
    with ll.GradientTape() as tape:
        y = f(w)
    assert tape.gradient(y, w).item() == 12.0


def test_writes_to_an_argument_are_seen_by_reads_of_the_captured_one() -> None:
    w, u = ll.Variable(1.0), ll.Variable(1.0)

    def body(v):
        before = w.read_value()
        v.assign(before + 5.0)
        return before, w.read_value()

    f = ll.function(body)
    assert [x.item() for x in f(u)] == [1.0, 1.0]
    assert [x.item() for x in f(w)] == [1.0, 6.0]


def test_a_method_keeps_to_its_own_variable() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = ll.Variable(1.0)

        @ll.function
        def f(self, v):
            self.w.assign(v + 1.0)
            return v.read_value()

    model, other = Model(), ll.Variable(5.0)
    assert model.f(model.w).item() == 2.0
    assert model.f(other).item() == 5.0
    assert (other.numpy(), model.w.numpy()) == (5.0, 6.0)


def test_through_a_nested_function() -> None:
    w, u = ll.Variable(1.0), ll.Variable(10.0)
    inner = ll.function(lambda v: v + w)
    outer = ll.function(lambda v: inner(v) + 0.0)
    assert outer(w).item() == 2.0
    assert outer(u).item() == 11.0
    assert inner(w).item() == 2.0
    assert inner(u).item() == 11.0


def test_updates_of_captured_variables_one_by_one() -> None:
    vs = [ll.Variable(1.0), ll.Variable(2.0), ll.Variable(4.0)]
    update = ll.function(lambda v: v.assign_add(vs[0] + vs[1]))
    for v in vs:
        update(v)
    eager = [1.0, 2.0, 4.0]
    for i in range(3):
        eager[i] += eager[0] + eager[1]
    assert [v.numpy().item() for v in vs] == eager


def test_variables_that_are_not_closed_over_still_share_a_trace() -> None:
    f = ll.function(lambda v: v * 2.0)
    assert [f(ll.Variable(x)).item() for x in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert f.trace_count == 1


def test_a_concrete_function_refuses_another_pattern() -> None:
    a, b, w = ll.Variable(1.0), ll.Variable(1.0), ll.Variable(1.0)

    def body(x, y):
        before = x.read_value()
        y.assign(before + 1.0)
        return before, x + w

    concrete = ll.function(body).get_concrete_function(a, b)
    concrete(b, a)
    for pattern in ((a, a), (w, a)):
        with pytest.raises(ll.errors.SignatureError, match="another pattern"):
            concrete(*pattern)


def test_gradients_of_what_is_given_by_what_is_closed_over_in_the_first_trace() -> None:
    net = ll.nn.Sequential(ll.nn.Dense(4), ll.nn.Dense(1))
    x = ll.ones((2, 3))
    net(x)

    def step(x, weights, named):
        with ll.GradientTape(persistent=True) as tape:
            loss = ll.sum(net(x) ** 2)
        return [g * 2.0 for g in tape.gradient(loss, weights)], tape.gradient(loss, named["bias"])

    weights = net.trainable_variables
    arguments = (x, weights, {"bias": weights[1]})
    staged, eager = ll.function(step), step(*arguments)
    for _ in range(2):
        got = staged(*arguments)
        assert got[1].tolist() == pytest.approx(eager[1].tolist())
        assert all(ll.max(ll.abs(a - b)).item() < 1e-4 for a, b in zip(got[0], eager[0], strict=True))
    assert staged.trace_count == 1
    assert staged.trace_cache[0].graph.n_captures == 0, "each variable is one input"


@pytest.mark.parametrize("takes", ["both in a branch", "in two branches", "in a body", "in an inner function"])
def test_what_a_branch_closes_over_counts(takes: str) -> None:
    w, u = ll.Variable(2.0), ll.Variable(100.0)
    inner = ll.function(lambda v: v * w)

    def body(x, v):
        if takes == "both in a branch":
            return ll.cond(x > 0, lambda: v * w, lambda: x)
        if takes == "in two branches":
            return ll.cond(x > 0, lambda: ll.cond(x > 5, lambda: x, lambda: w + 0.0) * v, lambda: v + 0.0)
        if takes == "in a body":
            return ll.fori_loop(0, 2, lambda i, t: t * v + w, x)
        return inner(v)

    f = ll.function(body)
    x = ll.constant(1.0)
    for v in (w, u, w, u):
        assert f(x, v).item() == body(x, v).item()
    assert f.trace_count == 2


def test_attributes_of_an_argument_are_those_of_the_variable() -> None:
    w = ll.Variable(1.0)
    w.tags = ["a"]

    @ll.function
    def f(v):
        v.tags.append("b")
        v.seen = True
        return v * 1.0

    f(w)
    assert (w.tags, w.seen) == (["a", "b"], True)


def test_a_reference_is_to_the_variable_itself() -> None:
    rates = {}
    w, u = ll.Variable(1.0), ll.Variable(1.0)
    for v, rate in ((w, 2.0), (u, 3.0)):
        rates[v.ref()] = rate

    @ll.function
    def f(vs):
        return [v * rates[v.ref()] for v in vs]

    assert [x.item() for x in f([w, u])] == [2.0, 3.0]
    assert [x.item() for x in f([u, w])] == [3.0, 2.0]
    assert [x.item() for x in f([w, u])] == [2.0, 3.0]
    assert f.trace_count == 2


def test_a_concrete_function_for_what_is_closed_over_takes_no_other() -> None:
    w, u = ll.Variable(1.0), ll.Variable(5.0)
    concrete = ll.function(lambda v: v + w).get_concrete_function(w)
    assert concrete(w).item() == 2.0
    with pytest.raises(ll.errors.SignatureError, match="another pattern"):
        concrete(u)
    outer = ll.function(lambda v: concrete(v) + 0.0)
    assert outer(w).item() == 2.0
    with pytest.raises(ll.errors.SignatureError, match="another pattern"):
        outer(u)
