"""Gradients, effects, randomness, batches and source lines of converted code."""

# ruff: noqa: SIM108  # the statements are what is tested

import functools
import threading

import numpy as np
import pytest

import limelight as ll

staged = functools.partial(ll.function, autograph=True)
HERE = "test_gradients.py"


def branches(x):
    if x > 1:
        y = x * x
        z = y * 2
    elif x > 0:
        z = x**3
    else:
        z = -x
    return z


def growing(x):
    n = 0
    y = x
    while n < 6:
        n += 1
        if n == 2:
            continue
        y = y * x
        if y > 50:
            break
    return y


def rows(x):
    total = 0.0
    for k in ll.constant([1.0, 2.0, 3.0, 4.0]):
        if k > 3:
            return total
        total = total + x**k
    return total


@pytest.mark.slow  # two orders, by differences
@pytest.mark.parametrize("f", [branches, growing, rows])
@pytest.mark.parametrize("at", [0.5, 1.5, 3.0])
def test_first_and_second_derivatives(f, at):
    g = staged(f)
    x = ll.constant(at, dtype="float64")
    eager = ll.grad(f)(x), ll.grad(ll.grad(f))(x)
    assert ll.grad(g)(x).item() == pytest.approx(eager[0].item())
    assert ll.grad(ll.grad(g))(x).item() == pytest.approx(eager[1].item())
    inside = staged(lambda v: ll.grad(ll.grad(f))(v))  # noqa: PLW0108  # the lambda is what is converted
    assert inside(x).item() == pytest.approx(eager[1].item())
    assert g.trace_count == 1
    assert ll.jvp(g, (x,), (x * 0 + 1,))[1].item() == pytest.approx(eager[0].item())


def test_the_gradient_of_the_rows_of_a_tensor():
    def f(xs):
        s = 0.0
        for x in xs:
            s = s * x + x if x > 0 else s
        return s

    xs = ll.constant([2.0, -1.0, 3.0])
    np.testing.assert_allclose(ll.grad(staged(f))(xs).numpy(), ll.grad(f)(xs).numpy())


def test_a_vectorised_function_decides_for_each_example():
    xs = [0.5, 1.5, -2.0]
    expected = [branches(x) for x in xs]
    assert ll.vectorize(staged(branches))(ll.constant(xs)).tolist() == pytest.approx(expected)


def test_variables_are_assigned_where_the_graph_comes_by():
    steps = ll.Variable(0)
    total = ll.Variable(0.0)

    @staged
    def f(xs):
        for x in xs:
            if x > 0:
                total.assign_add(x)
                continue
            steps.assign_add(1)
        if total > 4:
            total.assign(0.0)
        return total.read_value()

    assert f(ll.constant([1.0, -1.0, 2.0])).item() == 3.0
    assert (steps.numpy(), total.numpy()) == (1, 3.0)
    assert f(ll.constant([1.0, 1.0, 2.0])).item() == 0.0
    assert f.trace_count == 1


def test_a_condition_with_an_effect_is_worked_out_once_a_round():
    left = ll.Variable(3)

    def again():
        left.assign_sub(1)
        return left >= 0

    @staged
    def f(x):
        while again():
            x = x * 2
        return x

    assert f(ll.constant(1)).item() == 8
    assert left.numpy() == -1


def test_only_the_branch_that_is_taken_draws():
    def f(generator, x):
        if x > 0:
            y = generator.normal(())
        else:
            y = x
        return y + generator.normal(())

    for x in (1.0, -1.0):
        a, b = ll.random.Generator(3), ll.random.Generator(3)
        assert staged(f)(a, ll.constant(x)).item() == pytest.approx(f(b, ll.constant(x)).item())


def test_nodes_stand_on_the_lines_of_the_source():
    f = staged(growing)
    f(ll.constant(2.0))
    first = growing.__code__.co_firstlineno
    lines = {}
    graphs = [f.trace_cache[0].graph]
    for graph in graphs:
        graphs += [function.graph for function in graph.functions()]
        for node in graph.nodes:
            lines.setdefault(node.op.name, set()).add((node.stack[0].label, node.stack[0].line - first))
            assert node.stack[0].function == "growing"
    assert lines["while_loop"] == {(HERE, 3)}
    assert lines["multiply"] == {(HERE, 7)}
    assert lines["cond"] == {(HERE, 5), (HERE, 7), (HERE, 8)}


def test_a_call_over_several_lines_stands_where_it_does_in_python():
    def f(x):
        y = ll.where(
            x > 0,
            x,
            0.0,
        )
        return ll.concat(
            [y.tanh(), x],
            axis=0,
        )

    lines = []
    for autograph in (True, False):
        made = ll.function(f, autograph=autograph)
        made(ll.ones([2]))
        lines.append({node.op.name: node.source[1] for node in made.trace_cache[0].graph.nodes})
    assert lines[0] == lines[1]
    assert lines[0]["where"] == lines[0]["greater"] - 1 == lines[0]["concat"] - 5


def test_run_time_errors_name_the_line():
    @staged
    def f(xs, n):
        i = 0
        s = xs[0]
        while i < n:
            i += 1
            s = s + xs[i * 2]
        return s

    assert f(ll.constant([1.0, 2.0, 3.0]), ll.constant(1)).item() == 4.0
    with pytest.raises(ll.errors.OutOfBoundsError, match=rf"{HERE} line \d+: s = s \+ xs\[i \* 2\]"):
        f(ll.constant([1.0, 2.0, 3.0]), ll.constant(2))


def test_tracebacks_show_the_source():
    def f(x):
        if x > 0:
            y = x @ ll.ones((3,))
        else:
            y = x
        return y

    with pytest.raises(ll.errors.ShapeError) as caught:
        staged(f)(ll.constant(1.0))
    mine = [entry for entry in caught.traceback if HERE in str(entry.path)]
    assert [entry.lineno + 1 - f.__code__.co_firstlineno for entry in mine[1:]] == [1, 2]
    assert [entry.name for entry in mine[1:]] == ["f", "f"]
    assert not [entry for entry in caught.traceback if "malt" in str(entry.path)]


def test_threads_convert_and_trace_once():
    f = staged(branches)
    results = [None] * 8

    def call(i):
        results[i] = f(ll.constant(float(i))).item()

    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [branches(float(i)) for i in range(8)]
    assert f.trace_count == 1
