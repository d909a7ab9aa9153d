"""autograph=True: variables that a loop alone assigns, used after it: the graph checks that there was an iteration."""

# ruff: noqa: B007, SIM108  # the statements are what is tested

import functools

import pytest

import limelight as ll

staged = functools.partial(ll.function, autograph=True)


def counter(n):
    for i in range(n):
        pass
    return i


def of_while(n):
    while n > 0:
        last = (n, n * 2)
        n = n - 1
    return last[0], last[1]


def with_break(n):
    for i in range(n):
        square = i * i
        if square > 10:
            break
    return square


def over_rows(n):
    for row in ll.astype(ll.arange(n), ll.float32):
        y = row * 2
    return y


def read_in_a_branch(n):
    for i in range(n):
        y = i * 3
    if n > 2:
        z = y + i
    else:
        z = y - i
    return z


def read_in_a_later_loop(n):
    for i in range(n):
        y = i
    s = 0
    for j in range(n):
        s = s + y
    return s


PROGRAMS = [counter, of_while, with_break, over_rows, read_in_a_branch, read_in_a_later_loop]


def values(result):
    return [float(x) for x in result] if isinstance(result, tuple) else float(result)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_they_have_the_value_of_the_last_iteration(f):
    g = staged(f)
    for n in (1, 2, 3, 7):
        assert values(g(ll.constant(n))) == values(f(ll.constant(n)))
    assert g.trace_count == 1


@pytest.mark.parametrize("f", PROGRAMS[:-1], ids=lambda f: f.__name__)
def test_without_an_iteration_reading_them_raises_as_in_python(f):
    g = staged(f)
    g(ll.constant(2))
    with pytest.raises(UnboundLocalError, match=r"` has no value here \(test_loop_.*ran zero times.*Assign it"):
        g(ll.constant(0))
    assert values(g(ll.constant(2))) == values(f(ll.constant(2)))


def test_what_is_not_read_is_not_checked():
    def f(n):
        for i in range(n):
            y = i
        if n > 0:
            return y
        return -1

    g = staged(f)
    assert [g(ll.constant(n)).item() for n in (0, 3)] == [-1, 2]


def test_gradients_and_batches_go_through_them():
    def f(x, n):
        while n > 0:
            y = x * x
            x = x + 1
            n = n - 1
        return y

    g = staged(f)
    assert ll.grad(lambda x: g(x, ll.constant(3)))(ll.constant(2.0)).item() == 8.0
    assert ll.vectorize(g)(ll.constant([1.0, 2.0]), ll.constant([1, 3])).tolist() == [1.0, 16.0]
