"""Loops of converted code whose variables change shape: eager, staged and their gradients agree."""

import functools

import numpy as np
import pytest

import limelight as ll

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
staged = functools.partial(ll.function, autograph=True)
X = ll.constant(np.array([0.5, -0.3, 0.8]))


def over_a_range(x, n):
    seen = x[:0]
    for i in range(n):
        seen = ll.concat([seen, ll.sin(x[i : i + 1] + ll.sum(seen))])
    return seen


def over_rows(x, n):
    seen = x[:1]
    for row in x:
        seen = ll.concat([seen, ll.sin(seen[-1:] * row)])
    return seen


def by_broadcasting(x, n):
    y, i = ll.expand_dims(x[:1], 0), 0
    while i < n:
        y, i = ll.sin(y + ll.expand_dims(x, 1)), i + 1
    return y


def within_another(x, n):
    seen = x[:0]
    for i in range(n):
        for _ in range(i):
            seen = ll.concat([seen, ll.tanh(x[:2] * (ll.sum(seen) + 1.0))])
    return seen


def leaves_early(x, n):
    for _ in range(n):
        x = ll.concat([x, ll.sin(x[:1])])
        if ll.sum(x) > 1.4:
            return x * x
    return x


FUNCTIONS = [over_a_range, over_rows, by_broadcasting, within_another, leaves_early]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_gradients_are_those_of_eager_execution(f):
    g, n = staged(f), ll.constant(3)
    assert g(X, n).shape == f(X, 3).shape
    np.testing.assert_allclose(g(X, n).numpy(), f(X, 3).numpy())
    slope = ll.grad(lambda x: ll.sum(g(x, n) * x[0]))
    known = ll.grad(lambda x: ll.sum(f(x, 3) * x[0]))
    np.testing.assert_allclose(slope(X).numpy(), known(X).numpy())
    found = ll.grad(lambda x: ll.sum(slope(x) ** 2))(X)
    np.testing.assert_allclose(found.numpy(), ll.grad(lambda x: ll.sum(known(x) ** 2))(X).numpy())


def test_what_may_run_zero_times_and_sizes_that_stay():
    assert staged(over_a_range)(X, ll.constant(0)).shape == (0,)
    graph = staged(lambda x, n: over_rows(ll.expand_dims(x, 1), n)).get_concrete_function(X, ll.constant(3)).graph
    assert [value.spec.shape for value in graph.outputs] == [(None, 1)]


def test_graphs_call_loop_variables_by_their_names():
    graph = staged(by_broadcasting).get_concrete_function(X, ll.constant(3)).graph
    body = next(node for node in graph.nodes if node.op.name == "while_loop").attrs["body"]
    assert {"y", "i"} <= set(body.graph.input_names)


def counts_by_shape(x):
    out, total = ll.zeros((0,), dtype="float64"), ll.constant(0.0, "float64")
    for value in x:
        if out.shape[0] == 0:
            total = total + 100.0
        out = ll.concat([out, value[None]])
    return total + ll.sum(out)


def pads_by_shape(x):
    n = ll.astype(ll.sum(x) * 0.0 + 5.0, "int32")
    while x.shape[0] != n:
        x = ll.concat([x, x[-1:]])
    return x


def decides_afterwards(x):
    out = x[:1]
    while ll.sum(out) < 3.0:
        out = ll.concat([out, out])
    return out if out.shape == (4,) else -out


def is_short(x):
    return x.size < 2 if x.size is not None else True


def asks_a_helper(x):
    out = x[:1]
    while ll.sum(out) < 3.0:
        out = ll.concat([out, out]) if is_short(out) else ll.concat([out, out, out])
    return out


def asks_a_lambda(x):
    short = lambda a: a.shape == (1,)  # noqa: E731
    out = x[:1]
    while ll.sum(out) < 3.0:
        out = ll.concat([out, out]) if short(out) else ll.concat([out, out, out])
    return out


@pytest.mark.parametrize("f", [counts_by_shape, pads_by_shape, decides_afterwards, asks_a_helper, asks_a_lambda])
def test_code_that_reads_sizes_is_refused_and_not_decided_by_sizes_that_are_unknown(f):
    with pytest.raises(ll.errors.ControlFlowError, match=r"reads `\.shape` or `\.size`.* write len\(x\)"):
        staged(f)(X)


def test_len_is_what_the_message_says():
    def counts(x):
        out, total = ll.zeros((0,), dtype="float64"), ll.constant(0.0, "float64")
        for value in x:
            if len(out) == 0:
                total = total + 100.0
            out = ll.concat([out, value[None]])
        return total + ll.sum(out)

    np.testing.assert_allclose(staged(counts)(X).numpy(), counts(X).numpy())
    np.testing.assert_allclose(counts(X).numpy(), counts_by_shape(X).numpy())
