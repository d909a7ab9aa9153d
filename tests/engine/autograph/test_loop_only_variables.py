"""autograph=True: variables that only some runs assign, used afterwards: the graph checks that they were assigned."""

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


def one_branch(n):
    if n > 2:
        y = (n * 2, 1)
    return y[0]


def one_of_two_branches(n):
    if n > 2:
        y = n
    if n == 1:
        y = 7
    return y


def in_some_rounds(n):
    for i in range(n):
        if i > 1:
            last = i
    return last


def in_a_loop_in_a_loop(n):
    for i in range(n):
        for j in range(i):
            k = i * j
    return k


def in_two_loops(n):
    for i in range(n):
        y = i
    for j in range(n - 2):
        y = j + 10
    return y


def in_some_rounds_of_a_known_number(n):
    for x in ll.constant([1, 4, 2]):
        if x > n:
            y = x
    return y


def read_in_later_rounds(n):
    s = 0
    for i in range(n):
        if i == 0:
            first = n * 5
        else:
            s = s + i
        if i > 1:
            last = i
    return first + s + last


def after_a_break(n):
    for k in range(3):
        if n < k + 1:
            break
        y = n * k
    return y


SOMETIMES = [one_branch, one_of_two_branches, in_some_rounds, in_a_loop_in_a_loop, in_two_loops]
SOMETIMES += [in_some_rounds_of_a_known_number, read_in_later_rounds, after_a_break]


def outcome(f, n):
    try:
        return values(f(ll.constant(n)))
    except UnboundLocalError:
        return UnboundLocalError


@pytest.mark.parametrize("f", SOMETIMES, ids=lambda f: f.__name__)
def test_what_some_runs_assign_has_a_value_where_python_has_one(f):
    g = staged(f)
    assert [outcome(g, n) for n in (0, 1, 2, 3, 5)] == [outcome(f, n) for n in (0, 1, 2, 3, 5)]
    assert g.trace_count == 1


def test_the_line_that_reads_it_is_named():
    g = staged(one_branch)
    with pytest.raises(
        UnboundLocalError, match=r"`y` has no value here \(.*return y\[0\]\).*only in the `if` branch"
    ) as at:
        g(ll.constant(0))
    assert at.value.name == "y"
    assert not getattr(at.value, "__notes__", ()), "the message has the lines"


def test_gradients_of_what_one_branch_assigns():
    def f(x):
        if x > 1:
            y = x * x
        return y

    assert ll.grad(staged(f))(ll.constant(3.0)).item() == 6.0


def test_what_has_no_blank_is_refused_when_it_is_read():
    def f(x):
        if x > 1:
            y = object()
        return y

    with pytest.raises(ll.errors.ControlFlowError, match=r"`y` may have no value here .*only in the `if` branch"):
        staged(f)(ll.constant(3.0))
